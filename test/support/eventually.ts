import { setTimeout as delay } from 'node:timers/promises';

/** Longer than anything takes on a busy machine; a claim about time names its own limit. */
const deadlineMs = 20_000;
const pauseMs = 10;

/**
 * Repeats a check until it passes; throws the failure of the first check that begins after the deadline. A timer of
 * 10 ms counts the time, and at most 20 ms whenever it runs: a busy machine delays the timer as well as what is waited for.
 */
export async function eventually<Result>(
  check: () => Result | Promise<Result>,
  withinMs = deadlineMs,
): Promise<Result> {
  let leftMs = withinMs;
  let before = performance.now();
  const deadline = setInterval(() => {
    const now = performance.now();
    leftMs -= Math.min(now - before, 2 * pauseMs);
    before = now;
  }, pauseMs).unref();
  try {
    for (;;) {
      const isLast = leftMs <= 0;
      try {
        return await check();
      } catch (error) {
        if (isLast) throw error;
      }
      await delay(pauseMs);
    }
  } finally {
    clearInterval(deadline);
  }
}
