import { performance } from 'node:perf_hooks';

const lookMs = 250;
/** A look that is later than this, in ms, shows that the process was stopped (SIGSTOP, no processor time). */
const stopMs = 500;

let timer: NodeJS.Timeout | undefined;
let lookedAt = 0;
let stoppedMs = 0;
let wentOnAt = Number.NEGATIVE_INFINITY;

/** Adds a stop since the last look. Returns the monotonic time in ms. */
function look(): number {
  const now = performance.now();
  if (timer === undefined) timer = setInterval(look, lookMs).unref();
  else if (now - lookedAt > lookMs + stopMs) {
    stoppedMs += now - lookedAt;
    wentOnAt = now;
  }
  lookedAt = now;
  return now;
}

/** Stops are noticed from the first call of this or another function of this file on. */
export function noticeStops(): void {
  look();
}

/**
 * Monotonic ms in which this process ran. Time in which it was stopped does not count: what others
 * sent or read meanwhile could not be seen. Whatever waits in this process waits by this clock. It does not tell how old
 * something is.
 */
export function runningNow(): number {
  return look() - stoppedMs;
}

/** Ms since the process last went on after a stop; infinite when no stop was noticed. */
export function sinceStop(): number {
  return look() - wentOnAt;
}

/** Runs `expire` when this process has run for `ms`. Returns a function that cancels it. The timer keeps no process alive. */
export function afterRunning(ms: number, expire: () => void): () => void {
  const until = runningNow() + ms;
  let waiting = setTimeout(wait, ms).unref();
  function wait(): void {
    const left = until - runningNow();
    if (left > 0) waiting = setTimeout(wait, left).unref();
    else expire();
  }
  return () => clearTimeout(waiting);
}
