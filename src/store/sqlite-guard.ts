import { statSync } from 'node:fs';
import { AppError } from '../errors.ts';

/**
 * Refuses to make a database where the write-ahead log of one lies: its main file was lost or not restored, and a new
 * one would begin empty and destroy what the log still holds.
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

/** In bytes; 0 for a file that is not there. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
