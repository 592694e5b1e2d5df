import { randomBytes } from 'node:crypto';
import { newId } from '@toolhost/credentials/ids';
import type { Log } from '../../log.ts';
import { coalesceRuns } from '../../store/changes/follow-changes.ts';
import type { Db } from '../../store/db.ts';
import { acquireLease, recordCompletion, releaseLease } from '../../store/pruning/leases.ts';
import { createOutageLog } from '../observability/fault-log.ts';

/** Duration of the lease. If the holder dies, another process takes over within the lease plus one poll interval. */
const leaseMs = 60_000;
export const defaultPollIntervalMs = 15_000;

/** Job that runs periodically in only one of all processes: the one that holds the lease in the database. */
export type LeaderJob = {
  /** Takes or extends the lease, and starts a round if one is due. @throws any database error */
  poll(): Promise<void>;
  /** Resolves when no round is running. */
  whenIdle(): Promise<void>;
  /** Ends the round, and releases the lease. */
  stop(): Promise<void>;
};

/** Round in progress. */
export type JobRound = {
  /** Aborted when the process stops. */
  signal: AbortSignal;
  /** Throws if the process is stopping or another process has the lease. */
  throwIfStopped(): void;
};

/** Ends a round because the process is stopping or another process has the lease. */
class RoundStopped extends Error {}

type JobOptions = {
  /** Name of the lease. */
  name: string;
  /** Time from the start of one round to the next; `retryMs` applies after a failed round. */
  intervalMs: number;
  retryMs: number;
  /** Time between two polls of the lease. */
  pollIntervalMs?: number | undefined;
  /** Log message for a failed round. */
  failureMessage: string;
  round(round: JobRound): Promise<void>;
};

/** Starts a leader job. `now` returns the database time. */
export function startLeaderJob(records: Db, log: Log, now: () => number, options: JobOptions): LeaderJob {
  const { name, pollIntervalMs = defaultPollIntervalMs } = options;
  const holder = newId(randomBytes, 'prc');
  let leaseExpiresAt = 0;
  let dueAt = 0;
  let running: Promise<void> | undefined;
  const stopping = new AbortController();
  const { signal } = stopping;

  const poll = coalesceRuns(async () => {
    if (signal.aborted) return;
    const expiresAt = now() + leaseMs;
    const isHolder = await acquireLease(records, { name, holder, now: now(), expiresAt });
    leaseExpiresAt = isHolder ? expiresAt : 0;
    // A new holder starts with a round, because it cannot know the progress of the previous one.
    if (!isHolder) dueAt = 0;
    else if (!running && !signal.aborted && now() >= dueAt) running = startRound();
  });

  async function startRound(): Promise<void> {
    dueAt = now() + options.intervalMs;
    try {
      await options.round({ signal, throwIfStopped });
      await recordCompletion(records, name, now());
    } catch (error) {
      if (error instanceof RoundStopped) return;
      dueAt = now() + options.retryMs;
      log.warn({ err: error }, options.failureMessage);
    } finally {
      running = undefined;
    }
  }

  function throwIfStopped(): void {
    if (signal.aborted || now() >= leaseExpiresAt) throw new RoundStopped();
  }

  const outage = createOutageLog(
    log,
    `could not read the lease of job ${name}`,
    `the lease of job ${name} is read again`,
  );
  const onTimer = () => {
    poll().then(outage.onSuccess, outage.onError);
  };
  const timer = setInterval(onTimer, pollIntervalMs).unref();
  return {
    poll,
    async whenIdle() {
      await running;
    },
    async stop() {
      stopping.abort();
      clearInterval(timer);
      // A poll in progress may still take the lease.
      await poll().catch(() => undefined);
      await running;
      if (now() >= leaseExpiresAt) return;
      await releaseLease(records, { name, holder }).catch((error) =>
        log.warn({ err: error }, `could not release the lease of job ${name}; another process takes over in a minute`),
      );
    },
  };
}
