import { label, type Metric, type Sample } from './metric.ts';

/** A histogram of durations. */
export type Histogram = { observe(ms: number): void; read(): Metric };

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
