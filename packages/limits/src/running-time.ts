import { performance } from 'node:perf_hooks';

const checkIntervalMs = 250;
/** A longer interval between two checks, in ms, means that the process was stopped. */
const maxCheckGapMs = 750;
/**
 * Maximum number of stops that are remembered. Each lasts at least half a second, so these cover far more than any
 * limit.
 */
const maxRecordedStops = 1000;

let timer: NodeJS.Timeout | undefined;
let lastCheckedAt = 0;
let stoppedMs = 0;
const stops: { endedAt: number; ms: number }[] = [];

/**
 * Records a stop since the last check. The regular interval between two checks counts as running time, so the clock
 * advances even if one stop follows another. Returns the monotonic time in ms.
 */
function checkForStop(): number {
  const now = performance.now();
  if (timer === undefined) timer = setInterval(checkForStop, checkIntervalMs).unref();
  else if (now - lastCheckedAt > maxCheckGapMs) {
    const ms = now - lastCheckedAt - checkIntervalMs;
    stoppedMs += ms;
    stops.push({ endedAt: now, ms });
    if (stops.length > maxRecordedStops) stops.shift();
  }
  lastCheckedAt = now;
  return now;
}

/** Starts to detect stops. Any other function in this file does the same on its first call. */
export function startStopDetection(): void {
  checkForStop();
}

/**
 * Returns the monotonic ms during which this process ran. Stops do not count (SIGSTOP, no processor time, a long
 * garbage collection): during a stop the process could not see what others sent or read. All timeouts in this process
 * use this clock. It does not measure age.
 */
export function getRunningTimeMs(): number {
  return checkForStop() - stoppedMs;
}

/**
 * Returns the ms of all stops that ended within the last `ms`. Limits on others are extended by this much to be fair.
 */
export function getStoppedMs(ms: number): number {
  const since = checkForStop() - ms;
  let sum = 0;
  for (let index = stops.length - 1; index >= 0; index -= 1) {
    const stop = stops[index] as (typeof stops)[number];
    if (stop.endedAt < since) break;
    sum += stop.ms;
  }
  return sum;
}

/**
 * Calls `expire` once this process has run for `ms`. Returns a function that cancels it. The timer does not keep the
 * process alive.
 */
export function setRunningTimeout(ms: number, expire: () => void): () => void {
  const expiresAt = getRunningTimeMs() + ms;
  let timeout = setTimeout(check, ms).unref();
  function check(): void {
    const remainingMs = expiresAt - getRunningTimeMs();
    if (remainingMs > 0) timeout = setTimeout(check, remainingMs).unref();
    else expire();
  }
  return () => clearTimeout(timeout);
}
