import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { patientEnvironment } from '../store/patient-limits.ts';
import { runInProcess } from './command-in-process.ts';

export const binary = resolve(import.meta.dirname, '..', '..', '..', 'bin', 'toolhost');
/** Kills a command that hangs. Far longer than any command takes on a busy machine. */
const limitMs = 10 * 60_000;

export type Ended = { code: number | null; stdout: string; stderr: string };

export type CommandOptions = {
  /** Replaces the environment except PATH and HOME. */
  env?: Record<string, string>;
  input?: string;
  cwd?: string;
  /** Program to start instead. */
  program?: string;
  /** Makes its output a terminal. Has no effect in a separate process. */
  isTerminal?: boolean;
  /** Runs it in a separate process, for tests of behavior that `runInProcess` does not imitate. */
  isChild?: boolean;
};

/** Starts `bin/toolhost` without waiting for its end. */
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

/** Waits until the process exits, and returns its result. */
export async function endOf(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
}

/**
 * Runs the command line as a person would, with `input` as its standard input. Runs in this process if that makes no
 * difference.
 */
export function toolhost(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  if (!needsProcess(args, options)) return runInProcess(args, { ...options, env: environment(options.env) });
  const child = beginToolhost(args, options);
  // A command that does not read its input may exit before the input is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return endOf(child);
}

/** Returns true for the service, for another program, for Node options, and if the test asks for a separate process. */
function needsProcess([command]: readonly string[], { env, program, isChild = false }: CommandOptions): boolean {
  return isChild || command === 'serve' || program !== undefined || env?.NODE_OPTIONS !== undefined;
}

/** Runs a command with `--json` that must succeed, and returns its parsed output. */
export async function toolhostJson<Output>(args: readonly string[], options: CommandOptions = {}): Promise<Output> {
  const { code, stdout, stderr } = await toolhost([...args, '--json'], options);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  return JSON.parse(stdout) as Output;
}
