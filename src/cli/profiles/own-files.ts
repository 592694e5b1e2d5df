import { closeSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError, messageOf } from '../../errors.ts';

/** Permission bits that other users must not have: write access, or any access. */
export const othersMayRead = 0o022;
export const othersMayNothing = 0o077;

/**
 * Reads a file of this user; returns undefined if it does not exist. Like ssh, rejects a file that other users may
 * change, and a file with tokens that other users may read.
 * @throws AppError forbidden, invalid
 */
export function readOwnFile(path: string, forbidden: number): string | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new AppError('invalid', `${path}: cannot be read: ${messageOf(error)}`);
  }
  try {
    // Windows has no such permission bits; the user profile folder is private there.
    if (process.platform !== 'win32') checkOwner(path, file, forbidden);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function checkOwner(path: string, file: number, forbidden: number): void {
  const { mode, uid } = fstatSync(file);
  if (uid !== process.getuid?.() && uid !== 0)
    throw new AppError('forbidden', `${path}: belongs to another user of this machine, so it is not used`);
  if ((mode & forbidden) === 0) return;
  const wanted = forbidden === othersMayNothing ? '600' : '644';
  const found = (mode & 0o777).toString(8);
  throw new AppError(
    'forbidden',
    `${path}: has mode ${found}, so other users could ${forbidden === othersMayNothing ? 'use its credentials' : 'change it'}; it is not used. Restrict it: chmod ${wanted} ${path}`,
  );
}

const pauseMs = 50;
/** Time to wait for the lock; longer than the slowest response of a token endpoint. */
const patienceMs = 90_000;

/**
 * Runs `work` while holding a lock against this user's other processes. The lock is an SQLite database lock, so it is
 * released however the process ends. Signals that end the process are deferred until the work has ended.
 * @throws AppError unavailable
 */
export async function whileLocked<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  closeSync(openSync(file, 'a', 0o600));
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    for (let waitedMs = 0; !took(() => database.exec('BEGIN EXCLUSIVE')); waitedMs += pauseMs) {
      if (waitedMs >= patienceMs)
        throw new AppError('unavailable', `${file}: another toolhost command holds this lock. Wait until it ends`);
      await wait(pauseMs);
    }
    return await whileSignalsWait(work);
  } finally {
    database.close();
  }
}

const sqliteBusy = 5;

function took(begin: () => void): boolean {
  try {
    begin();
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return false;
    throw new AppError('unavailable', `cannot lock the stored tokens: ${messageOf(error)}`);
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Defers signals that end the process until `work` has ended. The listeners stay until the next call: the operating
 * system may have delivered a signal to a thread that has not run since, and without a listener that signal would be
 * lost.
 */
export async function whileSignalsWait<Result>(work: () => Promise<Result>): Promise<Result> {
  let waiting: NodeJS.Signals | undefined;
  const take = (signal: NodeJS.Signals) => {
    if (!onSignal.isOver) waiting = signal;
    // Only the last listener decides: earlier ones have run, and one added later decides for itself.
    else if (process.listeners(signal).at(-1) === onSignal) end(signal);
  };
  const onSignal = Object.assign(take, { isOver: false });
  const end = (signal: NodeJS.Signals) => {
    for (const each of signals) process.off(each, onSignal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) {
    const before = process.listeners(signal).filter((other) => 'isOver' in other && other.isOver === true);
    process.on(signal, onSignal);
    for (const other of before) process.off(signal, other);
  }
  try {
    return await work();
  } finally {
    onSignal.isOver = true;
    if (waiting) end(waiting);
  }
}
