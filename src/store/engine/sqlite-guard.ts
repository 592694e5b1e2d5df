import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import { isBusy, makePrivateFile } from './sqlite-file.ts';

/**
 * Rejects creating a database next to an existing write-ahead log. The main file was lost or not restored, and a new
 * one would start empty and destroy the content of the log.
 * @throws AppError conflict
 */
export function refuseOrphanedLog(file: string): void {
  // The log is checked first, because a process that creates the database at this moment creates the main file first.
  if (sizeOf(`${file}-wal`) === 0 || sizeOf(file) > 0) return;
  throw new AppError(
    'conflict',
    `the database ${file} is missing or empty, but its log ${file}-wal exists; put the database back, or restore a backup; to start with an empty database, first move the log and ${file}-wal-expected away`,
  );
}

/**
 * Rejects an empty database file next to the key that local mode creates after the database. The file was truncated,
 * or created by another program, and would start an empty service.
 * @throws AppError conflict
 */
export function refuseEmptied(file: string): void {
  const key = join(dirname(file), 'master.key');
  // The key is checked first, because another process may be creating both at this moment.
  if (!existsSync(key) || !existsSync(file) || sizeOf(file) > 0) return;
  throw new AppError(
    'conflict',
    `the database ${file} is empty, but the master key ${key} of an earlier database exists; restore the database from a backup; to start with an empty database, delete ${file}`,
  );
}

/** Returns the path where a process saves the open database after its file was deleted. */
export function rescuedCopy(file: string): string {
  return `${file}.rescued-${process.pid}`;
}

/**
 * Rejects creating a database next to a rescued copy. Otherwise, a supervisor that restarts the service would start
 * with an empty one.
 * @throws AppError conflict
 */
export function refuseBesideRescued(file: string): void {
  if (existsSync(file) || !existsSync(dirname(file))) return;
  const name = readdirSync(dirname(file)).find((each) => each.startsWith(`${basename(file)}.rescued-`));
  if (name === undefined) return;
  throw new AppError(
    'conflict',
    `the database ${file} is missing, but ${join(dirname(file), name)} contains the data that a service had open when it was deleted; move that file to ${file}, or put another database there; to start with an empty database, first move it away`,
  );
}

/** Returns the size in bytes; 0 for a missing file. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

type WatchedFiles = {
  file: string;
  /** File whose lock shows that a process serves. */
  lockFile: string;
  /** Locks a new lock file. @throws AppError conflict if another process was first */
  lockAgain(): void;
  /** Called with the way the database was lost, or the reason why this process must stop serving. */
  onLost(why: string): void;
  onWarning(sentence: string): void;
};

const intervalMs = 1000;

/**
 * Checks once a second that the database files are still those that this process has open. Writes to a deleted or
 * replaced file would be lost with the process, and without the lock file, a second process would serve.
 */
export function watchSqlite(watched: WatchedFiles): { stop(): void } {
  const { file, lockFile } = watched;
  const opened = look(file);
  let locked = look(lockFile);
  const timer = setInterval(() => {
    const why = whyLost(opened, look(file));
    if (why) return lose(`the database ${file} ${why} while the service was running`);
    if (isSame(locked, look(lockFile))) return;
    try {
      watched.lockAgain();
      locked = look(lockFile);
      watched.onWarning(
        `the file ${lockFile} was deleted or replaced while the service was running; it was created again, do not remove it`,
      );
    } catch (error) {
      lose(
        `the file ${lockFile} was deleted or replaced while the service was running, and ${(error as Error).message}`,
      );
    }
  }, intervalMs).unref();
  const lose = (why: string) => {
    clearInterval(timer);
    watched.onLost(why);
  };
  return { stop: () => clearInterval(timer) };
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSame(one: Stats | undefined, other: Stats | undefined): boolean {
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
}

function whyLost(opened: Stats | undefined, found: Stats | undefined): string | undefined {
  if (!found) return 'was deleted';
  if (!isSame(opened, found)) return 'was replaced by another file';
  return found.size === 0 ? 'was emptied' : undefined;
}

export type SqliteLock = {
  readonly file: string;
  /** Locks a new file after the old one was deleted. @throws AppError conflict */
  again(): void;
  release(): void;
};

/**
 * Locks a file for one serving process. SQLite owns the lock, so it always ends with the process.
 * @throws AppError conflict if another process serves from the file
 */
export function lockSqlite(file: string): SqliteLock {
  const lockFile = `${file}.lock`;
  let lock = takeLock(file, lockFile);
  return {
    file: lockFile,
    again() {
      const next = takeLock(file, lockFile);
      lock.close();
      lock = next;
    },
    release: () => lock.close(),
  };
}

function takeLock(file: string, lockFile: string): DatabaseSync {
  makePrivateFile(lockFile);
  const lock = new DatabaseSync(lockFile);
  try {
    lock.exec('pragma busy_timeout = 0; begin exclusive');
    return lock;
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new AppError(
      'conflict',
      `another toolhost process serves from ${file}; stop it, or start this one with its own DATA_DIR or a PostgreSQL DATABASE_URL`,
    );
  }
}

/** Slightly longer than a serving process takes to notice that its lock file is missing, in ms. */
const noticedMs = 2500;

const lookMs = 50;

/**
 * Waits for a serving process to create its lock file again. A database that is in use, or was left by a crash, and
 * has no lock file may belong to a serving process whose lock file was deleted.
 */
export async function awaitLockFile(file: string): Promise<void> {
  const until = performance.now() + noticedMs;
  while (existsSync(`${file}-wal`) && !existsSync(`${file}.lock`) && performance.now() < until) await delay(lookMs);
}
