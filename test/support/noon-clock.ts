const dayMs = 24 * 60 * 60 * 1000;

/**
 * Returns a clock (epoch ms) that starts at noon of the current day (UTC), so that the day does not change during a
 * test.
 */
export function createNoonClock(): () => number {
  const startedAt = Date.now();
  const noon = startedAt - (startedAt % dayMs) + dayMs / 2;
  return () => noon + Date.now() - startedAt;
}
