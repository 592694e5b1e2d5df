import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** `bin/toolhost serve` in a process of its own. */
export type ChildToolhost = {
  url: string;
  pid: number;
  /** Everything it wrote so far, on both outputs. */
  output(): string;
  /** Resolves like `end` when it ends by itself. */
  ended(): Promise<number | NodeJS.Signals>;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

const program = join(import.meta.dirname, '..', '..', 'bin', 'toolhost');

/** Resolves when it can serve; rejects with what it wrote when it ends before. */
export async function startChildToolhost(env: Record<string, string>): Promise<ChildToolhost> {
  const child = spawn(program, ['serve'], {
    env: { PATH: process.env.PATH ?? '', PORT: '0', DEMO: '0', QUOTAS: 'writes=0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const output = () => Buffer.concat(chunks).toString();
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^toolhost ready (\S+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void closed.then(() => reject(new Error(output())));
  });
  const ended = closed.then(([code, signal]) => signal ?? code ?? 0);
  return {
    url,
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
