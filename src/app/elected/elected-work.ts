import { randomBytes } from 'node:crypto';
import { newId } from '../../domain/ids.ts';
import type { Log } from '../../log.ts';
import { oneAtATime } from '../../store/changes/follow-changes.ts';
import type { Db } from '../../store/db.ts';
import { noteDone, releaseLease, takeLease } from '../../store/pruning/leases.ts';
import { outageLog } from '../observability/fault-log.ts';

/** When the holder dies, another process takes over within the lease plus the interval between two looks. */
const leaseMs = 60_000;
export const usualLookMs = 15_000;

/** Work in rounds that one of all processes does: the one that holds the lease of the database. */
export type ElectedWork = {
  /** Takes or keeps the lease, and begins a round when one is due. @throws any error of the database */
  look(): Promise<void>;
  /** Resolves when no round is running. */
  settled(): Promise<void>;
  /** Ends the round, and releases the lease. */
  stop(): Promise<void>;
};

/** A round that is running. */
export type RunningRound = {
  /** Aborted when the process stops. */
  signal: AbortSignal;
  /** Throws when the process stops or another one has the lease. */
  mayGoOn(): void;
};

/** Ends a round because the process stops or another one has the lease. */
class RoundEnded extends Error {}

type Work = {
  /** Name of the lease. */
  name: string;
  /** Time from the beginning of a round to that of the next; after a round that failed, `againMs`. */
  roundMs: number;
  againMs: number;
  /** Time between two looks. */
  lookMs?: number | undefined;
  /** What could not be done when a round has failed, for the log. */
  failure: string;
  round(round: RunningRound): Promise<void>;
};

/** `now` is the database's time. */
export function startElectedWork(records: Db, log: Log, now: () => number, work: Work): ElectedWork {
  const { name, lookMs = usualLookMs } = work;
  const holder = newId(randomBytes, 'prc');
  let heldUntil = 0;
  let dueAt = 0;
  let running: Promise<void> | undefined;
  const stopping = new AbortController();
  const { signal } = stopping;

  const look = oneAtATime(async () => {
    if (signal.aborted) return;
    const until = now() + leaseMs;
    const isHeld = await takeLease(records, { name, holder, now: now(), until });
    heldUntil = isHeld ? until : 0;
    // A new holder begins with a round, because it cannot know how far the previous one came.
    if (!isHeld) dueAt = 0;
    else if (!running && !signal.aborted && now() >= dueAt) running = begin();
  });

  async function begin(): Promise<void> {
    dueAt = now() + work.roundMs;
    try {
      await work.round({ signal, mayGoOn });
      await noteDone(records, name, now());
    } catch (error) {
      if (error instanceof RoundEnded) return;
      dueAt = now() + work.againMs;
      log.warn({ err: error }, work.failure);
    } finally {
      running = undefined;
    }
  }

  function mayGoOn(): void {
    if (signal.aborted || now() >= heldUntil) throw new RoundEnded();
  }

  const outage = outageLog(log, `could not read the lease of the ${name}`, `the lease of the ${name} is read again`);
  const onTime = () => {
    look().then(outage.onSuccess, outage.onError);
  };
  const timer = setInterval(onTime, lookMs).unref();
  return {
    look,
    async settled() {
      await running;
    },
    async stop() {
      stopping.abort();
      clearInterval(timer);
      // A look that is under way may still take the lease.
      await look().catch(() => undefined);
      await running;
      if (now() >= heldUntil) return;
      await releaseLease(records, { name, holder }).catch((error) =>
        log.warn({ err: error }, `could not give up the lease of the ${name}; another process takes over in a minute`),
      );
    },
  };
}
