import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { type Dialect, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';
import { AppError } from '../errors.ts';

/** WAL with a sync at every commit: what was acknowledged survives a power cut. */
const pragmas = ['busy_timeout = 5000', 'journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON'];
const openAttempts = 100;
const pauseMs = 20;
const maxPrepared = 200;

/** Kysely on Node's own SQLite. */
export function sqliteDialect(file: string): Dialect {
  mkdirSync(dirname(file), { recursive: true });
  return new SqliteDialect({ database: async () => adapted(await openFile(file)) });
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
async function openFile(file: string): Promise<DatabaseSync> {
  const database = new DatabaseSync(file);
  for (let attempt = 1; ; attempt++) {
    try {
      for (const pragma of pragmas) database.exec(`pragma ${pragma}`);
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
