import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';
import { makePrivateFile } from './private-files.ts';

/**
 * `FULL` syncs at every commit: what was acknowledged survives a power cut. `NORMAL` leaves the disk its time: the
 * process may die, but a power cut can take the last commits of this connection with it.
 */
export type Synchronous = 'FULL' | 'NORMAL';

export type SqliteOptions = {
  synchronous: Synchronous;
  /** How long a statement may hold up its thread while another connection writes, in ms. */
  busyMs: number;
  /** Pages of 4 KB in the write-ahead log from which on a commit also brings it into the file, and waits for the disk. */
  checkpointPages: number;
};

/** The write-ahead log grows while much is written, and is cut to this afterwards. */
const journalBytes = 4_000_000;
const openBusyMs = 5000;
const openAttempts = 100;
const pauseMs = 20;
const maxPrepared = 200;

/** Opens a connection as Kysely wants it. Statements are prepared once, as long as they are in use. */
export async function openSqlite(file: string, options: SqliteOptions): Promise<SqliteDatabase> {
  makePrivateFile(file);
  const database = await openFile(file, options);
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
async function openFile(file: string, options: SqliteOptions): Promise<DatabaseSync> {
  const database = new DatabaseSync(file);
  const pragmas = [
    `busy_timeout = ${openBusyMs}`,
    'journal_mode = WAL',
    'foreign_keys = ON',
    `journal_size_limit = ${journalBytes}`,
    `wal_autocheckpoint = ${options.checkpointPages}`,
    `synchronous = ${options.synchronous}`,
    `busy_timeout = ${options.busyMs}`,
  ];
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

export function isBusy(error: unknown): boolean {
  return /locked|busy/i.test(String(error));
}
