import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError, messageOf } from '../../errors.ts';

const pauseMs = 50;
/** Longer than the slowest answer of a token endpoint. */
const patienceMs = 90_000;

/**
 * Runs `work` while no other process of this person does. The lock is SQLite's own, as that of a database: it ends with
 * its process however that ends.
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
        throw new AppError('unavailable', `${file}: another toolhost command holds this lock; wait for its end`);
      await wait(pauseMs);
    }
    return await work();
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
    throw new AppError('unavailable', `the lock of the tokens cannot be taken: ${messageOf(error)}`);
  }
}
