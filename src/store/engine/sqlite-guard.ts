import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../../errors.ts';

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
    `the database ${file} is missing or empty, but its log ${file}-wal is there; put the database back from where it was moved, or restore a backup; to begin with an empty database, move the log away first`,
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
