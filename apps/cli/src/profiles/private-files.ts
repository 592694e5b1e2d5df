import { closeSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError, getErrorMessage } from '@toolhost/errors/errors';

/** Permission bits of other users: write access, and any access. */
export const writableByOthers = 0o022;
export const accessibleByOthers = 0o077;

/**
 * Reads a file of this user; returns undefined if it does not exist. Like ssh, rejects a file with one of the
 * `forbiddenBits`, because other users could change it or read its tokens.
 * @throws AppError forbidden, invalid
 */
export function readPrivateFile(path: string, forbiddenBits: number): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new AppError('invalid', `${path}: cannot be read: ${getErrorMessage(error)}`);
  }
  try {
    // Windows has no such permission bits; the user profile folder is private there.
    if (process.platform !== 'win32') checkOwnerAndMode(path, descriptor, forbiddenBits);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function checkOwnerAndMode(path: string, descriptor: number, forbiddenBits: number): void {
  const { mode, uid } = fstatSync(descriptor);
  if (uid !== process.getuid?.() && uid !== 0)
    throw new AppError('forbidden', `${path}: belongs to another user of this machine, so it is not used`);
  if ((mode & forbiddenBits) === 0) return;
  const [risk, requiredMode] =
    forbiddenBits === accessibleByOthers ? ['use its credentials', '600'] : ['change it', '644'];
  const currentMode = (mode & 0o777).toString(8);
  throw new AppError(
    'forbidden',
    `${path}: has mode ${currentMode}, so other users could ${risk}; it is not used. Restrict it: chmod ${requiredMode} ${path}`,
  );
}

const pollIntervalMs = 50;
/** Time to wait for the lock; longer than the slowest response of a token endpoint. */
const lockTimeoutMs = 90_000;

/**
 * Runs `work` while holding a lock against this user's other processes. The lock is an SQLite database lock, so it is
 * released however the process ends. Signals that end the process are deferred until the work has ended.
 * @throws AppError unavailable
 */
export async function withLock<Result>(lockFile: string, work: () => Promise<Result>): Promise<Result> {
  mkdirSync(dirname(lockFile), { recursive: true, mode: 0o700 });
  closeSync(openSync(lockFile, 'a', 0o600));
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    for (let waitedMs = 0; !tryLock(() => database.exec('BEGIN EXCLUSIVE')); waitedMs += pollIntervalMs) {
      if (waitedMs >= lockTimeoutMs)
        throw new AppError('unavailable', `${lockFile}: another toolhost command holds this lock. Wait until it ends`);
      await wait(pollIntervalMs);
    }
    return await withDeferredSignals(work);
  } finally {
    database.close();
  }
}

const sqliteBusy = 5;

function tryLock(acquire: () => void): boolean {
  try {
    acquire();
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return false;
    throw new AppError('unavailable', `cannot lock the stored tokens: ${getErrorMessage(error)}`);
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Defers signals that end the process until `work` has ended. Its listeners stay until the next call, because a signal
 * may arrive before `work` ends and be dispatched after it. Without a listener, that signal would be lost.
 */
export async function withDeferredSignals<Result>(work: () => Promise<Result>): Promise<Result> {
  let pendingSignal: NodeJS.Signals | undefined;
  const handleSignal = (signal: NodeJS.Signals) => {
    if (!onSignal.isOver) pendingSignal = signal;
    // A late signal ends the process, unless a listener that was added later handles it.
    else if (process.listeners(signal).at(-1) === onSignal) raise(signal);
  };
  const onSignal = Object.assign(handleSignal, { isOver: false });
  const raise = (signal: NodeJS.Signals) => {
    for (const name of signals) process.off(name, onSignal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) {
    const finishedListeners = process
      .listeners(signal)
      .filter((listener) => 'isOver' in listener && listener.isOver === true);
    process.on(signal, onSignal);
    for (const listener of finishedListeners) process.off(signal, listener);
  }
  try {
    return await work();
  } finally {
    onSignal.isOver = true;
    if (pendingSignal) raise(pendingSignal);
  }
}
