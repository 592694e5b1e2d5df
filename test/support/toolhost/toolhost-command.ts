import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { patientEnvironment } from '../store/patient-limits.ts';
import { runInProcess } from './command-in-process.ts';

export const binary = resolve(import.meta.dirname, '..', '..', '..', 'bin', 'toolhost');
/** Ends what hangs; far longer than any command takes on a busy machine. */
const limitMs = 10 * 60_000;

export type Ended = { code: number | null; stdout: string; stderr: string };

export type CommandOptions = {
  /** Replaces the environment, all but PATH and HOME. */
  env?: Record<string, string>;
  input?: string;
  cwd?: string;
  /** Program to start instead. */
  program?: string;
  /** Whether its output is a terminal; not in a process of its own. */
  isTerminal?: boolean;
  /** Gives it a process of its own, for tests of what `runInProcess` does not imitate. */
  isChild?: boolean;
};

/** Starts `bin/toolhost` and lets it run. */
export function beginToolhost(
  args: readonly string[],
  { env, cwd, program = binary }: CommandOptions,
): ChildProcessWithoutNullStreams {
  return spawn(program, args, {
    env: environment(env),
    ...(cwd !== undefined && { cwd }),
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
}

function environment(env: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...patientEnvironment(env) };
}

/** Waits for its end. */
export async function endOf(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
}

/** Runs the command line as a person would, with `input` as its standard input; in this process where that is the same. */
export function toolhost(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  if (!needsProcess(args, options)) return runInProcess(args, { ...options, env: environment(options.env) });
  const child = beginToolhost(args, options);
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return endOf(child);
}

/** Whether a command is the service, another program or one that is asked for, or has settings of Node. */
function needsProcess([command]: readonly string[], { env, program, isChild = false }: CommandOptions): boolean {
  return isChild || command === 'serve' || program !== undefined || env?.NODE_OPTIONS !== undefined;
}

/** The same for a command that must succeed with `--json`: what it printed. */
export async function toolhostJson<Output>(args: readonly string[], options: CommandOptions = {}): Promise<Output> {
  const { code, stdout, stderr } = await toolhost([...args, '--json'], options);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  return JSON.parse(stdout) as Output;
}
