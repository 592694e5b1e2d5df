import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { isPostgres } from './changes.ts';
import { type MachineLevel, machineClock, type ProcessClocks } from './machine-clock.ts';

/**
 * The time for everything that several processes compare: stored times and expiry. No process uses its own clock for that.
 */
export type DatabaseClock = {
  /** Epoch ms, whole; computed without a query. */
  now(): number;
  /** Takes what a look found, made between two monotonic times of this process. */
  take(found: FoundTime & Span): void;
  /** Tells the other processes that the clock of the machine was set back (SQLite). @throws whatever the database throws */
  share(): Promise<void>;
  /** Does all of this by itself, for a process that does not look for changes. @throws whatever the database throws */
  measure(): Promise<void>;
  /** How far the clock of this process is ahead, in ms; negative when it is behind. */
  skewMs(): number;
};

/** What a database says of the time. PostgreSQL: its clock in epoch ms. SQLite: what the processes of the machine share. */
export type FoundTime = { at: number } | { level: MachineLevel | undefined };

type Span = { before: number; after: number };
export type ClockReading = { at: number } & Span;

/** @throws whatever the database throws */
export async function startDatabaseClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  return isPostgres(db) ? startServerClock(db, clocks) : startMachineClock(db, clocks);
}

async function startServerClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  const read = async (): Promise<ClockReading> => {
    const before = clocks.clock();
    const { rows } = await sql<{ at: number }>`
      select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at`.execute(db);
    return { at: rows[0]?.at as number, before, after: clocks.clock() };
  };
  const time = projectedClock(clocks, await read());
  return {
    ...time,
    take(found) {
      if ('at' in found) time.take(found);
    },
    share: async () => undefined,
    measure: async () => time.take(await read()),
  };
}

async function startMachineClock(db: Db, clocks: ProcessClocks): Promise<DatabaseClock> {
  const read = () => db.selectFrom('machine_clock').select(['boot', 'level']).executeTakeFirst();
  const { now, skewMs, take, due } = machineClock(clocks);
  take(await read());
  const share = async () => {
    const change = due();
    if (change && 'store' in change) await storeLevel(db, change.store);
    else if (change) await removeLevel(db, change.remove);
  };
  return {
    now,
    skewMs,
    take(found) {
      if ('level' in found) take(found.level);
    },
    share,
    async measure() {
      take(await read());
      await share();
    },
  };
}

// No query here names a workspace: the time is that of all.

/** Stores a level, unless there is a higher one of the same boot. */
async function storeLevel(db: Db, { boot, level }: MachineLevel): Promise<void> {
  await db
    .insertInto('machine_clock')
    .values({ id: 1, boot, level })
    .onConflict((c) =>
      c
        .column('id')
        .doUpdateSet({ boot, level })
        .where((e) => e.or([e('machine_clock.boot', '<>', boot), e('machine_clock.level', '<', level)])),
    )
    .execute();
}

/** Removes a level, unless another one has replaced it. */
async function removeLevel(db: Db, { boot, level }: MachineLevel): Promise<void> {
  await db.deleteFrom('machine_clock').where('boot', '=', boot).where('level', '=', level).execute();
}

/**
 * PostgreSQL: the server's clock, advanced by the monotonic clock of this process from one reading to the next. The server
 * read its clock at some time between `before` and `after`, so a reading bounds the difference of the two clocks. The
 * estimate moves only when it is outside of the bounds. So the error is never more than the round trip of the last
 * reading, and a slow reading does not spoil a quick one. A step of the process's clock changes nothing.
 */
export function projectedClock({ now, clock }: Pick<ProcessClocks, 'now' | 'clock'>, first: ClockReading) {
  let ahead = first.at - (first.before + first.after) / 2;
  const databaseNow = () => Math.floor(clock() + ahead);
  return {
    now: databaseNow,
    take({ at, before, after }: ClockReading): void {
      ahead = Math.min(Math.max(ahead, at - after), at - before);
    },
    skewMs: () => now() - databaseNow(),
  };
}
