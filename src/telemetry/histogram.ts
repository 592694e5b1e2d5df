import { label, type Metric, type Sample } from './metric.ts';

/** A histogram of durations. */
type Histogram = { observe(ms: number): void; read(): Metric };

/** `boundsMs` are the ascending upper bounds of the buckets; they are printed in seconds. */
export function createHistogram(name: string, help: string, boundsMs: readonly number[]): Histogram {
  const counts = new Array<number>(boundsMs.length + 1).fill(0);
  let sumMs = 0;

  function samples(): Sample[] {
    let below = 0;
    const buckets = counts.map((count, i) => {
      below += count;
      const bound = boundsMs[i];
      return {
        suffix: '_bucket',
        labels: label('le', bound === undefined ? '+Inf' : String(bound / 1000)),
        value: below,
      };
    });
    return [
      ...buckets,
      { suffix: '_sum', labels: '', value: sumMs / 1000 },
      { suffix: '_count', labels: '', value: below },
    ];
  }

  return {
    observe(ms) {
      let i = 0;
      while (i < boundsMs.length && ms > (boundsMs[i] as number)) i++;
      counts[i] = (counts[i] as number) + 1;
      sumMs += ms;
    },
    read: () => ({ name, help, type: 'histogram', merge: 'sum', samples: samples() }),
  };
}

/** Delay of the event loop. */
type LagHistogram = { read: Histogram['read']; stop(): void };

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
