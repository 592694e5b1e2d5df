import type { App } from '../app/app.ts';
import { createLog, type Log } from '../log.ts';

/** Stops at the first signal, and ends at once at the second. */
export function stopOnSignals(log: Log, stop: () => Promise<boolean>): void {
  let stopping = false;
  const onSignal = (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping: running calls finish first');
    void endWith(log, stop);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/** A process whose database is lost ends with 1; what it still answers is not kept. */
export function stopWhenLost(log: Log, lost: Promise<string>, stop: () => Promise<boolean>): void {
  void lost.then((why) => {
    log.fatal(why);
    return endWith(log, async () => {
      await stop();
      return false;
    });
  });
}

/** Ends the process: with 0 when everything was finished, with 1 when not. */
export async function endWith(log: Log, stop: () => Promise<boolean>): Promise<void> {
  try {
    const isComplete = await stop();
    if (!isComplete) log.error('not everything could be finished in time');
    process.exit(isComplete ? 0 : 1);
  } catch (error) {
    log.error({ err: error }, 'did not stop cleanly');
    process.exit(1);
  }
}

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
