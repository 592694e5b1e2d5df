import { newId, type Random } from '@toolhost/credentials/ids';
import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

/**
 * Follows the changes of this and other processes by polling the database once a second. No lost message can break it.
 */
export type ChangeFollower = {
  /** Time until which cached values may be used, in monotonic ms: a minute after the last successful poll. */
  readonly fresh: { readonly until: number };
  /** Returns true if the last poll is recent enough to trust cached values. */
  isFresh(): boolean;
  /** Polls immediately. @throws any database error */
  poll(): Promise<void>;
  /**
   * Polls immediately after a change by this process, so that the change takes effect. Never throws, because the change
   * is committed.
   */
  pollAfterCommit(): Promise<void>;
  /**
   * Returns the result of the last poll and the time since the last success in ms. A poll that takes longer than a
   * second counts as failed.
   */
  state(): { isUp: boolean; ageMs: number };
  /** Runs work after each successful scheduled poll. An error in the work is reported like a failed poll. */
  afterEachPoll(work: () => Promise<void>): void;
  stop(): Promise<void>;
};

export type FollowOptions = {
  db: Db;
  /** Monotonic ms. */
  clock: () => number;
  /** Compared with the database clock at each poll. */
  time: Pick<DatabaseClock, 'now' | 'applyReading'>;
  onChanges: (changes: readonly Change[]) => void;
  /** Called when changes may have been missed, so that every cached value may be out of date. */
  onGap: () => void;
  onError: (error: unknown) => void;
  /** Called after each successful scheduled poll and the work after it. */
  onSuccess: () => void;
  /** Maximum time that cached values are used while the database is unavailable. */
  staleMs: number;
};

/** Time between two polls. */
const intervalMs = 1000;

export function followChanges(options: FollowOptions): ChangeFollower {
  const { db, clock, time, staleMs } = options;
  const read = createReadChanges(db);
  /** Start of the last successful poll, in monotonic ms. */
  let lastPolledAt = Number.NEGATIVE_INFINITY;
  const fresh = { until: Number.NEGATIVE_INFINITY };
  let lastPolledDatabaseTime = time.now();
  let startedAt: number | undefined;
  let isStopped = false;
  let isUp = true;
  let workAfterPoll = async () => {};

  async function pollOnce(): Promise<void> {
    if (isStopped) return;
    const before = clock();
    startedAt = before;
    try {
      const result = await read();
      isUp = true;
      if (result.at !== undefined) time.applyReading({ at: result.at, before, after: clock() });
      reportChanges(result);
      lastPolledAt = before;
      fresh.until = before + staleMs;
    } catch (error) {
      isUp = false;
      throw error;
    } finally {
      startedAt = undefined;
    }
  }

  function reportChanges({ changes, isContinuous }: PollResult): void {
    // Only a suspended machine can be this late, and its monotonic clock does not show the gap.
    const isLate = time.now() - lastPolledDatabaseTime > changesRetentionMs / 2;
    lastPolledDatabaseTime = time.now();
    if (isLate || !isContinuous) options.onGap();
    else if (changes.length > 0) options.onChanges(changes);
  }

  // A poll requested during another one runs after it, because the running poll may have read too early.
  const poll = coalesceRuns(pollOnce);

  const timer = setInterval(() => {
    if (startedAt !== undefined && clock() - startedAt > intervalMs) isUp = false;
    poll().then(workAfterPoll).then(options.onSuccess).catch(options.onError);
  }, intervalMs);
  timer.unref();

  return {
    fresh,
    isFresh: () => clock() < fresh.until,
    poll,
    state: () => ({ isUp, ageMs: clock() - lastPolledAt }),
    pollAfterCommit: () => poll().catch(options.onError),
    afterEachPoll(work) {
      workAfterPoll = work;
    },
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await poll().catch(() => undefined);
    },
  };
}

/** Result of a poll for changes. */
type PollResult = {
  /** Changes committed since the previous poll. Some may be reported twice. */
  changes: readonly Change[];
  /**
   * False if the changes since the previous poll are unknown: at the first poll, on another database, or after too many
   * changes.
   */
  isContinuous: boolean;
  /** Database time in epoch ms; undefined for SQLite. */
  at?: number;
};

/** Reads the changes since its previous read. @throws any database error; no change is skipped then */
type ReadChanges = () => Promise<PollResult>;

/** Maximum number of changes per poll. Above it, clearing all caches is less work than invalidating each value. */
const maxChanges = 2000;

type EngineRead<Mark> = { rows: readonly Change[]; mark: Mark; at?: number };

/** Finds new changes in one engine. `mark` is the end position of a poll in that engine's terms. */
type Engine<Mark> = {
  read(mark: Mark | undefined): Promise<EngineRead<Mark>>;
  /** Returns true if `mark` comes after `last` on the same database. */
  follows(last: Mark, mark: Mark): boolean;
};

