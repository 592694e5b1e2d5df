import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type DatabaseConnection,
  type Dialect,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
  type SqliteStatement,
} from 'kysely';
import { LRUCache } from 'lru-cache';
import { AppError } from '../errors.ts';

/**
 * `FULL` syncs at every commit: what was acknowledged survives a power cut. `NORMAL` leaves the disk its time: the
 * process may die, but a power cut can take the last commits of this connection with it.
 */
type Synchronous = 'FULL' | 'NORMAL';

/** A checkpoint holds up the process while the disk syncs, so it comes seldom: after 16 MB. */
const pragmas = ['busy_timeout = 5000', 'journal_mode = WAL', 'foreign_keys = ON', 'wal_autocheckpoint = 4000'];
const openAttempts = 100;
const pauseMs = 20;
const maxPrepared = 200;
/** How long a statement may wait for another process that writes. */
const patienceMs = 5000;
const longestPauseMs = 16;

/** Kysely on Node's own SQLite. */
export function sqliteDialect(file: string, synchronous: Synchronous): Dialect {
  mkdirSync(dirname(file), { recursive: true });
  const config = { database: async () => adapted(await openFile(file, synchronous)) };
  return Object.assign(new SqliteDialect(config), { createDriver: () => new PatientDriver(config) });
}

/**
 * Of several processes on one file one writes at a time. SQLite itself would wait for the others without giving the
 * event loop back, so the waiting is done here. A statement that found the file taken has done nothing yet.
 */
class PatientDriver extends SqliteDriver {
  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    return {
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
      async executeQuery<Row>(query: Parameters<DatabaseConnection['executeQuery']>[0]) {
        const until = performance.now() + patienceMs;
        for (let pause = 1; ; pause = Math.min(pause * 2, longestPauseMs)) {
          try {
            return await connection.executeQuery<Row>(query);
          } catch (error) {
            if (!isTaken(error) || performance.now() > until) throw error;
          }
          await delay(pause);
        }
      },
    };
  }
}

/** Statements are prepared once, as long as they are in use. */
function adapted(database: DatabaseSync): SqliteDatabase {
  const prepared = new LRUCache<string, SqliteStatement>({ max: maxPrepared });
  return {
    close: () => database.close(),
    prepare(sql) {
      const statement = prepared.get(sql) ?? prepare(database, sql);
      prepared.set(sql, statement);
      return statement;
    },
  };
}

function prepare(database: DatabaseSync, sql: string): SqliteStatement {
  // Our transactions write. One that starts as a reader fails when another process has written meanwhile.
  const statement = database.prepare(sql === 'begin' ? 'begin immediate' : sql);
  const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...values(parameters)),
    run: (parameters) => statement.run(...values(parameters)),
    iterate: (parameters) => statement.iterate(...values(parameters)),
  };
}

/** Of several processes that turn one new file to WAL at once, SQLite lets one wait and tells the others to try again. */
async function openFile(file: string, synchronous: Synchronous): Promise<DatabaseSync> {
  const database = new DatabaseSync(file);
  for (let attempt = 1; ; attempt++) {
    try {
      for (const pragma of [...pragmas, `synchronous = ${synchronous}`]) database.exec(`pragma ${pragma}`);
      database.exec('pragma busy_timeout = 0');
      return database;
    } catch (error) {
      if (attempt === openAttempts || !isBusy(error)) {
        database.close();
        throw error;
      }
    }
    await delay(pauseMs);
  }
}

const sqliteBusy = 5;

/** Another process writes. The lower byte is the kind of error, the upper ones say more. */
function isTaken(error: unknown): boolean {
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === sqliteBusy;
}

function isBusy(error: unknown): boolean {
  return /locked|busy/i.test(String(error));
}

/**
 * Holds a file for one serving process: the lock is SQLite's own, so it goes with the process however that ends.
 * @throws AppError conflict when another process serves from the file
 */
export function lockSqlite(file: string): { release(): void } {
  mkdirSync(dirname(file), { recursive: true });
  const lock = new DatabaseSync(`${file}.lock`);
  try {
    lock.exec('pragma busy_timeout = 0; begin exclusive');
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new AppError(
      'conflict',
      `another toolhost process serves from ${file}; stop it, or give this one its own DATA_DIR or a PostgreSQL DATABASE_URL`,
    );
  }
  return { release: () => lock.close() };
}
