import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@toolhost/errors/errors';
import { createPrivateFile, isBusy } from './sqlite-file.ts';

/**
 * Rejects creating a database next to an existing write-ahead log. The main file was lost or not restored, and a new
 * one would start empty and destroy the content of the log.
 * @throws AppError conflict
 */
export function rejectOrphanedLog(file: string): void {
  // The log is checked first, because a process that creates the database at this moment creates the main file first.
  if (getSize(`${file}-wal`) === 0 || getSize(file) > 0) return;
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
export function rejectEmptied(file: string): void {
  const key = join(dirname(file), 'master.key');
  // The key is checked first, because another process may be creating both at this moment.
  if (!existsSync(key) || !existsSync(file) || getSize(file) > 0) return;
  throw new AppError(
    'conflict',
    `the database ${file} is empty, but the master key ${key} of an earlier database exists; restore the database from a backup; to start with an empty database, delete ${file}`,
  );
}

/** Returns the path where a process saves the open database after its file was deleted. */
export function getRescuedPath(file: string): string {
  return `${file}.rescued-${process.pid}`;
}

/**
 * Rejects creating a database next to a rescued copy. Otherwise, a supervisor that restarts the service would start
 * with an empty one.
 * @throws AppError conflict
 */
export function rejectNextToRescued(file: string): void {
  if (existsSync(file) || !existsSync(dirname(file))) return;
  const name = readdirSync(dirname(file)).find((fileName) => fileName.startsWith(`${basename(file)}.rescued-`));
  if (name === undefined) return;
  throw new AppError(
    'conflict',
    `the database ${file} is missing, but ${join(dirname(file), name)} contains the data that a service had open when it was deleted; move that file to ${file}, or put another database there; to start with an empty database, first move it away`,
  );
}

/** Returns the size in bytes; 0 for a missing file. */
function getSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

type WatchedFiles = {
  file: string;
  /** File whose lock shows that a process serves. */
  lockFile: string;
  /** Locks a new lock file. @throws AppError conflict if another process was first */
  relock(): void;
  /** Called with the way the database was lost, or the reason why this process must stop serving. */
  onDatabaseLost(reason: string): void;
  onWarning(warning: string): void;
};

/** Time between two checks of the files. */
const intervalMs = 1000;

/**
 * Checks once a second that the database files are still those that this process has open. Writes to a deleted or
 * replaced file would be lost with the process, and without the lock file, a second process would serve.
 */
export function watchSqlite(options: WatchedFiles): { stop(): void } {
  const { file, lockFile } = options;
  const openedStats = readStats(file);
  let lockStats = readStats(lockFile);
  const timer = setInterval(() => {
    const reason = findLossReason(openedStats, readStats(file));
    if (reason) return reportLoss(`the database ${file} ${reason} while the service was running`);
    if (isSameFile(lockStats, readStats(lockFile))) return;
    try {
      options.relock();
      lockStats = readStats(lockFile);
      options.onWarning(
        `the file ${lockFile} was deleted or replaced while the service was running; it was created again, do not remove it`,
      );
    } catch (error) {
      reportLoss(
        `the file ${lockFile} was deleted or replaced while the service was running, and ${(error as Error).message}`,
      );
    }
  }, intervalMs).unref();
  const reportLoss = (reason: string) => {
    clearInterval(timer);
    options.onDatabaseLost(reason);
  };
  return { stop: () => clearInterval(timer) };
}

function readStats(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSameFile(left: Stats | undefined, right: Stats | undefined): boolean {
  return left !== undefined && right !== undefined && left.ino === right.ino && left.dev === right.dev;
}

function findLossReason(openedStats: Stats | undefined, current: Stats | undefined): string | undefined {
  if (!current) return 'was deleted';
  if (!isSameFile(openedStats, current)) return 'was replaced by another file';
  return current.size === 0 ? 'was emptied' : undefined;
}

export type SqliteLock = {
  readonly file: string;
  /** Locks a new file after the old one was deleted. @throws AppError conflict */
  relock(): void;
  release(): void;
};

/**
 * Locks a file for one serving process. SQLite owns the lock, so it always ends with the process.
 * @throws AppError conflict if another process serves from the file
 */
export function lockSqlite(file: string): SqliteLock {
  const lockFile = `${file}.lock`;
  let lock = acquireLock(file, lockFile);
  return {
    file: lockFile,
    relock() {
      const newLock = acquireLock(file, lockFile);
      lock.close();
      lock = newLock;
    },
    release: () => lock.close(),
  };
}

function acquireLock(file: string, lockFile: string): DatabaseSync {
  createPrivateFile(lockFile);
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
const lockFileTimeoutMs = 2500;

const checkIntervalMs = 50;

/**
 * Waits for a serving process to create its lock file again. A database that is in use, or was left by a crash, and
 * has no lock file may belong to a serving process whose lock file was deleted.
 */
export async function awaitLockFile(file: string): Promise<void> {
  const deadline = performance.now() + lockFileTimeoutMs;
  while (existsSync(`${file}-wal`) && !existsSync(`${file}.lock`) && performance.now() < deadline)
    await delay(checkIntervalMs);
}
