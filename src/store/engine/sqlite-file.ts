import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';
import { makePrivateFile } from './private-files.ts';

/**
 * `FULL` syncs at every commit, so that acknowledged changes survive a power cut. `NORMAL` does not wait for the disk:
 * commits survive the death of the process, but a power cut can lose the last ones of this connection.
 */
export type Synchronous = 'FULL' | 'NORMAL';

/** The file that this process found or made at its start. With another inode at its path, it was replaced. */
export type SqliteFile = { path: string; inode: number };

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
/** SQLITE_CANTOPEN. */
const cannotOpen = 14;

/** Finds the file, or makes an empty one that only its owner reads. */
export function findOrMakeFile(path: string): SqliteFile {
  makePrivateFile(path);
  return { path, inode: statSync(path).ino };
}

/**
 * Opens a connection in the form that Kysely uses. Prepared statements are kept while they are in use.
 * @throws an error with `errcode` SQLITE_CANTOPEN when the file was deleted or replaced; nothing is made or changed then
 */
export async function openSqlite(file: SqliteFile, options: SqliteOptions): Promise<SqliteDatabase> {
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
async function openFile(file: SqliteFile, options: SqliteOptions): Promise<DatabaseSync> {
  const database = connect(file);
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

/**
 * Connects without reading or writing yet. A file that was deleted must not begin again empty: the next start would take
 * it for the database. One that took its place must not be changed.
 */
function connect({ path, inode }: SqliteFile): DatabaseSync {
  // SQLite makes no file in this mode (https://sqlite.org/uri.html, 3.3).
  const database = new DatabaseSync(`${pathToFileURL(path)}?mode=rw`);
  if (statSync(path, { throwIfNoEntry: false })?.ino === inode) return database;
  database.close();
  throw Object.assign(new Error('the file was deleted or replaced'), { errcode: cannotOpen });
}

export function isBusy(error: unknown): boolean {
  return /locked|busy/i.test(String(error));
}
