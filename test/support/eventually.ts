import { setTimeout as delay } from 'node:timers/promises';

/** Longer than anything takes on a busy machine; a claim about time names its own limit. */
const deadlineMs = 20_000;
const pauseMs = 10;

/**
 * Repeats a check until it passes; throws the failure of the first check that begins after the deadline. The deadline is
 * counted by a timer: a machine that is busy delays the timer as well as what is waited for.
 */
export async function eventually<Result>(
  check: () => Result | Promise<Result>,
  withinMs = deadlineMs,
): Promise<Result> {
  let leftMs = withinMs;
  const deadline = setInterval(() => {
    leftMs -= pauseMs;
  }, pauseMs);
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
