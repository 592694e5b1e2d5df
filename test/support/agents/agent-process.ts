import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { type Ended, transcript } from '../toolhost/run-script.ts';

/** Where an agent runs. */
export type Surroundings = { cwd: string; env: Record<string, string> };

/** Ends what hangs; far longer than any agent takes on a busy machine. */
const limitMs = 5 * 60_000;

/** Gives a program a terminal. */
const script = '/usr/bin/script';

async function run(words: readonly string[], surroundings: Surroundings, hasPerson: boolean): Promise<Ended> {
  const [command = '', ...args] = words;
  // A group of its own, because some agents are a script that starts the program.
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
 * Runs a command in a terminal, where a person agrees to what it asks, up to the message that it has done its work. Its
 * exit code is not looked at: Gemini CLI ends a command of its conversation with an error.
 */
export async function runInTerminal(words: readonly string[], surroundings: Surroundings, done: RegExp): Promise<void> {
  if (!existsSync(script)) {
    throw new Error(`These tests need ${script}. Install it, on Debian with "apt-get install bsdutils".`);
  }
  const command = words.map((word) => `'${word}'`).join(' ');
  const ended = await run([script, '--quiet', '--command', command, '/dev/null'], surroundings, true);
  assert.match(ended.stdout, done, transcript(ended));
}
