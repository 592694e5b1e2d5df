import { createHistogram, type Histogram } from './histogram.ts';

/** Delay of the event loop. */
export type LagHistogram = { read: Histogram['read']; stop(): void };

const intervalMs = 20;
const boundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

/**
 * A histogram of our own, which can be added up over time and processes. The one of `perf_hooks` adds its own interval to
 * every value, and must be reset by its reader, so that each of two readers would see only a part.
 */
export function startLagHistogram(): LagHistogram {
  const lag = createHistogram(
    'toolhost_event_loop_lag_seconds',
    'How late the event loop ran a timer that is due every 20 ms.',
    boundsMs,
  );
  let dueAt = performance.now() + intervalMs;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - dueAt));
    dueAt = now + intervalMs;
  }, intervalMs).unref();
  return { read: lag.read, stop: () => clearInterval(timer) };
}
