import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Value of `NODE_OPTIONS` for a process in which jobs can hang. */
export const hangingJobOptions = `--import=${pathToFileURL(join(import.meta.dirname, 'hanging-thread.ts'))}`;

/** A job that hangs in a native function until the test releases it. */
export type HangingJob = {
  /** Returns JSON of at least this many bytes: the body in the job's input. */
  body(bytes?: number): string;
  /** Resolves when a thread hangs in the job. */
  waitUntilHanging(): Promise<void>;
  /** Releases the job, including one that is about to hang. */
  release(): Promise<void>;
};

export function createHangingJob(): HangingJob {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-hanging-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  let writeHandle: FileHandle | undefined;
  return {
    body: (bytes = 0) => JSON.stringify({ 'hang at': pipe, rest: 'x'.repeat(bytes) }),
    async waitUntilHanging() {
      writeHandle = await open(pipe, 'w');
    },
    async release() {
      // Opening a pipe for both reading and writing does not block.
      const readWriteHandle = await open(pipe, constants.O_RDWR);
      // Removed while it is open, because a process that opened it later would block forever.
      rmSync(folder, { recursive: true });
      await Promise.all([readWriteHandle.close(), writeHandle?.close()]);
    },
  };
}
