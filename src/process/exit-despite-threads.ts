import type { App } from '../app/app.ts';
import { createLog } from '../log.ts';

/** The log is written by a thread of libuv. This is its time for the last lines, in ms. */
const lastLinesMs = 100;

/**
 * Ends the process with its exit code although threads are in native code of V8, which cannot be interrupted:
 * `process.exit` would wait for them, for hours. Another program in the place of this one ends them all and keeps the
 * exit code. Where a system has no such replacement, the process kills itself.
 */
export function exitDespiteThreads(logLevel: string, { threads }: Pick<App, 'threads'>): void {
  process.on('exit', (code) => {
    const { busy, ending } = threads.states();
    if (busy + ending === 0) return;
    const log = createLog(logLevel, { isImmediate: true });
    log.warn({ busy, ending }, 'the process ends without waiting for threads that are still busy');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lastLinesMs);
    try {
      process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  });
}
