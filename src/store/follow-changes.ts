import { type Change, changesSince, pruneChanges } from './changes.ts';
import type { Db } from './database.ts';
import { oneAtATime } from './one-at-a-time.ts';

/** Follows what this and other replicas change, by asking once a second; there is no notifier to lose messages. */
export type ChangeFollower = {
  /** Whether the last look is recent enough to trust what is remembered. */
  isFresh(): boolean;
  /** Looks now. @throws whatever the database throws */
  look(): Promise<void>;
  /** Looks now, after a change of our own, so that it counts at once. What was committed is committed: never throws. */
  lookAfterCommit(): Promise<void>;
  /** How the last look went and how long ago one succeeded, in ms. */
  state(): { isUp: boolean; ageMs: number };
  stop(): Promise<void>;
};

export type FollowOptions = {
  db: Db;
  now: () => number;
  onChanges: (changes: readonly Change[]) => void;
  onError: (error: unknown) => void;
  /** How long what is remembered may be used while the database does not answer. */
  staleMs: number;
};

const intervalMs = 1000;
/** Looks overlap by this, so that a transaction that commits late, or a clock that is a little off, is not missed. */
const overlapMs = 15_000;
/** Longer than any process can be without its database and go on. */
const keptMs = 24 * 60 * 60_000;
const pruneIntervalMs = 10 * 60_000;

export function followChanges(options: FollowOptions): ChangeFollower {
  const { db, now } = options;
  let lookedAt = now();
  let prunedAt = now();
  let seen = new Set<string>();
  let stopped = false;
  let isUp = true;

  async function lookOnce(): Promise<void> {
    if (stopped) return;
    const at = now();
    const changes = await changesSince(db, Math.min(at, lookedAt) - overlapMs).catch((error: unknown) => {
      isUp = false;
      throw error;
    });
    isUp = true;
    const fresh = changes.filter((change) => !seen.has(change.id));
    seen = new Set(changes.map((change) => change.id));
    if (fresh.length > 0) options.onChanges(fresh);
    lookedAt = at;
    if (at - prunedAt > pruneIntervalMs) {
      prunedAt = at;
      await pruneChanges(db, at - keptMs);
    }
  }

  // One that is asked for during another comes after it, as that may have read too early.
  const look = oneAtATime(lookOnce);

  const timer = setInterval(() => {
    look().catch(options.onError);
  }, intervalMs);
  timer.unref();

  return {
    isFresh: () => now() - lookedAt < options.staleMs,
    look,
    state: () => ({ isUp, ageMs: now() - lookedAt }),
    lookAfterCommit: () => look().catch(options.onError),
    async stop() {
      stopped = true;
      clearInterval(timer);
      await look().catch(() => undefined);
    },
  };
}
