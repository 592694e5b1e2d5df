import { createHistogram, type Histogram } from './histogram.ts';

/** How late the event loop runs what is due. */
export type LagHistogram = { read: Histogram['read']; stop(): void };

const intervalMs = 20;
const boundsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

/**
 * A histogram of our own: that of `perf_hooks` counts its own interval into every value and has to be emptied by
 * whoever reads it, so that two readers would each see a part. This one can be added up over time and processes.
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
