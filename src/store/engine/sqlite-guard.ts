import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import { isBusy, makePrivateFile } from './sqlite-file.ts';

/**
 * Refuses to make a database beside an existing write-ahead log: the main file was lost or not restored, and a new one
 * would begin empty and destroy the content of the log.
 * @throws AppError conflict
 */
export function refuseOrphanedLog(file: string): void {
  // The log first: a process that makes the database at this moment makes the main file before.
  if (sizeOf(`${file}-wal`) === 0 || sizeOf(file) > 0) return;
  throw new AppError(
    'conflict',
    `the database ${file} is missing or empty, but its log ${file}-wal is there; put the database back from where it was moved, or restore a backup; to begin with an empty database, move the log and ${file}-wal-expected away first`,
  );
}

/**
 * Refuses an empty database file beside the key that local mode makes after the database: the file was truncated, or made
 * by another program, and would begin as an empty service.
 * @throws AppError conflict
 */
export function refuseEmptied(file: string): void {
  const key = join(dirname(file), 'master.key');
  // The key first, as another process may be making both at this moment.
  if (!existsSync(key) || !existsSync(file) || sizeOf(file) > 0) return;
  throw new AppError(
    'conflict',
    `the database ${file} is empty, but the master key ${key} of an earlier one is there; restore the database from a backup; to begin with an empty database, delete ${file}`,
  );
}

/** The file to which a process saves the open database when its file was deleted. */
export function rescuedCopy(file: string): string {
  return `${file}.rescued-${process.pid}`;
}

/**
 * Refuses to make a database beside a saved copy of one: a supervisor that restarts the service would otherwise begin an
 * empty one.
 * @throws AppError conflict
 */
export function refuseBesideRescued(file: string): void {
  if (existsSync(file) || !existsSync(dirname(file))) return;
  const name = readdirSync(dirname(file)).find((each) => each.startsWith(`${basename(file)}.rescued-`));
  if (name === undefined) return;
  throw new AppError(
    'conflict',
    `the database ${file} is missing, but ${join(dirname(file), name)} holds what a service had open when it was deleted; move that to ${file}, or put another database there; to begin with an empty one, move it away first`,
  );
}

/** Size in bytes; 0 for a missing file. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

type WatchedFiles = {
  file: string;
  /** The file whose lock shows that a process serves. */
  lockFile: string;
  /** Takes the lock again on a new file. @throws AppError conflict when another process was first */
  lockAgain(): void;
  /** Receives how the database was lost, or why this process may no longer serve. */
  onLost(why: string): void;
  onWarning(sentence: string): void;
};

const intervalMs = 1000;

/**
 * Checks once a second that the files of the database are still those that this process has open. Writes to a deleted or
 * replaced file would be lost with the process, and without the lock file a second process would serve.
 */
export function watchSqlite(watched: WatchedFiles): { stop(): void } {
  const { file, lockFile } = watched;
  const opened = look(file);
  let locked = look(lockFile);
  const timer = setInterval(() => {
    const why = whyLost(opened, look(file));
    if (why) return lose(`the database ${file} ${why} while the service ran`);
    if (isSame(locked, look(lockFile))) return;
    try {
      watched.lockAgain();
      locked = look(lockFile);
      watched.onWarning(
        `the file ${lockFile} was deleted or replaced while the service ran; it was made anew, leave it there`,
      );
    } catch (error) {
      lose(`the file ${lockFile} was deleted or replaced while the service ran, and ${(error as Error).message}`);
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
  /** Takes the lock again, on a new file after the old one was deleted. @throws AppError conflict */
  again(): void;
  release(): void;
};

/**
 * Locks a file for one serving process. The lock is SQLite's own, so it ends with the process in any case.
 * @throws AppError conflict when another process serves from the file
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
      `another toolhost process serves from ${file}; stop it, or give this one its own DATA_DIR or a PostgreSQL DATABASE_URL`,
    );
  }
}

/** A little longer than a serving process takes to notice that its lock file is gone. */
const noticedMs = 2500;

const lookMs = 50;

/**
 * Waits for a serving process to make its lock file again: a database that is in use, or was left by a crash, and has no
 * lock file may belong to a serving process whose lock file was deleted.
 */
export async function awaitLockFile(file: string): Promise<void> {
  const until = performance.now() + noticedMs;
  while (existsSync(`${file}-wal`) && !existsSync(`${file}.lock`) && performance.now() < until) await delay(lookMs);
}
