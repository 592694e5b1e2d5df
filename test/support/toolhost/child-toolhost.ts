import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { withGenerousTimeouts } from '../store/generous-limits.ts';

/** `toolhost serve` in a separate process. */
export type ChildToolhost = {
  /** Log line that announces readiness. */
  readyLine: string;
  url: string;
  pid: number;
  /** Returns its output so far, of both streams or of one. */
  output(stream?: 'stdout' | 'stderr'): string;
  /** Resolves like `end` when it exits without a signal from the test. */
  ended(): Promise<number | NodeJS.Signals>;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and resolves with the exit code, or with the signal that ended the process. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

const defaultProgram = join(import.meta.dirname, '..', '..', '..', 'bin', 'toolhost');

/** Resolves when the service is ready. Rejects with its output when it exits first. */
export async function startChildToolhost(
  env: Record<string, string>,
  program: string = defaultProgram,
  args: readonly string[] = ['serve'],
): Promise<ChildToolhost> {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', PORT: '0', DEMO: '0', QUOTAS: 'writes=0', ...withGenerousTimeouts(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: { stream: 'stdout' | 'stderr'; chunk: Buffer }[] = [];
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].on('data', (chunk: Buffer) => chunks.push({ stream, chunk }));
  const output: ChildToolhost['output'] = (stream) =>
    Buffer.concat(
      chunks.filter(({ stream: from }) => stream === undefined || from === stream).map(({ chunk }) => chunk),
    ).toString();
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const readyLine = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => line.startsWith('toolhost ready ') && resolve(line));
    void closed.then(() => reject(new Error(output())));
  });
  const ended = closed.then(([code, signal]) => signal ?? code ?? 0);
  return {
    readyLine,
    url: readyLine.replace('toolhost ready ', ''),
    pid: child.pid ?? 0,
    output,
    ended: () => ended,
    signal: (signal) => void child.kill(signal),
    end(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}
