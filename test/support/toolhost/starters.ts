import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { DatabaseOptions } from '../../../apps/server/src/store/database.ts';

/** Several processes that open one database at the same moment. */
export type DatabaseOpeners = {
  /**
   * Returns the result of each process: `opened`, or its error. The processes keep the database open until the next
   * request.
   */
  open(options: DatabaseOptions): Promise<string[]>;
  stop(): Promise<void>;
};

export async function startDatabaseOpeners(count: number): Promise<DatabaseOpeners> {
  const openers = await Promise.all(Array.from({ length: count }, startDatabaseOpener));
  return {
    open: (options) => Promise.all(openers.map((opener) => requestOpen(opener, options))),
    stop: async () => void (await Promise.all(openers.map(stopOpener))),
  };
}

type DatabaseOpener = { child: ChildProcess; lines: Interface };

async function startDatabaseOpener(): Promise<DatabaseOpener> {
  const program = join(import.meta.dirname, 'starter.ts');
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  return { child, lines };
}

async function requestOpen({ child, lines }: DatabaseOpener, options: DatabaseOptions): Promise<string> {
  const reply = once(lines, 'line');
  child.stdin?.write(`${JSON.stringify(options)}\n`);
  return String((await reply)[0]);
}

async function stopOpener({ child }: DatabaseOpener): Promise<void> {
  const exited = once(child, 'exit');
  child.stdin?.end();
  await exited;
}
