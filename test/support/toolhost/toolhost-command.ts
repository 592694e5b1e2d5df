import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { withGenerousTimeouts } from '../store/generous-limits.ts';
import { runInProcess } from './command-in-process.ts';

export const toolhostProgram = resolve(import.meta.dirname, '..', '..', '..', 'bin', 'toolhost');
/** Kills a command that hangs. Far longer than any command takes on a busy machine. */
const timeoutMs = 10 * 60_000;

export type CommandResult = { code: number | null; stdout: string; stderr: string };

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
  usesProcess?: boolean;
};

/** Starts `bin/toolhost` without waiting for its end. */
export function spawnToolhost(
  args: readonly string[],
  { env, cwd, program = toolhostProgram }: CommandOptions,
): ChildProcessWithoutNullStreams {
  return spawn(program, args, {
    env: buildEnvironment(env),
    ...(cwd !== undefined && { cwd }),
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
}

function buildEnvironment(env: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...withGenerousTimeouts(env) };
}

/** Waits until the process exits, and returns its result. */
export async function waitForExit(child: ChildProcessWithoutNullStreams): Promise<CommandResult> {
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
export function runToolhostCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  if (!needsOwnProcess(args, options)) return runInProcess(args, { ...options, env: buildEnvironment(options.env) });
  const child = spawnToolhost(args, options);
  // A command that does not read its input may exit before the input is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return waitForExit(child);
}

/** Returns true for the service, for another program, for Node options, and if the test asks for a separate process. */
function needsOwnProcess([command]: readonly string[], { env, program, usesProcess = false }: CommandOptions): boolean {
  return usesProcess || command === 'serve' || program !== undefined || env?.NODE_OPTIONS !== undefined;
}

/** Runs a command with `--json` that must succeed, and returns its parsed output. */
export async function runToolhostJson<Output>(args: readonly string[], options: CommandOptions = {}): Promise<Output> {
  const { code, stdout, stderr } = await runToolhostCommand([...args, '--json'], options);
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`);
  return JSON.parse(stdout) as Output;
}
