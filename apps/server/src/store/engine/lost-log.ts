import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@toolhost/errors/errors';
import { toOpenError } from './database-errors.ts';
import { closeLastConnection, getMarkPath, removeMark } from './log-mark.ts';
import { findOrCreateFile, openSqlite } from './sqlite-file.ts';
import { lockSqlite } from './sqlite-guard.ts';

/**
 * Acknowledged changes that are missing from a write-ahead log. `frame` is the first unreadable frame, counted from 1;
 * 0 if none is readable.
 */
type LogLoss = { frame: number; transactions: number };

/** Time between two reads of a log. A concurrent writer can invalidate one read, but not both. */
const rereadDelayMs = 100;

/**
 * Rejects a SQLite database whose write-ahead log lost acknowledged changes. SQLite would ignore them and then delete
 * the log.
 * @throws AppError conflict
 */
export async function rejectLostLog(file: string): Promise<void> {
  const loss = await findLoss(file);
  if (loss === undefined) return;
  throw new AppError(
    'conflict',
    `${formatLoss(loss, file)} Put the log back, or restore a backup. To start without these changes, add --accept-loss.`,
  );
}

/**
 * Stores the readable part of a write-ahead log in its database, so that the database can be opened.
 * @throws AppError conflict while a service runs, or if the database is damaged without the log, which then remains
 * lost
 */
export async function acceptLogLoss(file: string, onLoss: (message: string) => void): Promise<void> {
  const loss = await findLoss(file);
  if (loss === undefined) return;
  const lock = lockSqlite(file);
  try {
    const databaseFile = statSync(file, { throwIfNoEntry: false });
    const lastWritten = databaseFile
      ? ` The database file was last written at ${databaseFile.mtime.toISOString()}.`
      : '';
    onLoss(`${formatLoss(loss, file)} The database opens without them.${lastWritten}`);
    if (!databaseFile?.size) return removeMark(file);
    rejectDamaged(file);
    const sqliteFile = findOrCreateFile(file);
    closeLastConnection(
      await openSqlite(sqliteFile, { synchronous: 'FULL', busyTimeoutMs: 0, checkpointPages: 0 }),
      sqliteFile,
    );
  } finally {
    lock.release();
  }
}

function formatLoss({ frame, transactions }: LogLoss, file: string): string {
  const log = `The write-ahead log ${file}-wal`;
  return frame === 0
    ? `${log} is missing or cannot be read, and with it the changes that were stored only there.`
    : `${log} is damaged at frame ${frame}, so the changes of ${transactions} or more transactions cannot be read.`;
}

/** @throws AppError if the content of a database and the readable part of its log are inconsistent */
function rejectDamaged(file: string): void {
  // A read-only connection changes nothing.
  const database = new DatabaseSync(file, { readOnly: true });
  let integrity: unknown;
  try {
    integrity = database.prepare('pragma integrity_check(1)').get()?.integrity_check;
  } catch (error) {
    throw toOpenError(error, file);
  } finally {
    database.close();
  }
  if (integrity === 'ok') return;
  throw new AppError('conflict', `The database ${file} is damaged without its log (${integrity}). Restore a backup.`);
}

/** Reads the loss repeatedly, until two reads agree. */
async function findLoss(file: string): Promise<LogLoss | undefined> {
  let loss = readLoss(file);
  while (loss !== undefined) {
    await delay(rereadDelayMs);
    const reread = readLoss(file);
    if (reread?.frame === loss.frame) break;
    loss = reread;
  }
  return loss;
}

/* Format of a log: https://sqlite.org/fileformat2.html#the_write_ahead_log */

/** Sizes of the header of a log, and of the header of each frame. */
const headerBytes = 32;
const frameHeaderBytes = 24;
/** Magic number at the start of a log. Its lowest bit is set if the checksums use big-endian words. */
const logMagic = 0x377f0682;

/** Open log with a header and at least one frame. */
type Log = { handle: number; header: Buffer; frameBytes: number };