/**
 * Creates a reader of changes that depends on no clock. Each poll continues where the previous one stopped:
 *
 * - **PostgreSQL.** A change carries the id of its transaction. A poll remembers the snapshot that it read in. The
 *   next poll requests the changes whose transaction was not visible in that snapshot. A transaction is either visible
 *   in it, and then its rows were read, or it is not, however late it commits, and then it is requested by the next
 *   poll. A rollback leaves no row. Transaction ids grow. A restarted server, or one that replaced it, may have lost
 *   the last ids. Its start time shows that, or the next id, which is lower than before. A row with an id that has not
 *   begun was restored from another cluster, whose ids were higher. No cache here is older than that row, so it is not
 *   reported.
 * - **SQLite.** Write transactions run one after another, and each takes the position after the greatest that it
 *   sees, which is the greatest of all. Positions therefore grow in commit order, and a poll that has seen one has seen
 *   all below it. `pruneChanges` retains the greatest.
 */
export function createReadChanges(db: Db): ReadChanges {
  return isPostgres(db) ? createReader(createPostgresEngine(db)) : createReader(createSqliteEngine(db));
}

function createReader<Mark>(engine: Engine<Mark>): ReadChanges {
  let last: Mark | undefined;
  return async () => {
    const { rows, mark, ...time } = await engine.read(last);
    const isContinuous = last !== undefined && engine.follows(last, mark) && rows.length <= maxChanges;
    last = mark;
    return { changes: rows, isContinuous, ...time };
  };
}

/** Row of a left join, which returns one row without a change if there are no changes. */
type Row = { id: string | null; kind: Change['kind']; ref: string };

function toChanges(rows: readonly Row[]): Change[] {
  return rows.flatMap(({ id, kind, ref }) => (id === null ? [] : [{ id, kind, ref }]));
}

type Snapshot = { text: string; serverStartedAt: string };

function createPostgresEngine(db: Db): Engine<Snapshot> {
  return {
    async read(last) {
      const { rows } = await sql<Row & { snapshot: string; server_started_at: string; at: number }>`
        select latest.*, found.*
        from (
          select txid_current_snapshot()::text as snapshot,
            extract(epoch from pg_postmaster_start_time())::text as server_started_at,
            floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at
        ) as latest
        left join (
          select id, kind, ref from changes
          where position >= ${last ? parseSnapshot(last).xmin : null}::bigint
            and position < txid_snapshot_xmax(txid_current_snapshot())
            and not txid_visible_in_snapshot(position, ${last?.text ?? null}::txid_snapshot)
          limit ${maxChanges + 1}
        ) as found on true`.execute(db);
      const { snapshot, server_started_at, at } = rows[0] as (typeof rows)[number];
      return { rows: toChanges(rows), mark: { text: snapshot, serverStartedAt: server_started_at }, at };
    },
    follows: (last, mark) =>
      last.serverStartedAt === mark.serverStartedAt && parseSnapshot(mark).xmax >= parseSnapshot(last).xmax,
  };
}

/**
 * Parses a snapshot, which is `xmin:xmax:` and a list. Every transaction below `xmin` has ended; `xmax` and above had
 * not begun.
 */
function parseSnapshot({ text }: Snapshot): { xmin: number; xmax: number } {
  const [xmin, xmax] = text.split(':', 2).map(Number);
  return { xmin: xmin as number, xmax: xmax as number };
}

function createSqliteEngine(db: Db): Engine<number> {
  return {
    async read(last) {
      const { rows } = await sql<Row & { last: number | null }>`
        select latest.*, found.*
        from (select max(position) as last from changes) as latest
        left join (
          select id, kind, ref from changes where position > ${last ?? null} limit ${maxChanges + 1}
        ) as found on true`.execute(db);
      return { rows: toChanges(rows), mark: rows[0]?.last ?? 0 };
    },
    follows: (last, mark) => mark >= last,
  };
}

/** Change of a row. `ref` is its ID, for a server also its slug, and for grants also the ID of their person. */
export type Change = { id: string; kind: 'server' | 'key' | 'grant' | 'workspace'; ref: string };

/**
 * Records a change, in the transaction of the change itself. Takes no workspace, because processes follow all of them.
 */
export async function recordChange(db: Db, source: Source, kind: Change['kind'], ref: string): Promise<void> {
  await recordChanges(db, source, kind, [ref]);
}

/** Records several changes in one statement. */
export async function recordChanges(
  db: Db,
  { random, now }: Source,
  kind: Change['kind'],
  refs: readonly string[],
): Promise<void> {
  if (refs.length === 0) return;
  const at = now();
  const position = nextPosition(db);
  await db
    .insertInto('changes')
    .values(refs.map((ref) => ({ id: newId(random, 'chg'), at, kind, ref, position })))
    .execute();
}

