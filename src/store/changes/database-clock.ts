import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { isPostgres } from './follow-changes.ts';

/** The clocks of a process. */
export type ProcessClocks = {
  /** The clock of this process in epoch ms, which may be wrong and may step. */
  now: () => number;
  /** Monotonic ms, from a zero of this process. */
  clock: () => number;
};

/** The clock of the database in epoch ms, as it was at some time between two monotonic times of this process. */
export type ClockReading = { at: number; before: number; after: number };

/**
 * The time for everything that several processes compare: stored times and expiry. No process uses its own clock for that.
 */
export type DatabaseClock = {
  /** Epoch ms, whole; computed without a query. */
  now(): number;
  /** Takes a reading of a look for changes. */
  take(reading: ClockReading): void;
  /** Reads the clock, for a process that does not look for changes. @throws whatever the database throws */
  measure(): Promise<void>;
  /** How far the clock of this process is ahead, in ms; negative when it is behind. */
  skewMs(): number;
};

/** @throws whatever the database throws */
export async function startDatabaseClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  return isPostgres(db) ? startServerClock(db, clocks) : machineClock(clocks);
}

/** A clock that was set back by more was wrong for everybody, and is followed at once. */
const mostBackMs = 24 * 60 * 60_000;

/**
 * SQLite: every process is on the machine of the file, and that machine's clock is the database's. When it is set back,
 * time passes at half speed in the processes that run, until the two agree, so that nothing that has expired is valid again.
 */
function machineClock({ now, clock }: ProcessClocks): DatabaseClock {
  let last = { time: Number.NEGATIVE_INFINITY, at: 0 };
  const time = (): number => {
    const at = clock();
    const slow = last.time + (at - last.at) / 2;
    const machine = now();
    last = { time: slow - machine > mostBackMs ? machine : Math.max(machine, slow), at };
    return Math.floor(last.time);
  };
  return {
    now: time,
    take: () => undefined,
    measure: async () => undefined,
    skewMs: () => now() - time(),
  };
}

/**
 * PostgreSQL: the server's clock, advanced by the monotonic clock of this process from one reading to the next. The server
 * read its clock at some time between `before` and `after`, so a reading bounds the difference of the two clocks. The
 * estimate moves only when it is outside of the bounds. So the error is never more than the round trip of the last
 * reading, and a slow reading does not spoil a quick one. A step of the process's clock changes nothing.
 */
async function startServerClock(db: Db, { now, clock }: ProcessClocks): Promise<DatabaseClock> {
  async function read(): Promise<ClockReading> {
    const before = clock();
    const { rows } = await sql<{ at: number }>`
      select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at`.execute(db);
    return { at: rows[0]?.at as number, before, after: clock() };
  }
  const first = await read();
  let ahead = first.at - (first.before + first.after) / 2;
  const databaseNow = () => Math.floor(clock() + ahead);
  const take = ({ at, before, after }: ClockReading) => {
    ahead = Math.min(Math.max(ahead, at - after), at - before);
  };
  return {
    now: databaseNow,
    take,
    measure: async () => take(await read()),
    skewMs: () => now() - databaseNow(),
  };
}