/** Returns the loss that the log shows now; undefined if it has none. */
function readLoss(file: string): LogLoss | undefined {
  // A process that closes the database removes the mark first.
  const isMarked = existsSync(getMarkPath(file));
  const path = `${file}-wal`;
  if (!existsSync(path)) return isMarked ? { frame: 0, transactions: 0 } : undefined;
  const handle = openSync(path, 'r');
  try {
    const log = readHeader(handle);
    if (log !== undefined) return findDamage(log);
    // The log had a commit when the mark was created, and SQLite never shortens it below that.
    return isMarked ? { frame: 0, transactions: 0 } : undefined;
  } finally {
    closeSync(handle);
  }
}

function readHeader(handle: number): Log | undefined {
  const header = Buffer.alloc(headerBytes);
  if (readSync(handle, header, 0, headerBytes, 0) < headerBytes) return undefined;
  const isLog = (header.readUInt32BE(0) & ~1) === logMagic;
  const frameBytes = frameHeaderBytes + header.readUInt32BE(8);
  if (!isLog || fstatSync(handle).size < headerBytes + frameBytes) return undefined;
  const sum = addWords([0, 0], header.subarray(0, 24), header);
  return isEqual(sum, readChecksum(header, 24)) ? { handle, header, frameBytes } : undefined;
}

/**
 * Finds a frame with a wrong checksum before an acknowledged transaction. A transaction is acknowledged if its commit
 * is followed by a frame of the same log, because a connection writes that frame only after the disk has stored the
 * commit. Frames of earlier logs may follow, with another salt.
 */
function findDamage({ handle, header, frameBytes }: Log): LogLoss | undefined {
  const frame = Buffer.alloc(frameBytes);
  let previousChecksum = readChecksum(header, 24);
  let followsCommit = false;
  let damagedFrame: number | undefined;
  let transactions = 0;
  let isLost = false;
  for (let number = 1; ; number++) {
    const position = headerBytes + (number - 1) * frameBytes;
    if (readSync(handle, frame, 0, frameBytes, position) < frameBytes) break;
    const isCurrent = frame.compare(header, 16, 24, 8, 16) === 0;
    // Also checked after a damaged frame, whose stored checksum is usually intact.
    const isIntact = isCurrent && isEqual(addFrame(previousChecksum, frame, header), readChecksum(frame, 16));
    if (!isIntact) damagedFrame ??= number;
    const isCommit = isCurrent && frame.readUInt32BE(4) > 0;
    if (damagedFrame !== undefined) {
      if (isCommit) transactions++;
      if (isIntact && followsCommit) isLost = true;
    }
    followsCommit = isCommit;
    previousChecksum = readChecksum(frame, 16);
  }
  return damagedFrame !== undefined && isLost ? { frame: damagedFrame, transactions } : undefined;
}

type Checksum = readonly [number, number];

/** Returns the checksum of the first two words of a frame and of its page, continued from the previous frame. */
function addFrame(previousChecksum: Checksum, frame: Buffer, header: Buffer): Checksum {
  return addWords(addWords(previousChecksum, frame.subarray(0, 8), header), frame.subarray(frameHeaderBytes), header);
}

function addWords([first, second]: Checksum, bytes: Buffer, header: Buffer): Checksum {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const isLittleEndian = header.readUInt32BE(0) === logMagic;
  for (let offset = 0; offset < bytes.length; offset += 8) {
    first = (first + words.getInt32(offset, isLittleEndian) + second) | 0;
    second = (second + words.getInt32(offset + 4, isLittleEndian) + first) | 0;
  }
  return [first, second];
}

function readChecksum(bytes: Buffer, offset: number): Checksum {
  return [bytes.readInt32BE(offset), bytes.readInt32BE(offset + 4)];
}

function isEqual(left: Checksum, right: Checksum): boolean {
  return left[0] === right[0] && left[1] === right[1];
}
