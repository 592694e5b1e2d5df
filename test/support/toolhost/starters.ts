import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { DatabaseOptions } from '../../../src/store/database.ts';

/** Several processes that open one database at the same moment. */
export type Starters = {
  /**
   * Returns the result of each process: `opened`, or its error. The processes keep the database open until the next
   * request.
   */
  open(options: DatabaseOptions): Promise<string[]>;
  stop(): Promise<void>;
};

export async function startStarters(count: number): Promise<Starters> {
  const starters = await Promise.all(Array.from({ length: count }, startStarter));
  return {
    open: (options) => Promise.all(starters.map((starter) => ask(starter, options))),
    stop: async () => void (await Promise.all(starters.map(end))),
  };
}

type Starter = { child: ChildProcess; lines: Interface };

async function startStarter(): Promise<Starter> {
  const program = join(import.meta.dirname, 'starter.ts');
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  return { child, lines };
}

async function ask({ child, lines }: Starter, options: DatabaseOptions): Promise<string> {
  const answer = once(lines, 'line');
  child.stdin?.write(`${JSON.stringify(options)}\n`);
  return String((await answer)[0]);
}

async function end({ child }: Starter): Promise<void> {
  const ended = once(child, 'exit');
  child.stdin?.end();
  await ended;
}
