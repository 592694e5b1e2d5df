import type { Worker } from 'node:cluster';
import { openKeyring } from '../app/keys/keyring.ts';
import { outageLog } from '../app/observability/outage-log.ts';
import { openStore } from '../app/open-store.ts';
import { processClocks } from '../app/surroundings.ts';
import { startUpkeep } from '../app/upkeep.ts';
import type { Settings } from '../config.ts';
import { AppError } from '../errors.ts';
import { startLocalParts } from '../local/parts.ts';
import type { Log } from '../log.ts';
import { createGatherMetrics } from './gather-metrics.ts';
import { findPort } from './listen.ts';
import type { Said } from './worker.ts';
import { createWorkerPool, tell } from './worker-pool.ts';

/** Several processes that serve one port, seen from the first one, which serves nobody itself. */
export type Workers = {
  baseUrl: string;
  /** See `Database`. */
  lost: Promise<string>;
  /** Resolves when workers die faster than it makes sense to replace them. */
  givenUp: Promise<void>;
  /** Lets running calls finish, for at most so many ms. False when something had to be cut off. */
  stop(ms: number): Promise<boolean>;
};

/** How often the first process asks the database for the time. */
const timingMs = 60_000;

/**
 * Does what there must be one of (it holds and migrates the database, forgets old rows, runs what local mode brings),
 * starts the workers and replaces those that die. Resolves when all of them can serve.
 * @throws AppError conflict for a port or file in use; unavailable when a worker does not start
 */
export async function startWorkers(settings: Settings, log: Log): Promise<Workers> {
  const { config } = settings;
  const port = await findPort(config);
  const baseUrl = config.baseUrl ?? `http://127.0.0.1:${port}`;
  const database = await openStore(settings, true, log, processClocks);
  // The workers do the same; here it is said once.
  await openKeyring(settings, database, log);
  // This process does not look for changes, which would tell it the time.
  const told = outageLog(log, 'could not read the clock of the database', 'the clock of the database is read again');
  const timing = setInterval(() => {
    database.time.measure().then(told.onSuccess, told.onError);
  }, timingMs).unref();
  const upkeep = startUpkeep(config, database, log, database.time.now);
  const local = await startLocalParts(settings, baseUrl, port);
  const { examplePort, identity } = local;
  const allReady = Promise.withResolvers<void>();
  let ready = 0;
  let providesExample = local.providesExample;

  const pool = createWorkerPool({ PORT: String(port) }, log, (worker, said) => hear[said.kind](worker, said as never));
  const metrics = createGatherMetrics();
  const hear: { [Kind in Said['kind']]: (worker: Worker, said: Said & { kind: Kind }) => void } = {
    here(worker) {
      tell(worker, { kind: 'start', ...(examplePort !== undefined && { examplePort }), providesExample });
      // One of them is enough; they would meet at the slug otherwise.
      providesExample = false;
    },
    ready(worker) {
      log.info({ worker: worker.process.pid }, 'a worker serves');
      if (++ready === config.workers) allReady.resolve();
    },
    identity: (worker) => void findIdentity(worker),
    metrics: (worker) => void metrics.gather(pool.workers()).then((all) => tell(worker, { kind: 'metrics', all })),
    report: (worker, said) => metrics.take(worker, said.metrics),
  };

  async function findIdentity(worker: Worker): Promise<void> {
    try {
      tell(worker, { kind: 'identity', options: await identity.find() });
    } catch (error) {
      log.error({ err: error }, 'the identity provider of local mode did not start');
      tell(worker, { kind: 'identity' });
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
  throw new AppError('unavailable', 'a worker did not start; what it said stands above');
}
