import type { Db } from '../db.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { type Change, changesKeptMs } from './changes.ts';
import type { DatabaseClock } from './database-clock.ts';
import { createReadChanges, givePositions, type Look } from './read-changes.ts';

/** Follows what this and other replicas change, by asking once a second; there is no notifier to lose messages. */
export type ChangeFollower = {
  /** Until when what is remembered may be used, in monotonic ms: a minute after the last look that succeeded. */
  freshUntil(): number;
  /** Whether the last look is recent enough to trust what is remembered. */
  isFresh(): boolean;
  /** Looks now. @throws whatever the database throws */
  look(): Promise<void>;
  /** Looks now, after a change of our own, so that it counts at once. What was committed is committed: never throws. */
  lookAfterCommit(): Promise<void>;
  /** How the last look went and how long ago one succeeded, in ms. One that takes longer than a second went badly. */
  state(): { isUp: boolean; ageMs: number };
  /** Does something after each look that was due and succeeded. What it throws is reported like a look that failed. */
  afterLooks(work: () => Promise<void>): void;
  stop(): Promise<void>;
};

export type FollowOptions = {
  db: Db;
  /** Monotonic ms. */
  clock: () => number;
  /** Compared with the database's at each look. */
  time: Pick<DatabaseClock, 'now' | 'take'>;
  onChanges: (changes: readonly Change[]) => void;
  /** Changes may have been missed: everything that is remembered may be out of date. */
  onGap: () => void;
  onError: (error: unknown) => void;
  /** Told of each look that was due and succeeded, and of what follows it. */
  onSuccess: () => void;
  /** How long what is remembered may be used while the database does not answer. */
  staleMs: number;
};

const intervalMs = 1000;

export function followChanges(options: FollowOptions): ChangeFollower {
  const { db, clock, time, staleMs } = options;
  const read = createReadChanges(db);
  /** When the last look that succeeded began, in monotonic ms. */
  let lookedAt = Number.NEGATIVE_INFINITY;
  let lookedDatabaseAt = time.now();
  let startedAt: number | undefined;
  let stopped = false;
  let isUp = true;
  let afterwards = async () => {};

  async function lookOnce(): Promise<void> {
    if (stopped) return;
    const before = clock();
    startedAt = before;
    try {
      const found = await read();
      isUp = true;
      if (found.at !== undefined) time.take({ at: found.at, before, after: clock() });
      report(found);
      lookedAt = before;
      if (found.isUnplaced) await givePositions(db);
    } catch (error) {
      isUp = false;
      throw error;
    } finally {
      startedAt = undefined;
    }
  }

  function report({ changes, isContinuous }: Look): void {
    // Only a machine that slept can be so late, and its monotonic clock does not tell.
    const isLate = time.now() - lookedDatabaseAt > changesKeptMs / 2;
    lookedDatabaseAt = time.now();
    if (isLate || !isContinuous) options.onGap();
    else if (changes.length > 0) options.onChanges(changes);
  }

  // One that is asked for during another comes after it, as that may have read too early.
  const look = oneAtATime(lookOnce);

  const timer = setInterval(() => {
    if (startedAt !== undefined && clock() - startedAt > intervalMs) isUp = false;
    look().then(afterwards).then(options.onSuccess).catch(options.onError);
  }, intervalMs);
  timer.unref();

  return {
    freshUntil: () => lookedAt + staleMs,
    isFresh: () => clock() < lookedAt + staleMs,
    look,
    state: () => ({ isUp, ageMs: clock() - lookedAt }),
    lookAfterCommit: () => look().catch(options.onError),
    afterLooks(work) {
      afterwards = work;
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      await look().catch(() => undefined);
    },
  };
}
