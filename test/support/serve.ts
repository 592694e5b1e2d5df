import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

/** The service as a process of its own, as people start it. */
export type ServeProcess = {
  url: string;
  dataDir: string;
  /** Ends it by a signal; gives everything that it wrote to standard error. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<string>;
  /** Deletes its data. */
  remove(): void;
};

const program = resolve(import.meta.dirname, '../../bin/toolhost');

/** Resolves when it says that it is ready. Nothing of this process's environment but PATH reaches it. */
export async function startServe(env: Record<string, string>): Promise<ServeProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-serve-'));
  const own = { PATH: process.env.PATH ?? '', PORT: '0', DATA_DIR: dataDir, DEMO: '0' };
  const child: ChildProcess = spawn(program, ['serve'], { env: { ...own, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('the process has no output');
  const log = text(stderr);
  const exited = once(child, 'exit');
  const ready = Promise.withResolvers<string>();
  createInterface({ input: stdout }).on('line', (line) => {
    const url = /^toolhost ready (\S+)$/.exec(line)?.[1];
    if (url) ready.resolve(url);
  });
  exited.then(async () => ready.reject(new Error(`it ended before it was ready:\n${await log}`)));
  const url = await ready.promise;
  return {
    url,
    dataDir,
    async end(signal) {
      child.kill(signal);
      await exited;
      return log;
    },
    remove: () => rmSync(dataDir, { recursive: true, force: true }),
  };
}
