import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Kysely, type SqliteDatabase, sql } from 'kysely';
import type { Tables } from '../schema.ts';
import { privateFileMode, type SqliteFile, syncToDisk } from './sqlite-file.ts';

/**
 * Returns the path of the mark, a file next to a SQLite database that exists while changes may be stored only in its
 * write-ahead log. Only a process that has the database open creates it, after a commit. Only a process with exclusive
 * access removes it, before SQLite deletes the log. A killed process therefore leaves no mark without a log.
 */
export function getMarkPath(file: string): string {
  return `${file}-wal-expected`;
}

/** Creates the mark of a database that this process has open for writing. */
export async function createMark(db: Kysely<Tables>, file: string): Promise<void> {
  const mark = getMarkPath(file);
  if (existsSync(mark)) return;
  // Sets the version that the database already has: a commit of one page, so that the log is not empty.
  await sql`pragma user_version = 0`.execute(db);
  const name = basename(file);
  const text = `Toolhost does not open ${name} without its write-ahead log ${name}-wal while this file exists.\n`;
  writeFileSync(mark, text, { mode: privateFileMode, flush: true });
  syncToDisk(dirname(file));
}

/** Removes the mark, so that the database can be opened without its log. */
export function removeMark(file: string): void {
  rmSync(getMarkPath(file), { force: true });
  syncToDisk(dirname(file));
}

/** Closes the last connection of this process. If no other process has the database open, this deletes its log. */
export function closeLastConnection(database: SqliteDatabase, { path, inode }: SqliteFile): void {
  let reader: DatabaseSync | undefined;
  if (existsSync(getMarkPath(path)) && statSync(path, { throwIfNoEntry: false })?.ino === inode) {
    if (checkpointExclusively(database)) removeMark(path);
    // If two processes close at the same time, they leave the log and its mark.
    else reader = openReader(path);
  }
  database.close();
  reader?.close();
}

/** Opens a read-only connection. While it is open, closing other connections does not delete the log. */
function openReader(path: string): DatabaseSync | undefined {
  try {
    const reader = new DatabaseSync(path, { readOnly: true });
    reader.exec('select 1 from sqlite_schema');
    return reader;
  } catch {
    // The files are gone or cannot be read. The last connection closes without a reader.
    return undefined;
  }
}

/** Locks out every other connection and moves the changes of the log into the database. Returns false if that fails. */
function checkpointExclusively(database: SqliteDatabase): boolean {
  const run = (statement: string) => database.prepare(statement).all([]);
  try {
    // In this mode, the connection retains a transaction's lock (https://sqlite.org/pragma.html#pragma_locking_mode).
    for (const statement of ['pragma locking_mode = exclusive', 'begin', 'commit']) run(statement);
    const [checkpoint] = run('pragma wal_checkpoint') as { log: number; checkpointed: number }[];
    return checkpoint !== undefined && checkpoint.log === checkpoint.checkpointed;
  } catch {
    // Another process has the database open, or the disk is full. The log is still needed.
    return false;
  }
}
