import type { App } from '../app/app.ts';
import { createLog, type Log } from '../log.ts';

/** Stops on the first signal, and exits immediately on the second. */
export function stopOnSignals(log: Log, stop: () => Promise<boolean>): void {
  let isStopping = false;
  const onSignal = (signal: string) => {
    if (isStopping) process.exit(1);
    isStopping = true;
    log.info({ signal }, 'stopping: running calls finish first');
    void exitAfter(log, stop);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/** Stops and exits with code 1 when the database is lost. Data that the process still writes is not retained. */
export function stopOnDatabaseLoss(log: Log, databaseLost: Promise<string>, stop: () => Promise<boolean>): void {
  void databaseLost.then((reason) => {
    log.fatal(reason);
    return exitAfter(log, async () => {
      await stop();
      return false;
    });
  });
}

/** Exits with code 0 if everything was finished, otherwise with 1. */
export async function exitAfter(log: Log, stop: () => Promise<boolean>): Promise<void> {
  try {
    const isComplete = await stop();
    if (!isComplete) log.error('some work could not be finished in time');
    process.exit(isComplete ? 0 : 1);
  } catch (error) {
    log.error({ err: error }, 'the process did not stop cleanly');
    process.exit(1);
  }
}

/** Time for the last log lines, in ms. A libuv thread writes the log. */
const logFlushMs = 100;

/**
 * Exits the process with its exit code even if threads are in native V8 code, which cannot be interrupted:
 * `process.exit` would wait for them, for hours. Replacing the process with another program ends all threads and
 * preserves the exit code. On a system without such a replacement, the process kills itself.
 */
export function exitDespiteThreads(logLevel: string, { threads }: Pick<App, 'threads'>): void {
  process.on('exit', (code) => {
    const { busy, ending } = threads.getStates();
    if (busy + ending === 0) return;
    const log = createLog(logLevel, { isSynchronous: true });
    log.warn({ busy, ending }, 'the process exits without waiting for threads that are still busy');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, logFlushMs);
    try {
      process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  });
}
