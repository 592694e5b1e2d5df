import type { Worker } from 'node:cluster';
import type { Metric } from '../telemetry/metric.ts';
import { sendToWorker } from './worker-pool.ts';

/** Collects the metrics of all workers for the worker that answers a scrape. */
export type GatherMetrics = {
  gather(from: Iterable<Worker>): Promise<Metric[][]>;
  take(worker: Worker, metrics: Metric[]): void;
};

/** After this time a worker that has not answered counts with what it last said. */
const patienceMs = 1000;

export function createGatherMetrics(): GatherMetrics {
  const rounds = new Set<{ missing: Set<Worker>; all: Metric[][]; done: () => void }>();
  /** What each worker said last. Without it the sums would fall while a worker is late, and rise again. */
  const latest = new WeakMap<Worker, Metric[]>();
  return {
    async gather(from) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const round = { missing: new Set(from), all: [] as Metric[][], done: resolve };
      rounds.add(round);
      const timer = setTimeout(resolve, patienceMs);
      for (const worker of round.missing) sendToWorker(worker, { kind: 'report' });
      await promise;
      clearTimeout(timer);
      rounds.delete(round);
      const late = [...round.missing].filter((worker) => !worker.isDead());
      return [...round.all, ...late.flatMap((worker) => [latest.get(worker) ?? []])];
    },
    take(worker, metrics) {
      latest.set(worker, metrics);
      for (const round of rounds) {
        if (round.missing.delete(worker)) round.all.push(metrics);
        if (round.missing.size === 0) round.done();
      }
    },
  };
}
