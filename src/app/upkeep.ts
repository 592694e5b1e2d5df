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
/** Whoever dies is replaced within the lease and the time between two looks. */
const leaseMs = 60_000;
const lookMs = 15_000;
/** A round that failed is tried again sooner than the next one is due. */
const againMs = 5 * 60_000;

/** A step is followed by a pause of at least so long, and of four times its own time, for what waits for the database. */
const shortestPauseMs = 20;
const longestPauseMs = 1000;

/** Of all processes that serve from one database, one forgets what is past its time: the one that holds the lease. */
export type Upkeep = {
  /** Takes or keeps the lease, and begins a round when one is due. @throws whatever the database throws */
  look(): Promise<void>;
  /** Resolves when no round is under way. */
  settled(): Promise<void>;
  /** Ends the round after its step, and gives the lease to another process. */
  stop(): Promise<void>;
};

/** The process stops, or another one has the lease. */
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
    // Whoever takes over begins with a round, since nobody knows how far the one before came.
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
      // Stopping ends the pause.
      await delay(Math.min(pauseMs, longestPauseMs), undefined, { signal }).catch(() => undefined);
      if (signal.aborted || now() >= heldUntil) throw new RoundEnded();
      since = performance.now();
    };
  }

  const told = outageLog(log, 'could not see whose turn it is to prune', 'whose turn it is to prune is seen again');
  const onTime = () => {
    look().then(told.onSuccess, told.onError);
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
  // Calls of a version that did not count them must be counted before they are forgotten.
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
