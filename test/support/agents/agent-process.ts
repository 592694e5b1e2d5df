import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { formatTranscript, type ScriptResult } from '../toolhost/run-script.ts';

/** Working directory and environment of an agent. */
export type RunOptions = { cwd: string; env: Record<string, string> };

/** Kills an agent that hangs; far longer than any agent takes on a busy machine. */
const timeoutMs = 5 * 60_000;

/** Program that provides a terminal. */
const script = '/usr/bin/script';

async function run(argv: readonly string[], options: RunOptions, isInteractive: boolean): Promise<ScriptResult> {
  const [command = '', ...args] = argv;
  // A separate process group, because some agents are a script that starts the program.
  const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  if (!isInteractive) child.stdin.end();
  child.stdout.on('data', (chunk: Buffer) => {
    if (isInteractive && chunk.includes('[Y/n]')) child.stdin.write('y\n');
  });
  const timer = setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), timeoutMs);
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]).finally(() => clearTimeout(timer));
  return { code, signal, stdout, stderr };
}

/** Runs a command that must succeed. */
export async function runCommand(argv: readonly string[], options: RunOptions): Promise<void> {
  const result = await run(argv, options, false);
  assert.equal(result.code, 0, `${argv.join(' ')}: ${formatTranscript(result)}`);
}

/**
 * Runs a command in a terminal where a person confirms every prompt, until it prints the message that it is done.
 * Ignores its exit code, because Gemini CLI ends a slash command with an error.
 */
export async function runInTerminal(
  argv: readonly string[],
  options: RunOptions,
  successPattern: RegExp,
): Promise<void> {
  if (!existsSync(script)) {
    throw new Error(`These tests need ${script}. Install it, on Debian with "apt-get install bsdutils".`);
  }
  const command = argv.map((word) => `'${word}'`).join(' ');
  const result = await run([script, '--quiet', '--command', command, '/dev/null'], options, true);
  assert.match(result.stdout, successPattern, formatTranscript(result));
}
