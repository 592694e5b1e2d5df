import { chmodSync, closeSync, existsSync, fsyncSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import { LRUCache } from 'lru-cache';
import { createDataFolder } from '../../data-folder.ts';

/**
 * Durability of commits. `FULL` syncs at every commit, so that acknowledged changes survive a power failure. `NORMAL`
 * does not wait for the disk: commits survive the death of the process, but a power failure can lose the last commits
 * of this connection.
 */
type Synchronous = 'FULL' | 'NORMAL';

/** File that this process found or created at its start. Another inode at its path means that it was replaced. */
export type SqliteFile = { path: string; inode: number };

type SqliteOptions = {
  synchronous: Synchronous;
  /** Maximum time that a statement may block its thread while another connection writes, in ms. */
  busyTimeoutMs: number;
  /** Number of 4 KB pages in the write-ahead log above which a commit also runs a checkpoint and waits for the disk. */
  checkpointPages: number;
};

/** Size to which the write-ahead log is truncated after it has grown under many writes. */
const journalBytes = 4_000_000;
const openBusyTimeoutMs = 5000;
const openAttempts = 100;
const retryDelayMs = 20;
const maxPreparedStatements = 200;
/** SQLITE_CANTOPEN. */
const sqliteCannotOpen = 14;

/** Finds the file, or creates an empty one that only its owner can read. */
export function findOrCreateFile(path: string): SqliteFile {
  createPrivateFile(path);
  return { path, inode: statSync(path).ino };
}

/**
 * Opens a connection in the form that Kysely uses. Caches prepared statements while they are in use.
 * @throws an error with `errcode` SQLITE_CANTOPEN if the file was deleted or replaced; nothing is created or changed
 * then
 */
export async function openSqlite(file: SqliteFile, options: SqliteOptions): Promise<SqliteDatabase> {
  const database = await openFile(file, options);
  const statements = new LRUCache<string, SqliteStatement>({ max: maxPreparedStatements });
  return {
    close: () => database.close(),
    prepare(sql) {
      const statement = statements.get(sql) ?? prepare(database, sql);
      statements.set(sql, statement);
      return statement;
    },
  };
}

function prepare(database: DatabaseSync, sql: string): SqliteStatement {
  // Transactions here write. One that starts as a reader fails if another process has written in the meantime.
  const statement = database.prepare(sql === 'begin' ? 'begin immediate' : sql);
  const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...values(parameters)),
    run: (parameters) => statement.run(...values(parameters)),
    iterate: (parameters) => statement.iterate(...values(parameters)),
  };
}

/**
 * Opens the file and retries a switch to WAL. If several processes switch a new file at the same time, SQLite fails
 * all but one of those that wait.
 */
async function openFile(file: SqliteFile, options: SqliteOptions): Promise<DatabaseSync> {
  const database = connect(file);
  const pragmas = [
    `busy_timeout = ${openBusyTimeoutMs}`,
    'journal_mode = WAL',
    'foreign_keys = ON',
    `journal_size_limit = ${journalBytes}`,
    `wal_autocheckpoint = ${options.checkpointPages}`,
    `synchronous = ${options.synchronous}`,
    `busy_timeout = ${options.busyTimeoutMs}`,
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
    await delay(retryDelayMs);
  }
}

/**
 * Connects without reading or writing. A deleted file must not be created again as an empty one, because the next
 * start would take it for the database. A file that replaced it must not be changed.
 */
function connect({ path, inode }: SqliteFile): DatabaseSync {
  // In this mode, SQLite creates no file (https://sqlite.org/uri.html, 3.3).
  const database = new DatabaseSync(`${pathToFileURL(path)}?mode=rw`);
  if (statSync(path, { throwIfNoEntry: false })?.ino === inode) return database;
  database.close();
  throw Object.assign(new Error('the file was deleted or replaced'), { errcode: sqliteCannotOpen });
}

export function isBusy(error: unknown): boolean {
  return /locked|busy/i.test(String(error));
}

/** Mode bits that grant access to the group and to all other users. */
const groupAndOthersMask = 0o077;
export const privateFileMode = 0o600;

/** Names of the files that this service writes to its data folder. */
const ownFileNames = /^(toolhost\.sqlite|projects-example\.sqlite|master\.key|unwritten-calls)/;

/**
 * Creates the data folder, or restricts an existing one, so that only its owner can read the service's files. Removes
 * access of other users from these files, and from the folder itself only if it contains nothing else. Returns
 * sentences for the log about files that other users of the machine can still read.
 */
export function createPrivateDataFolder(folder: string): string[] {
  createDataFolder(folder);
  const names = readdirSync(folder);
  const ownFiles = names.filter((name) => ownFileNames.test(name));
  const exposed = ownFiles.filter((name) => !restrictToOwner(join(folder, name))).map((name) => join(folder, name));
  const hasOnlyOwnFiles = ownFiles.length === names.length;
  if (isAccessibleToOthers(folder) && !(hasOnlyOwnFiles && restrictToOwner(folder))) exposed.unshift(folder);
  return exposed.map((path) => `other users of this machine can read ${path}; restrict access with: chmod go= ${path}`);
}

/**
 * Creates an empty file that only its owner can read, unless it exists. SQLite creates its accompanying files with
 * the same mode.
 */
export function createPrivateFile(file: string): void {
  // Closing an existing file would release the locks that SQLite has on it for this process (POSIX, fcntl).
  if (!existsSync(file)) closeSync(openSync(file, 'a', privateFileMode));
}

/** Makes a file, or the names in a folder, survive a power failure. */
export function syncToDisk(path: string): void {
  // Windows cannot sync a folder, or a file that is open for reading.
  if (process.platform === 'win32') return;
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Removes access for everyone except the owner. Returns false for a path of another owner, which remains unchanged. */
function restrictToOwner(path: string): boolean {
  try {
    if (!isAccessibleToOthers(path)) return true;
    const { mode, uid } = statSync(path);
    if (uid !== process.getuid?.()) return false;
    chmodSync(path, mode & ~groupAndOthersMask & 0o7777);
    return true;
  } catch (error) {
    // SQLite deletes its accompanying files when the last process closes the database.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    if ((error as NodeJS.ErrnoException).code === 'EROFS') return false;
    throw error;
  }
}

/** Returns true if other users have access. Windows has no such mode bits. */
function isAccessibleToOthers(path: string): boolean {
  return process.getuid !== undefined && (statSync(path).mode & groupAndOthersMask) !== 0;
}
