import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from '../log.ts';
import type { Heard, Said } from './worker.ts';

/** The processes that serve: started, replaced when they die, stopped. */
export type WorkerPool = {
  fork(): void;
  workers(): Worker[];
  /** Resolves with the first death before `settle`; a start that fails once would fail again. */
  failed: Promise<void>;
  /** From now on whoever dies is replaced. */
  settle(): void;
  /** Resolves when workers die faster than it makes sense to replace them. */
  givenUp: Promise<void>;
  /** Lets running calls finish, for at most so many ms. False when something had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** A worker that dies younger than this may die of something that the next one meets as well. */
const youngMs = 5000;
const firstPauseMs = 50;
const mostYoungDeaths = 8;

export function createWorkerPool(
  env: Record<string, string>,
  log: Log,
  hear: (worker: Worker, said: Said) => void,
): WorkerPool {
  const failed = Promise.withResolvers<void>();
  const givenUp = Promise.withResolvers<void>();
  let settled = false;
  let stopping = false;
  let youngDeaths = 0;

  function fork(): void {
    if (stopping) return;
    const worker = cluster.fork(env);
    const forkedAt = performance.now();
    worker.on('message', (said: Said) => hear(worker, said));
    worker.on('exit', (exitCode, signal) => {
      if (stopping) return;
      if (!settled) failed.resolve();
      else replace({ worker: worker.process.pid, exitCode, signal }, performance.now() - forkedAt);
    });
  }

  function replace(ended: object, livedMs: number): void {
    youngDeaths = livedMs < youngMs ? youngDeaths + 1 : 0;
    if (youngDeaths === mostYoungDeaths) {
      log.fatal(ended, `${mostYoungDeaths} workers in a row ended within seconds of their start; the service gives up`);
      givenUp.resolve();
      return;
    }
    const pauseMs = youngDeaths === 0 ? 0 : firstPauseMs * 2 ** (youngDeaths - 1);
    log.error({ ...ended, pauseMs }, 'a worker ended; another one takes its place');
    setTimeout(fork, pauseMs);
  }

  const alive = () => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

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
      for (const worker of workers) tell(worker, { kind: 'stop' });
      const timer = setTimeout(() => {
        for (const worker of workers) worker.process.kill('SIGKILL');
      }, ms);
      const codes = await Promise.all(ends);
      clearTimeout(timer);
      return codes.every(([code]) => code === 0);
    },
  };
}

export function tell(worker: Worker, heard: Heard): void {
  // One that is gone needs no answer.
  if (worker.isConnected()) worker.send(heard, () => undefined);
}
