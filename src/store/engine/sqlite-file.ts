import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';
import { makePrivateFile } from './private-files.ts';

/**
 * `FULL` syncs at every commit, so that acknowledged changes survive a power cut. `NORMAL` does not wait for the disk:
 * commits survive the death of the process, but a power cut can lose the last ones of this connection.
 */
export type Synchronous = 'FULL' | 'NORMAL';

export type SqliteOptions = {
  synchronous: Synchronous;
  /** How long a statement may block its thread while another connection writes, in ms. */
  busyMs: number;
  /** Pages of 4 KB in the write-ahead log above which a commit also runs a checkpoint, and waits for the disk. */
  checkpointPages: number;
};

/** Size to which the write-ahead log is cut after it has grown under many writes. */
const journalBytes = 4_000_000;
const openBusyMs = 5000;
const openAttempts = 100;
const pauseMs = 20;
const maxPrepared = 200;

/** Opens a connection in the form that Kysely uses. Prepared statements are kept while they are in use. */
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

/** Retries a switch to WAL: when several processes switch a new file at once, SQLite fails all but one of those that wait. */
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
