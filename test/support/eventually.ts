import { setTimeout as delay } from 'node:timers/promises';

/** Longer than anything takes on a busy machine; a claim about time names its own limit. */
const deadlineMs = 20_000;
const pauseMs = 10;

/** Repeats a check until it passes; throws its last failure after the deadline. */
export async function eventually<Result>(
  check: () => Result | Promise<Result>,
  withinMs = deadlineMs,
): Promise<Result> {
  const until = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > until) throw error;
    }
    await delay(pauseMs);
  }
}
