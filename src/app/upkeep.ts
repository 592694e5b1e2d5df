import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import { hourMs } from '../store/call-counts.ts';
import { pruneQuotaUse } from '../store/call-quota-use.ts';
import { minutesKeptMs } from '../store/call-statistics.ts';
import { captureKeptMs, pruneCaptures } from '../store/captures.ts';
import type { Database } from '../store/database.ts';
import { pruneCalls, pruneCounts } from '../store/prune-calls.ts';
import { pruneSessions } from '../store/sessions.ts';
import { pruneOAuth } from '../store/tokens.ts';

const dayMs = 24 * 60 * 60 * 1000;
const intervalMs = 60 * 60 * 1000;
/** The first time is soon, for processes that do not live an hour, but not in the way of the start. */
const firstMs = 30_000;

/** Calls of an older version are counted so many at a time, with a pause for what waits for the database. */
const countedAtOnce = 1000;
const pauseMs = 20;

/** Forgets what is past its time: soon after the start, then once an hour. */
export function startUpkeep(
  config: Config,
  { db, records, calls }: Database,
  log: Log,
  now: () => number,
): { stop(): Promise<void> } {
  const prune = async () => {
    while ((await calls.countOlder(countedAtOnce)) > 0) await delay(pauseMs);
    const callsFrom = now() - config.callRetentionDays * dayMs;
    await pruneCalls(records, callsFrom);
    await pruneCounts(records, now() - minutesKeptMs - hourMs, callsFrom - dayMs);
    // What would be past its time before the next round goes with this one.
    await pruneCaptures(records, now() - captureKeptMs + intervalMs);
    await pruneOAuth(db, now(), dayMs);
    await pruneSessions(db, now());
    await pruneQuotaUse(db, now());
  };
  let running: Promise<void> | undefined;
  const run = () => {
    running = prune().catch((error) => log.warn({ err: error }, 'could not prune old rows'));
  };
  const first = setTimeout(run, firstMs).unref();
  const timer = setInterval(run, intervalMs).unref();
  return {
    async stop() {
      clearTimeout(first);
      clearInterval(timer);
      await running;
    },
  };
}
