import type { Db } from '../db.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { type Change, changesKeptMs } from './changes.ts';
import type { DatabaseClock } from './database-clock.ts';
import { createReadChanges, type Look } from './read-changes.ts';

/** Follows the changes of this and other replicas by a look at the database once a second, which no lost message can break. */
export type ChangeFollower = {
  /** Time until which cached values may be used, in monotonic ms: a minute after the last successful look. */
  freshUntil(): number;
  /** Whether the last look is recent enough to trust cached values. */
  isFresh(): boolean;
  /** Looks now. @throws whatever the database throws */
  look(): Promise<void>;
  /** Looks now, after a change of our own, so that it takes effect at once. Never throws, because the change is committed. */
  lookAfterCommit(): Promise<void>;
  /** The result of the last look, and the time since the last success in ms. A look of more than a second counts as failed. */
  state(): { isUp: boolean; ageMs: number };
  /** Runs work after each successful scheduled look. An error of the work is reported like a failed look. */
  afterLooks(work: () => Promise<void>): void;
  stop(): Promise<void>;
};

export type FollowOptions = {
  db: Db;
  /** Monotonic ms. */
  clock: () => number;
  /** Compared with the database's clock at each look. */
  time: Pick<DatabaseClock, 'now' | 'take' | 'share'>;
  onChanges: (changes: readonly Change[]) => void;
  /** Called when changes may have been missed: every cached value may be out of date. */
  onGap: () => void;
  onError: (error: unknown) => void;
  /** Receives the result of each scheduled look and of the work after it. */
  onSuccess: () => void;
  /** How long cached values may be used while the database does not answer. */
  staleMs: number;
};

const intervalMs = 1000;

export function followChanges(options: FollowOptions): ChangeFollower {
  const { db, clock, time, staleMs } = options;
  const read = createReadChanges(db);
  /** Start of the last successful look, in monotonic ms. */
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
      time.take({ ...found.time, before, after: clock() });
      report(found);
      lookedAt = before;
    } catch (error) {
      isUp = false;
      throw error;
    } finally {
      startedAt = undefined;
    }
    // A full disk takes no write, and reading goes on.
    await time.share().catch(options.onError);
  }

  function report({ changes, isContinuous }: Look): void {
    // Only a machine that slept can be so late, and its monotonic clock does not show it.
    const isLate = time.now() - lookedDatabaseAt > changesKeptMs / 2;
    lookedDatabaseAt = time.now();
    if (isLate || !isContinuous) options.onGap();
    else if (changes.length > 0) options.onChanges(changes);
  }

  // A look that is requested during another one follows it, because the running one may have read too early.
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
