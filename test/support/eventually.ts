import { setTimeout as delay } from 'node:timers/promises';

const deadlineMs = 5000;
const pauseMs = 10;

/** Tries until the check passes; after the deadline with its last failure. */
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
