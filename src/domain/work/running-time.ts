import { performance } from 'node:perf_hooks';

/** A timer that is later than this, in ms, shows that the process was stopped (SIGSTOP, no processor time). */
export const stopMs = 500;
const lookMs = 1000;

/**
 * Runs `expire` after `ms` in which this process ran, or up to a second later. Time in which it was stopped does not
 * count: what others sent or read meanwhile could not be seen. Returns a function that cancels it. The timer keeps no
 * process alive.
 */
export function afterRunning(ms: number, expire: () => void): () => void {
  let left = ms;
  let before = performance.now();
  const every = Math.min(lookMs, ms);
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - before < every + stopMs) left -= now - before;
    before = now;
    if (left > 0) return;
    clearInterval(timer);
    expire();
  }, every).unref();
  return () => clearInterval(timer);
}
