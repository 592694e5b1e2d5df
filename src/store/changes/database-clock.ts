import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { isPostgres } from './changes.ts';

/**
 * The time for everything that several processes compare: stored times and expiry. No process uses its own clock for that.
 */
export type DatabaseClock = {
  /** Epoch ms, whole; computed without a query. */
  now(): number;
  /** Takes a reading of the database's clock, made between two monotonic times of this process. */
  take(reading: ClockReading): void;
  /** Reads the database's clock, for a process that does not look for changes. @throws whatever the database throws */
  measure(): Promise<void>;
  /** How far the clock of this process is ahead, in ms; negative when it is behind. */
  skewMs(): number;
};

export type ClockReading = { at: number; before: number; after: number };

export type ProcessClocks = {
  /** The clock of this process in epoch ms, which may be wrong and may step. */
  now: () => number;
  /** Monotonic ms. */
  clock: () => number;
};

/** @throws whatever the database throws */
export async function startDatabaseClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  if (!isPostgres(db)) return { ...machineClock(clocks), measure: async () => undefined };
  const read = async (): Promise<ClockReading> => {
    const before = clocks.clock();
    const { rows } = await sql<{ at: number }>`
      select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at`.execute(db);
    return { at: rows[0]?.at as number, before, after: clocks.clock() };
  };
  const time = projectedClock(clocks, await read());
  return { ...time, measure: async () => time.take(await read()) };
}

type CarriedClock = Omit<DatabaseClock, 'measure'>;

/**
 * PostgreSQL: the server's clock, advanced by the monotonic clock of this process from one reading to the next. The server
 * read its clock at some time between `before` and `after`, so a reading bounds the difference of the two clocks. The
 * estimate moves only when it is outside of the bounds. So the error is never more than the round trip of the last
 * reading, and a slow reading does not spoil a quick one. A step of the process's clock changes nothing.
 */
export function projectedClock({ now, clock }: ProcessClocks, first: ClockReading): CarriedClock {
  let ahead = first.at - (first.before + first.after) / 2;
  const databaseNow = () => Math.floor(clock() + ahead);
  return {
    now: databaseNow,
    take({ at, before, after }) {
      ahead = Math.min(Math.max(ahead, at - after), at - before);
    },
    skewMs: () => now() - databaseNow(),
  };
}

/**
 * SQLite: every process is on the machine of the file, and that machine's clock is the database's. When it steps forward,
 * as after a sleep, so does the time here. When it steps back, time passes at half speed until the two are equal, so that
 * it never goes back: expired things stay expired, and things that should expire soon still do.
 */
export function machineClock({ now, clock }: ProcessClocks): CarriedClock {
  let last = now();
  let readAt = clock();
  const machineNow = () => {
    const at = clock();
    last = Math.max(now(), last + (at - readAt) / 2);
    readAt = at;
    return Math.floor(last);
  };
  return { now: machineNow, take: () => undefined, skewMs: () => now() - machineNow() };
}
