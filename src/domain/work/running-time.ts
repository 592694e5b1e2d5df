import { performance } from 'node:perf_hooks';

const lookMs = 250;
/** Two looks that are further apart, in ms, show a stop. */
const mostBetweenLooksMs = 750;
/** Stops that are remembered; each is at least half a second long, so these cover far more than any limit. */
const mostStops = 1000;

let timer: NodeJS.Timeout | undefined;
let lookedAt = 0;
let stoppedMs = 0;
const stops: { endedAt: number; ms: number }[] = [];

/**
 * Adds a stop since the last look. The usual time between two looks counts as running, so that the clock goes on where
 * one stop follows the other. Returns the monotonic time in ms.
 */
function look(): number {
  const now = performance.now();
  if (timer === undefined) timer = setInterval(look, lookMs).unref();
  else if (now - lookedAt > mostBetweenLooksMs) {
    const ms = now - lookedAt - lookMs;
    stoppedMs += ms;
    stops.push({ endedAt: now, ms });
    if (stops.length > mostStops) stops.shift();
  }
  lookedAt = now;
  return now;
}

/** Stops are noticed from the first call of this or another function of this file on. */
export function noticeStops(): void {
  look();
}

/**
 * Monotonic ms in which this process ran. Stops do not count (SIGSTOP, no processor time, a long garbage collection): what
 * others sent or read meanwhile could not be seen. Whatever waits in this process waits by this clock. It does not tell
 * how old something is.
 */
export function runningNow(): number {
  return look() - stoppedMs;
}

/** Ms of the stops that ended within the last `ms`. A limit of others that is longer by so much is fair to them. */
export function stoppedWithin(ms: number): number {
  const since = look() - ms;
  let sum = 0;
  for (let index = stops.length - 1; index >= 0; index -= 1) {
    const stop = stops[index] as (typeof stops)[number];
    if (stop.endedAt < since) break;
    sum += stop.ms;
  }
  return sum;
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
