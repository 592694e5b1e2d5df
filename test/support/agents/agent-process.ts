import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { type Ended, transcript } from '../toolhost/run-script.ts';

/** Working directory and environment of an agent. */
export type Surroundings = { cwd: string; env: Record<string, string> };

/** Kills an agent that hangs; far longer than any agent takes on a busy machine. */
const limitMs = 5 * 60_000;

/** Program that provides a terminal. */
const script = '/usr/bin/script';

async function run(words: readonly string[], surroundings: Surroundings, hasPerson: boolean): Promise<Ended> {
  const [command = '', ...args] = words;
  // A separate process group, because some agents are a script that starts the program.
  const child = spawn(command, args, { ...surroundings, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  if (!hasPerson) child.stdin.end();
  child.stdout.on('data', (chunk: Buffer) => {
    if (hasPerson && chunk.includes('[Y/n]')) child.stdin.write('y\n');
  });
  const timer = setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), limitMs);
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]).finally(() => clearTimeout(timer));
  return { code, signal, stdout, stderr };
}

/** Runs a command that must succeed. */
export async function runAlone(words: readonly string[], surroundings: Surroundings): Promise<void> {
  const ended = await run(words, surroundings, false);
  assert.equal(ended.code, 0, `${words.join(' ')}: ${transcript(ended)}`);
}

/**
 * Runs a command in a terminal where a person confirms every prompt, until it prints the message that it is done.
 * Ignores its exit code, because Gemini CLI ends a slash command with an error.
 */
export async function runInTerminal(words: readonly string[], surroundings: Surroundings, done: RegExp): Promise<void> {
  if (!existsSync(script)) {
    throw new Error(`These tests need ${script}. Install it, on Debian with "apt-get install bsdutils".`);
  }
  const command = words.map((word) => `'${word}'`).join(' ');
  const ended = await run([script, '--quiet', '--command', command, '/dev/null'], surroundings, true);
  assert.match(ended.stdout, done, transcript(ended));
}
