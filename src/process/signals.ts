import type { Log } from '../log.ts';

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
