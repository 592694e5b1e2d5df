import { setTimeout as delay } from 'node:timers/promises';

/**
 * Exceeds the time that anything takes on a busy machine. A test that makes a claim about time passes its own limit.
 */
const deadlineMs = 20_000;
const pauseMs = 10;

/**
 * Repeats a check until it passes. Throws the failure of the first check that begins after the deadline. A timer that
 * ticks every 10 ms measures the time and counts at most 20 ms per tick, because a busy machine delays the timer as
 * much as the expected event.
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
