import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import { pruneCalls } from '../store/calls.ts';
import { captureKeptMs, pruneCaptures } from '../store/captures.ts';
import type { Database } from '../store/database.ts';
import { pruneSessions } from '../store/sessions.ts';
import { pruneOAuth } from '../store/tokens.ts';

const dayMs = 24 * 60 * 60 * 1000;
const intervalMs = 60 * 60 * 1000;
/** The first time is soon, for processes that do not live an hour, but not in the way of the start. */
const firstMs = 30_000;

/** Forgets what is past its time: soon after the start, then once an hour. */
export function startUpkeep(
  config: Config,
  { db, records }: Database,
  log: Log,
  now: () => number,
): { stop(): Promise<void> } {
  const prune = async () => {
    await pruneCalls(records, now() - config.callRetentionDays * dayMs);
    // What would be past its time before the next round goes with this one.
    await pruneCaptures(records, now() - captureKeptMs + intervalMs);
    await pruneOAuth(db, now(), dayMs);
    await pruneSessions(db, now());
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