/** Randomness for the id, and the time in epoch ms. */
type Source = { random: Random; now: () => number };

/**
 * Returns the position of a change that is written now. `createReadChanges` explains why no change is missed.
 * PostgreSQL: the id of the transaction. SQLite: the next position. It has one writer at a time, which sees every
 * earlier position.
 */
export function nextPosition(db: Db): RawBuilder<number> {
  return isPostgres(db)
    ? sql<number>`txid_current()`
    : sql<number>`(select coalesce(max(position), 0) + 1 from changes)`;
}

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Retention of changes. Longer than any process can continue without its database. */
export const changesRetentionMs = 24 * 60 * 60_000;

/** Deletes old changes except the last one, because SQLite continues from its position. */
export async function pruneChanges(db: Db, before: number, pause?: Pause): Promise<void> {
  const where = sql`at < ${before} and position < (select max(position) from changes)`;
  await deleteInSteps(db, { table: 'changes', key: ['id'], where }, pause);
}

/**
 * Runs work one at a time. All callers during a run share the next run, so that no runs accumulate while the database
 * is unavailable.
 */
export function coalesceRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let nextRun: Promise<void> | undefined;
  return function run(): Promise<void> {
    if (running) {
      nextRun ??= running
        .catch(() => undefined)
        .then(() => {
          nextRun = undefined;
          return run();
        });
      return nextRun;
    }
    running = work().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** Clocks of a process. */
export type ProcessClocks = {
  /** Clock of this process in epoch ms. It may be wrong and may step. */
  now: () => number;
  /** Monotonic ms, from a zero point of this process. */
  clock: () => number;
};

/** Database time in epoch ms, as read at some time between two monotonic times of this process. */
export type ClockReading = { at: number; before: number; after: number };

/**
 * Time for everything that several processes compare: stored times and expiry. No process uses its own clock for that.
 */
export type DatabaseClock = {
  /** Returns whole epoch ms, computed without a query. */
  now(): number;
  /** Updates the clock with a reading from a poll for changes. */
  applyReading(reading: ClockReading): void;
  /** Reads the database clock, for a process that does not poll for changes. @throws any database error */
  measure(): Promise<void>;
  /** Returns how far the clock of this process is ahead, in ms; negative if it is behind. */
  skewMs(): number;
};

/** @throws any database error */
export async function startDatabaseClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  return isPostgres(db) ? startServerClock(db, clocks) : createMachineClock(clocks);
}

/**
 * Maximum backward step that is smoothed. A clock that was set back by more was wrong for every process, and is
 * followed immediately.
 */
const maxSmoothedStepMs = 24 * 60 * 60_000;

/**
 * Creates the clock for SQLite. Every process runs on the machine of the file, and that machine's clock is the database
 * clock. When it is set back, time passes at half speed in the running processes until the two agree, so that no
 * expired value becomes valid again.
 */
function createMachineClock({ now, clock }: ProcessClocks): DatabaseClock {
  let last = { time: Number.NEGATIVE_INFINITY, at: 0 };
  const time = () => {
    const at = clock();
    const slowedTime = last.time + (at - last.at) / 2;
    const machineTime = now();
    const isLargeStep = slowedTime - machineTime > maxSmoothedStepMs;
    last = { time: isLargeStep ? machineTime : Math.max(machineTime, slowedTime), at };
    return last.time;
  };
  return {
    now: () => Math.floor(time()),
    applyReading: () => undefined,
    measure: async () => undefined,
    skewMs: () => now() - time(),
  };
}

/**
 * Creates the clock for PostgreSQL: the server clock, advanced by the monotonic clock of this process between readings.
 * The server read its clock at some time between `before` and `after`, so a reading bounds the difference of the two
 * clocks. The estimate moves only when it is outside the bounds. The error is therefore at most the round trip of the
 * last reading, and a slow reading does not degrade a quick one. A step of the process's clock changes nothing.
 */
async function startServerClock(db: Db, { now, clock }: ProcessClocks): Promise<DatabaseClock> {
  async function read(): Promise<ClockReading> {
    const readStartedAt = clock();
    const { rows } = await sql<{ at: number }>`
      select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at`.execute(db);
    return { at: rows[0]?.at as number, before: readStartedAt, after: clock() };
  }
  const firstReading = await read();
  let offsetMs = firstReading.at - (firstReading.before + firstReading.after) / 2;
  const databaseNow = () => Math.floor(clock() + offsetMs);
  const applyReading = ({ at, before, after }: ClockReading) => {
    offsetMs = Math.min(Math.max(offsetMs, at - after), at - before);
  };
  return {
    now: databaseNow,
    applyReading,
    measure: async () => applyReading(await read()),
    skewMs: () => now() - databaseNow(),
  };
}
