import { setTimeout as delay } from 'node:timers/promises';

const deadlineMs = 5000;
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
