import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { patientEnvironment } from '../store/patient-limits.ts';

export const binary = resolve(import.meta.dirname, '..', '..', '..', 'bin', 'toolhost');
/** Ends what hangs; far longer than any command takes on a busy machine. */
const limitMs = 10 * 60_000;

export type Ended = { code: number | null; stdout: string; stderr: string };

export type CommandOptions = {
  /** Replaces the environment, all but PATH and HOME. */
  env?: Record<string, string>;
  input?: string;
  cwd?: string;
  program?: string;
};

/** Starts `bin/toolhost` and lets it run. */
export function beginToolhost(
  args: readonly string[],
  { env = {}, cwd, program = binary }: CommandOptions,
): ChildProcessWithoutNullStreams {
  return spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...patientEnvironment(env) },
    ...(cwd !== undefined && { cwd }),
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
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

/** Runs `bin/toolhost` as a person would, with `input` as its standard input. */
export function toolhost(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const child = beginToolhost(args, options);
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return endOf(child);
}

/** The same for a command that must succeed with `--json`: what it printed. */
export async function toolhostJson<Output>(args: readonly string[], options: CommandOptions = {}): Promise<Output> {
  const { code, stdout, stderr } = await toolhost([...args, '--json'], options);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  return JSON.parse(stdout) as Output;
}
