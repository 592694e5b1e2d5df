import type { Worker } from 'node:cluster';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { AppError } from '@toolhost/errors/errors';
import { openKeyring } from '../app/keys/keyring.ts';
import { startMaintenance } from '../app/leader-jobs/leader-jobs.ts';
import { createOutageLog } from '../app/observability/fault-log.ts';
import { openStore } from '../app/open-store.ts';
import { processClocks } from '../app/runtime-options.ts';
import type { Settings } from '../config.ts';
import { createSignInLink } from '../local/sign-in-link.ts';
import { startSharedServices } from '../local/start-shared.ts';
import type { Log } from '../log.ts';
import type { Metric } from '../telemetry/metric.ts';
import { findPort } from './listen.ts';
import type { FromWorker, ToWorker } from './worker.ts';

/** Workers that serve one port, as seen by the primary process. The primary itself serves no requests. */
export type Workers = {
  baseUrl: string;
  /** Creates a link that signs the person of local mode in. */
  createSignInLink(): Promise<string>;
  /** Resolves with the reason when the database must no longer be used. */
  databaseLost: Promise<string>;
  /** Resolves when workers die too fast to be replaced. */
  failedPermanently: Promise<void>;
  /** Lets running calls finish for at most `ms` milliseconds. Returns false if some had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** Interval at which the primary process reads the database clock, in ms. */
const clockIntervalMs = 60_000;

/**
 * Does the work that only one process may do: locks and migrates the database, deletes old rows, and runs the shared
 * services of local mode. Starts the workers and replaces those that die. Resolves when all workers can serve.
 * @throws AppError conflict for a port or file in use; unavailable if a worker does not start
 */
export async function startWorkers(settings: Settings, log: Log): Promise<Workers> {
  const { config } = settings;
  const port = await findPort(config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  const database = await openStore(settings, true, log, processClocks);
  // The workers also check the keys, but only the primary logs the result.
  await openKeyring(settings, database, log);
  // The workers learn the database time with each poll for changes. The primary does not poll.
  const outage = createOutageLog(log, 'could not read the database clock', 'the database clock is read again');
  const clockTimer = setInterval(() => {
    database.time.measure().then(outage.onSuccess, outage.onError);
  }, clockIntervalMs).unref();
  const maintenance = startMaintenance(config, database, log, database.time.now);
  const sharedServices = await startSharedServices(settings, baseUrl, port);
  const { examplePort, identity } = sharedServices;
  const allReady = Promise.withResolvers<void>();
  let readyCount = 0;
  let maintainsExample = sharedServices.maintainsExample;

  const pool = createWorkerPool({ PORT: String(port) }, log, (worker, message) =>
    handlers[message.kind](worker, message as never),
  );
  const metrics = createMetricsGatherer();
  const handlers: { [Kind in FromWorker['kind']]: (worker: Worker, message: FromWorker & { kind: Kind }) => void } = {
    join(worker) {
      sendToWorker(worker, { kind: 'start', ...(examplePort !== undefined && { examplePort }), maintainsExample });
      // Only one worker stores the example, because two would conflict over the slug.
      maintainsExample = false;
    },
    ready(worker) {
      log.info({ worker: worker.process.pid }, 'worker is ready');
      if (++readyCount === config.workers) allReady.resolve();
    },
    identity: (worker) => void findIdentity(worker),
    metrics: (worker) =>
      void metrics.gather(pool.workers()).then((byProcess) => sendToWorker(worker, { kind: 'metrics', byProcess })),
    report: (worker, message) => metrics.receive(worker, message.metrics),
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
  await Promise.race([allReady.promise, pool.failed.then(throwStartFailed)]);
  pool.settle();
  return {
    baseUrl,
    createSignInLink: () => createSignInLink({ db: database.db, now: database.time.now }, baseUrl),
    databaseLost: database.databaseLost,
    failedPermanently: pool.failedPermanently,
    async stop(ms) {
      const isComplete = await pool.stop(ms);
      clearInterval(clockTimer);
      await maintenance.stop();
      await sharedServices.close();
      await database.close();
      return isComplete;
    },
  };
}

function throwStartFailed(): never {
  throw new AppError('unavailable', 'a worker did not start; see its log lines above');
}

/** Collects the metrics of all workers for the worker that responds to a scrape. */
type MetricsGatherer = {
  gather(workers: Iterable<Worker>): Promise<Metric[][]>;
  receive(worker: Worker, metrics: Metric[]): void;
};

/** Time after which a worker without a reply counts with its last reported metrics, in ms. */
const gatherTimeoutMs = 1000;

function createMetricsGatherer(): MetricsGatherer {
  const pendingGathers = new Set<{ missing: Set<Worker>; collected: Metric[][]; resolve: () => void }>();
  /** Last reported metrics of each worker. Without them, the sums would fall while a worker is late, and rise again. */
  const lastMetrics = new WeakMap<Worker, Metric[]>();
  return {
    async gather(workers) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const pendingGather = { missing: new Set(workers), collected: [] as Metric[][], resolve };
      pendingGathers.add(pendingGather);
      const timer = setTimeout(resolve, gatherTimeoutMs);
      for (const worker of pendingGather.missing) sendToWorker(worker, { kind: 'report' });
      await promise;
      clearTimeout(timer);
      pendingGathers.delete(pendingGather);
      const lateWorkers = [...pendingGather.missing].filter((worker) => !worker.isDead());
      return [...pendingGather.collected, ...lateWorkers.flatMap((worker) => [lastMetrics.get(worker) ?? []])];
    },
    receive(worker, metrics) {
      lastMetrics.set(worker, metrics);
      for (const pendingGather of pendingGathers) {
        if (pendingGather.missing.delete(worker)) pendingGather.collected.push(metrics);
        if (pendingGather.missing.size === 0) pendingGather.resolve();
      }
    },
  };
}

/** Starts the worker processes, replaces those that die, and stops them. */
type WorkerPool = {
  fork(): void;
  workers(): Worker[];
  /** Resolves at the first death before `settle`. A failed start is not retried, because it would fail again. */
  failed: Promise<void>;
  /** Replaces workers that die from now on. */
  settle(): void;
  /**
   * Resolves when workers die too fast to be replaced. A replacement that does not start, for example because the
   * database is unavailable, is retried as long as others serve.
   */
  failedPermanently: Promise<void>;
  /** Lets running calls finish for at most `ms` milliseconds. Returns false if some had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** Serving time in ms below which a worker died early: the cause may also kill its replacement. */
const minServingMs = 5000;
/** Delay before the second of consecutive replacements, in ms. It doubles with each further one. */
const initialDelayMs = 50;
/** Number of consecutive workers that may die early before the service shuts down. */
const maxEarlyDeaths = 8;

function createWorkerPool(
  env: Record<string, string>,
  log: Log,
  onMessage: (worker: Worker, message: FromWorker) => void,
): WorkerPool {
  const failed = Promise.withResolvers<void>();
  const failedPermanently = Promise.withResolvers<void>();
  let isSettled = false;
  let isStopping = false;
  let earlyDeaths = 0;
  /** Number of consecutive replacements that did not start while others served. */
  let failedStarts = 0;
  /** Workers that serve, and the time when each became ready, in monotonic ms. */
  const serving = new Map<Worker, number>();

  function fork(): void {
    if (isStopping) return;
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
      if (isStopping) return;
      if (!isSettled) failed.resolve();
      else replace({ worker: worker.process.pid, exitCode, signal }, readyAt);
    });
  }

  function replace(workerInfo: object, readyAt: number | undefined): void {
    const servedMs = readyAt === undefined ? 0 : performance.now() - readyAt;
    if (readyAt === undefined && serving.size > 0) failedStarts += 1;
    else earlyDeaths = servedMs < minServingMs ? earlyDeaths + 1 : 0;
    if (earlyDeaths === maxEarlyDeaths) {
      log.fatal(workerInfo, `${maxEarlyDeaths} consecutive workers ended within seconds; the service is shutting down`);
      failedPermanently.resolve();
      return;
    }
    const consecutiveFailures = Math.min(earlyDeaths + failedStarts, maxEarlyDeaths - 1);
    const delayMs = consecutiveFailures === 0 ? 0 : initialDelayMs * 2 ** (consecutiveFailures - 1);
    log.error({ ...workerInfo, pauseMs: delayMs }, 'a worker ended; starting a replacement');
    setTimeout(fork, delayMs);
  }

  // A worker that has died may be listed until its channel is closed.
  const getAliveWorkers = () => listWorkers().filter((worker) => !worker.isDead());
  const listWorkers = () => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

  return {
    fork,
    workers: getAliveWorkers,
    failed: failed.promise,
    settle() {
      isSettled = true;
    },
    failedPermanently: failedPermanently.promise,
    async stop(ms) {
      isStopping = true;
      const workers = getAliveWorkers();
      const exits = workers.map((worker) => once(worker, 'exit') as Promise<[number | null]>);
      for (const worker of workers) sendToWorker(worker, { kind: 'stop' });
      const timer = setTimeout(() => {
        for (const worker of workers) worker.process.kill('SIGKILL');
      }, ms);
      const codes = await Promise.all(exits);
      clearTimeout(timer);
      return codes.every(([code]) => code === 0);
    },
  };
}

function sendToWorker(worker: Worker, message: ToWorker): void {
  // A worker that has died needs no reply.
  if (worker.isConnected()) worker.send(message, () => undefined);
}
