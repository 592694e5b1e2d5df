import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import type { Log } from '../../log.ts';
import { type Parts, servingOf } from '../../operations/operation.ts';
import type { EndedLogins } from '../../store/audit-events.ts';
import type { Database } from '../../store/database.ts';
import { prunings, roundMs } from '../../store/pruning/prunings.ts';
import type { FullConfig } from '../full-config.ts';
import { startDetecting } from './detect.ts';
import { type ElectedWork, type RunningRound, startElectedWork } from './elected-work.ts';
import { startTelling } from './tell.ts';
import { startWatchingImports } from './watch-imports.ts';

/** Starts the leader jobs. With several workers, the primary process deletes expired rows for all of them. */
export function startElected(config: FullConfig, database: Database, log: Log, parts: Parts, lookMs: number) {
  const upkeep = config.siblings === undefined ? startUpkeep(config, database, log, parts.now, lookMs) : undefined;
  const watching = startWatchingImports(database, log, { ...parts, lookMs });
  const notifying = { ...parts, ...servingOf(parts), lookMs };
  const detecting = startDetecting(database, log, notifying);
  const telling = startTelling(database, log, notifying);
  return {
    async stop() {
      await Promise.all([upkeep?.stop(), watching.stop(), detecting.stop(), telling.stop()]);
    },
  };
}

const dayMs = 24 * 60 * 60_000;
/** Delay before a failed round is retried. */
const againMs = 5 * 60_000;

/**
 * Bounds of the pause after each step. The pause is four times the duration of the step, to leave the database to
 * other work.
 */
const shortestPauseMs = 20;
const longestPauseMs = 1000;

/** Starts the maintenance job, which deletes expired rows in the one process that holds the lease. */
export function startUpkeep(
  config: Config,
  database: Database,
  log: Log,
  now: () => number,
  lookMs?: number,
): ElectedWork {
  return startElectedWork(database.records, log, now, {
    name: 'upkeep',
    roundMs,
    againMs,
    lookMs,
    failure: 'could not prune old rows',
    round: (running) => prune(config, database, log, { now: now(), running }),
  });
}

function pacing({ signal, mayGoOn }: RunningRound): () => Promise<void> {
  let since = performance.now();
  return async () => {
    const pauseMs = Math.max(shortestPauseMs, 4 * (performance.now() - since));
    // Aborting on stop ends the pause early.
    await delay(Math.min(pauseMs, longestPauseMs), undefined, { signal }).catch(() => undefined);
    mayGoOn();
    since = performance.now();
  };
}

async function prune(
  config: Config,
  database: Database,
  log: Log,
  { now, running }: { now: number; running: RunningRound },
): Promise<void> {
  const { db, records } = database;
  const pause = pacing(running);
  const round = {
    db,
    records,
    now,
    callsFrom: now - config.callRetentionDays * dayMs,
    auditFrom: now - config.auditRetentionDays * dayMs,
    pause,
    onLoginsEnded: (ended: EndedLogins) => log.warn(ended, 'maintenance ended logins that exceeded a limit'),
  };
  const failures: unknown[] = [];
  for (const [, pruneTables] of prunings) {
    try {
      await pruneTables(round);
    } catch (error) {
      // A table that cannot be pruned must not prevent the pruning of the others.
      failures.push(error);
      running.mayGoOn();
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} of ${prunings.length} pruning tasks failed`);
}
