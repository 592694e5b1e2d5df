const dayMs = 24 * 60 * 60 * 1000;

/** A clock that begins at noon of this day (UTC), in epoch ms, so that no day ends during a test. */
export function fromNoon(): () => number {
  const begun = Date.now();
  const noon = begun - (begun % dayMs) + dayMs / 2;
  return () => noon + Date.now() - begun;
}
