import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** `NODE_OPTIONS` of a process in which jobs can hang. */
export const hangingJobs = `--import=${pathToFileURL(join(import.meta.dirname, 'hanging-thread.ts'))}`;

/** A job that hangs in a native function until the test lets it go. */
export type HangingJob = {
  /** JSON of at least so many bytes: the body in the input of the job. */
  body(bytes?: number): string;
  /** Resolves when a thread hangs in the job. */
  begun(): Promise<void>;
  /** Lets the job go, also one that is about to hang. */
  release(): Promise<void>;
};

export function hangingJob(): HangingJob {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-hanging-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  let writing: FileHandle | undefined;
  return {
    body: (bytes = 0) => JSON.stringify({ 'hang at': pipe, rest: 'x'.repeat(bytes) }),
    async begun() {
      writing = await open(pipe, 'w');
    },
    async release() {
      // Opened for both, a pipe waits for nobody.
      const both = await open(pipe, constants.O_RDWR);
      // Removed while it is open: whoever opens it later would wait for ever.
      rmSync(folder, { recursive: true });
      await Promise.all([both.close(), writing?.close()]);
    },
  };
}
