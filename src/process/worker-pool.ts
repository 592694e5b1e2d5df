import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from '../log.ts';
import type { FromWorker, ToWorker } from './worker.ts';

/** Starts the worker processes, replaces those that die, and stops them. */
export type WorkerPool = {
  fork(): void;
  workers(): Worker[];
  /** Resolves at the first death before `settle`. A failed start is not retried: it would fail again. */
  failed: Promise<void>;
  /** From now on workers that die are replaced. */
  settle(): void;
  /**
   * Resolves when workers die faster than it makes sense to replace them. A replacement that does not start, for example
   * because the database does not answer, is tried again and again while others serve.
   */
  givenUp: Promise<void>;
  /** Lets running calls finish for at most `ms` milliseconds. False when some had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** A worker that serves for less than this may die of something that kills its replacement as well. */
const youngMs = 5000;
const firstPauseMs = 50;
const mostYoungDeaths = 8;

export function createWorkerPool(
  env: Record<string, string>,
  log: Log,
  onMessage: (worker: Worker, message: FromWorker) => void,
): WorkerPool {
  const failed = Promise.withResolvers<void>();
  const givenUp = Promise.withResolvers<void>();
  let settled = false;
  let stopping = false;
  let youngDeaths = 0;
  /** Replacements in a row that did not start while others served. */
  let failedStarts = 0;
  /** The workers that serve, and since when, in monotonic ms. */
  const serving = new Map<Worker, number>();

  function fork(): void {
    if (stopping) return;
    const worker = cluster.fork(env);
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') {
        serving.set(worker, performance.now());
        failedStarts = 0;
      }
      onMessage(worker, message);
    });
    worker.on('exit', (exitCode, signal) => {
      const readyAt = serving.get(worker);
      serving.delete(worker);
      if (stopping) return;
      if (!settled) failed.resolve();
      else replace({ worker: worker.process.pid, exitCode, signal }, readyAt);
    });
  }

  function replace(ended: object, readyAt: number | undefined): void {
    const servedMs = readyAt === undefined ? 0 : performance.now() - readyAt;
    if (readyAt === undefined && serving.size > 0) failedStarts += 1;
    else youngDeaths = servedMs < youngMs ? youngDeaths + 1 : 0;
    if (youngDeaths === mostYoungDeaths) {
      log.fatal(ended, `${mostYoungDeaths} workers in a row ended within seconds of their start; the service gives up`);
      givenUp.resolve();
      return;
    }
    const inARow = Math.min(youngDeaths + failedStarts, mostYoungDeaths - 1);
    const pauseMs = inARow === 0 ? 0 : firstPauseMs * 2 ** (inARow - 1);
    log.error({ ...ended, pauseMs }, 'a worker ended; another one takes its place');
    setTimeout(fork, pauseMs);
  }

  // A worker that has died may be listed until its channel is closed.
  const alive = () => listed().filter((worker) => !worker.isDead());
  const listed = () => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

  return {
    fork,
    workers: alive,
    failed: failed.promise,
    settle() {
      settled = true;
    },
    givenUp: givenUp.promise,
    async stop(ms) {
      stopping = true;
      const workers = alive();
      const ends = workers.map((worker) => once(worker, 'exit') as Promise<[number | null]>);
      for (const worker of workers) sendToWorker(worker, { kind: 'stop' });
      const timer = setTimeout(() => {
        for (const worker of workers) worker.process.kill('SIGKILL');
      }, ms);
      const codes = await Promise.all(ends);
      clearTimeout(timer);
      return codes.every(([code]) => code === 0);
    },
  };
}

export function sendToWorker(worker: Worker, message: ToWorker): void {
  // A worker that has died needs no answer.
  if (worker.isConnected()) worker.send(message, () => undefined);
}
