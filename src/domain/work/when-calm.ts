import { performance } from 'node:perf_hooks';

/** How long the event loop must have had nothing to do. */
const calmMs = 0.3;
/** One that never rests holds nothing back for longer. */
const longestMs = 10;

let waiting: Promise<void> | undefined;

/**
 * Waits until the event loop has had nothing to do, for about ten milliseconds at most. Long work is handed to another
 * thread then. Where both threads share a core and the sender goes on working, Linux gives the core to the woken thread for
 * a whole slice (4 ms at 250 Hz), whatever their priorities are. A sender that sleeps gets it back for the next call.
 */
export function whenCalm(): Promise<void> {
  waiting ??= calm().finally(() => {
    waiting = undefined;
  });
  return waiting;
}

async function calm(): Promise<void> {
  const until = performance.now() + longestMs;
  let before: number;
  do {
    before = idleMs();
    await new Promise((resolve) => setTimeout(resolve, 1));
  } while (idleMs() - before < calmMs && performance.now() < until);
}

/** How long the event loop has slept since it began. */
function idleMs(): number {
  return performance.eventLoopUtilization().idle;
}
