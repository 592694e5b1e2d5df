import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { newId } from '../domain/ids.ts';
import type { Log } from '../log.ts';
import type { Database } from '../store/database.ts';
import { rowsAtOnce } from '../store/delete-in-steps.ts';
import { releaseLease, takeLease } from '../store/pruning/leases.ts';
import { prunings, roundMs } from '../store/pruning/prunings.ts';
import { outageLog } from './observability/outage-log.ts';

const dayMs = 24 * 60 * 60_000;
/** When the holder dies, another process takes over within the lease plus the interval between two looks. */
const leaseMs = 60_000;
const lookMs = 15_000;
/** A failed round is repeated after this time. */
const againMs = 5 * 60_000;

/** Each step is followed by a pause of four times its own duration, within these bounds, to leave the database to others. */
const shortestPauseMs = 20;
const longestPauseMs = 1000;

/** Deletes expired rows, in the one process that holds the lease of the database. */
export type Upkeep = {
  /** Takes or keeps the lease, and begins a round when one is due. @throws any error of the database */
  look(): Promise<void>;
  /** Resolves when no round is running. */
  settled(): Promise<void>;
  /** Ends the round after its current step, and releases the lease. */
  stop(): Promise<void>;
};

/** Ends a round because the process stops or another one has the lease. */
class RoundEnded extends Error {}

const name = 'upkeep';

export function startUpkeep(config: Config, database: Database, log: Log, now: () => number): Upkeep {
  const { records } = database;
  const holder = newId(randomBytes, 'prc');
  let heldUntil = 0;
  let dueAt = 0;
  let round: Promise<void> | undefined;
  const stopping = new AbortController();
  const { signal } = stopping;

  async function look(): Promise<void> {
    if (signal.aborted) return;
    const until = now() + leaseMs;
    const isHeld = await takeLease(records, { name, holder, now: now(), until });
    heldUntil = isHeld ? until : 0;
    // A new holder begins with a round, because it cannot know how far the previous one came.
    if (!isHeld) dueAt = 0;
    else if (!round && now() >= dueAt) round = begin();
  }

  async function begin(): Promise<void> {
    dueAt = now() + roundMs;
    try {
      await prune(config, database, now(), pacing());
    } catch (error) {
      if (error instanceof RoundEnded) return;
      dueAt = now() + againMs;
      log.warn({ err: error }, 'could not prune old rows');
    } finally {
      round = undefined;
    }
  }

  function pacing(): () => Promise<void> {
    let since = performance.now();
    return async () => {
      const pauseMs = Math.max(shortestPauseMs, 4 * (performance.now() - since));
      // The abort at stop ends the pause early.
      await delay(Math.min(pauseMs, longestPauseMs), undefined, { signal }).catch(() => undefined);
      if (signal.aborted || now() >= heldUntil) throw new RoundEnded();
      since = performance.now();
    };
  }

  const outage = outageLog(log, 'could not read the lease of the pruning', 'the lease of the pruning is read again');
  const onTime = () => {
    look().then(outage.onSuccess, outage.onError);
  };
  const timer = setInterval(onTime, lookMs).unref();
  return {
    look,
    async settled() {
      await round;
    },
    async stop() {
      stopping.abort();
      clearInterval(timer);
      await round;
      if (now() >= heldUntil) return;
      await releaseLease(records, { name, holder }).catch((error) =>
        log.warn({ err: error }, 'could not give up the lease; another process takes over in a minute'),
      );
    },
  };
}

async function prune(config: Config, database: Database, now: number, pause: () => Promise<void>): Promise<void> {
  const { db, records, calls } = database;
  // Calls recorded by an older version, which did not count them, must be counted before they are deleted.
  while ((await calls.countOlder(rowsAtOnce)) > 0) await pause();
  const round = {
    db,
    records,
    now,
    callsFrom: now - config.callRetentionDays * dayMs,
    auditFrom: now - config.auditRetentionDays * dayMs,
    mostVersions: config.quotas.versions,
    pause,
  };
  for (const { prune: pruneTables } of prunings) await pruneTables(round);
}
