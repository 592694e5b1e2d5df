import { randomBytes } from 'node:crypto';
import { newId } from '../../domain/ids.ts';
import type { Log } from '../../log.ts';
import { oneAtATime } from '../../store/changes/follow-changes.ts';
import type { Db } from '../../store/db.ts';
import { noteDone, releaseLease, takeLease } from '../../store/pruning/leases.ts';
import { outageLog } from '../observability/fault-log.ts';

/** Duration of the lease. If the holder dies, another process takes over within the lease plus one poll interval. */
const leaseMs = 60_000;
export const usualLookMs = 15_000;

/** Job that runs periodically in only one of all processes: the one that holds the lease in the database. */
export type ElectedWork = {
  /** Takes or extends the lease, and starts a round if one is due. @throws any database error */
  look(): Promise<void>;
  /** Resolves when no round is running. */
  settled(): Promise<void>;
  /** Ends the round, and releases the lease. */
  stop(): Promise<void>;
};

/** Round in progress. */
export type RunningRound = {
  /** Aborted when the process stops. */
  signal: AbortSignal;
  /** Throws if the process is stopping or another process has the lease. */
  mayGoOn(): void;
};

/** Ends a round because the process is stopping or another process has the lease. */
class RoundEnded extends Error {}

type Work = {
  /** Name of the lease. */
  name: string;
  /** Time from the start of one round to the next; `againMs` applies after a failed round. */
  roundMs: number;
  againMs: number;
  /** Time between two polls of the lease. */
  lookMs?: number | undefined;
  /** Log message for a failed round. */
  failure: string;
  round(round: RunningRound): Promise<void>;
};

/** Starts a leader job. `now` returns the database time. */
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
    // A new holder starts with a round, because it cannot know the progress of the previous one.
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

  const outage = outageLog(log, `could not read the lease of job ${name}`, `the lease of job ${name} is read again`);
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
      // A poll in progress may still take the lease.
      await look().catch(() => undefined);
      await running;
      if (now() >= heldUntil) return;
      await releaseLease(records, { name, holder }).catch((error) =>
        log.warn({ err: error }, `could not release the lease of job ${name}; another process takes over in a minute`),
      );
    },
  };
}
