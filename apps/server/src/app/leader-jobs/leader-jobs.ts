import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import type { Log } from '../../log.ts';
import { type OperationDeps, requireServing } from '../../operations/operation.ts';
import type { EndedLogins } from '../../store/audit-events.ts';
import type { Database } from '../../store/database.ts';
import { pruneIntervalMs, pruneTasks } from '../../store/pruning/prunings.ts';
import type { Foundation } from '../foundation.ts';
import { startNotifier } from './deliver-notifications.ts';
import { startEventDetection } from './detect-events.ts';
import { type JobRound, type LeaderJob, startLeaderJob } from './leader-job.ts';
import { startImportWatcher } from './watch-imports.ts';

/** Starts the leader jobs. With several workers, the primary process deletes expired rows for all of them. */
export function startLeaderJobs({ config, store, log, runtime }: Foundation, deps: OperationDeps) {
  const pollIntervalMs = runtime.leaderPollIntervalMs;
  const { now, keyring, importer, defaultQuotas, baseUrl } = deps;
  const { notifier } = requireServing(deps);
  const maintenance =
    config.siblings === undefined ? startMaintenance(config, store, log, now, pollIntervalMs) : undefined;
  const importWatcher = startImportWatcher(store, log, { keyring, importer, now, pollIntervalMs });
  const eventDetection = startEventDetection(store, log, { now, defaultQuotas, notifier, pollIntervalMs });
  const delivery = startNotifier(store, log, { keyring, now, baseUrl, notifier, pollIntervalMs });
  return {
    async stop() {
      await Promise.all([maintenance?.stop(), importWatcher.stop(), eventDetection.stop(), delivery.stop()]);
    },
  };
}

const dayMs = 24 * 60 * 60_000;
/** Delay before a failed round is retried. */
const retryMs = 5 * 60_000;

/** Bounds of the pause after each step, which is four times its duration, to leave the database to other work. */
const minPauseMs = 20;
const maxPauseMs = 1000;

/** Starts the maintenance job, which deletes expired rows in the one process that holds the lease. */
export function startMaintenance(
  config: Config,
  database: Database,
  log: Log,
  now: () => number,
  pollIntervalMs?: number,
): LeaderJob {
  return startLeaderJob(database.records, log, now, {
    name: 'upkeep',
    intervalMs: pruneIntervalMs,
    retryMs,
    pollIntervalMs,
    failureMessage: 'could not prune old rows',
    round: (jobRound) => prune(config, database, log, { now: now(), jobRound }),
  });
}

function createPause({ signal, throwIfStopped }: JobRound): () => Promise<void> {
  let stepStartedAt = performance.now();
  return async () => {
    const pauseMs = Math.max(minPauseMs, 4 * (performance.now() - stepStartedAt));
    // Aborting on stop ends the pause early.
    await delay(Math.min(pauseMs, maxPauseMs), undefined, { signal }).catch(() => undefined);
    throwIfStopped();
    stepStartedAt = performance.now();
  };
}

async function prune(
  config: Config,
  database: Database,
  log: Log,
  { now, jobRound }: { now: number; jobRound: JobRound },
): Promise<void> {
  const { db, records } = database;
  const pause = createPause(jobRound);
  const round = {
    db,
    records,
    now,
    callsRetainedFrom: now - config.callRetentionDays * dayMs,
    auditRetainedFrom: now - config.auditRetentionDays * dayMs,
    pause,
    onLoginsEnded: (ended: EndedLogins) => log.warn(ended, 'maintenance ended logins that exceeded a limit'),
  };
  const failures: unknown[] = [];
  for (const [, pruneTables] of pruneTasks) {
    try {
      await pruneTables(round);
    } catch (error) {
      // A table that cannot be pruned must not prevent the pruning of the others.
      failures.push(error);
      jobRound.throwIfStopped();
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} of ${pruneTasks.length} pruning tasks failed`);
}
