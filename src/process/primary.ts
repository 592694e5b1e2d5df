import type { Worker } from 'node:cluster';
import { startUpkeep } from '../app/elected/upkeep.ts';
import { openKeyring } from '../app/keys/keyring.ts';
import { outageLog } from '../app/observability/outage-log.ts';
import { openStore } from '../app/open-store.ts';
import { processClocks } from '../app/surroundings.ts';
import type { Settings } from '../config.ts';
import { AppError } from '../errors.ts';
import { startLocalParts } from '../local/parts.ts';
import type { Log } from '../log.ts';
import type { Metric } from '../telemetry/metric.ts';
import { findPort } from './listen.ts';
import type { FromWorker } from './worker.ts';
import { createWorkerPool, sendToWorker } from './worker-pool.ts';

/** The workers that serve one port, as the primary process sees them. The primary itself serves no requests. */
export type Workers = {
  baseUrl: string;
  /** See `Database`. */
  lost: Promise<string>;
  /** Resolves when workers die faster than it makes sense to replace them. */
  givenUp: Promise<void>;
  /** Lets running calls finish for at most `ms` milliseconds. False when some had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** How often the primary process reads the database's clock. */
const timingMs = 60_000;

/**
 * Does the work that only one process may do: it locks and migrates the database, deletes old rows and runs the parts of
 * local mode. It starts the workers and replaces those that die. Resolves when all workers can serve.
 * @throws AppError conflict for a port or file in use; unavailable when a worker does not start
 */
export async function startWorkers(settings: Settings, log: Log): Promise<Workers> {
  const { config } = settings;
  const port = await findPort(config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  const database = await openStore(settings, true, log, processClocks);
  // The workers check the keys too, but only the primary logs the result.
  await openKeyring(settings, database, log);
  // The workers learn the database's time with each poll for changes; the primary does not poll.
  const outage = outageLog(log, 'could not read the clock of the database', 'the clock of the database is read again');
  const timing = setInterval(() => {
    database.time.measure().then(outage.onSuccess, outage.onError);
  }, timingMs).unref();
  const upkeep = startUpkeep(config, database, log, database.time.now);
  const local = await startLocalParts(settings, baseUrl, port);
  const { examplePort, identity } = local;
  const allReady = Promise.withResolvers<void>();
  let ready = 0;
  let providesExample = local.providesExample;

  const pool = createWorkerPool({ PORT: String(port) }, log, (worker, message) =>
    handlers[message.kind](worker, message as never),
  );
  const metrics = createGatherMetrics();
  const handlers: { [Kind in FromWorker['kind']]: (worker: Worker, message: FromWorker & { kind: Kind }) => void } = {
    join(worker) {
      sendToWorker(worker, { kind: 'start', ...(examplePort !== undefined && { examplePort }), providesExample });
      // Only one worker stores the example; two would conflict over the slug.
      providesExample = false;
    },
    ready(worker) {
      log.info({ worker: worker.process.pid }, 'a worker serves');
      if (++ready === config.workers) allReady.resolve();
    },
    identity: (worker) => void findIdentity(worker),
    metrics: (worker) =>
      void metrics.gather(pool.workers()).then((all) => sendToWorker(worker, { kind: 'metrics', all })),
    report: (worker, message) => metrics.take(worker, message.metrics),
  };

  async function findIdentity(worker: Worker): Promise<void> {
    try {
      sendToWorker(worker, { kind: 'identity', options: await identity.find() });
    } catch (error) {
      log.error({ err: error }, 'the identity provider of local mode did not start');
      sendToWorker(worker, { kind: 'identity' });
    }
  }

  for (let count = 0; count < config.workers; count++) pool.fork();
  await Promise.race([allReady.promise, pool.failed.then(refuseStart)]);
  pool.settle();
  return {
    baseUrl,
    lost: database.lost,
    givenUp: pool.givenUp,
    async stop(ms) {
      const isComplete = await pool.stop(ms);
      clearInterval(timing);
      await upkeep.stop();
      await local.close();
      await database.close();
      return isComplete;
    },
  };
}

function refuseStart(): never {
  throw new AppError('unavailable', 'a worker did not start; its log lines above say why');
}

/** Collects the metrics of all workers for the worker that answers a scrape. */
type GatherMetrics = {
  gather(from: Iterable<Worker>): Promise<Metric[][]>;
  take(worker: Worker, metrics: Metric[]): void;
};

/** After this time a worker that has not answered counts with what it last said. */
const patienceMs = 1000;

function createGatherMetrics(): GatherMetrics {
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
