import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CallLog, createCallLog } from '../gateway/call/call-log.ts';
import type { Log } from '../log.ts';
import type { CredentialUses } from '../store/api-keys.ts';
import { type CallRecord, type CallWriter, recordColumns } from '../store/calls/call-writer.ts';
import type { Database } from '../store/database.ts';
import { getErrorReason } from '../store/engine/database-errors.ts';
import type { Foundation } from './foundation.ts';
import { createOutageLog } from './observability/fault-log.ts';

/** Call log that saves records to a file if the database cannot store them before the process ends. */
export type CallRecords = Omit<CallLog, 'stop'> & {
  /** Writes the pending records, or saves them to a file for the next start. Returns false if records were lost. */
  stop(): Promise<boolean>;
};

export function startCallRecords(
  { config: { dataDir }, store, keyring, log, observability }: Foundation,
  credentialUses: CredentialUses,
): CallRecords {
  const { records: db, calls } = store;
  const outageLog = createOutageLog(
    log,
    'could not write call records; they will be retried',
    'call records are written again',
  );
  const callLog = createCallLog({
    db,
    calls,
    keyring,
    uses: credentialUses,
    onError: outageLog.onError,
    onSuccess: outageLog.onSuccess,
    onDropped(rows) {
      observability.onDropped(rows);
      log.error({ rows }, 'call records were dropped');
    },
  });
  const spoolRestored = restoreSpooled(dataDir, calls, log);
  return {
    add: callLog.add,
    flush: callLog.flush,
    getWaitingCount: callLog.getWaitingCount,
    async stop() {
      await spoolRestored;
      const unwritten = await callLog.stop();
      return unwritten.length === 0 || saveToSpool(dataDir, unwritten, log);
    },
  };
}

async function restoreSpooled(dataDir: string, { write }: Database['calls'], log: Log): Promise<void> {
  try {
    const { rows, unreadable } = await writeSpooledCalls(dataDir, write);
    if (rows + unreadable > 0) log.info({ rows, unreadable }, 'call records of an earlier process were written');
  } catch (error) {
    log.warn(
      { reason: getErrorReason(error) },
      'call records of an earlier process could not be written; they remain in their file',
    );
  }
}

function saveToSpool(dataDir: string, rows: readonly CallRecord[], log: Log): boolean {
  const reason = `${rows.length} call records could not be written to the database before the service stopped`;
  try {
    const path = spoolCalls(dataDir, rows, randomBytes(8).toString('hex'));
    if (path !== undefined) {
      log.warn(
        { rows: rows.length, path },
        `${reason}; they were saved to a file and will be written at the next start with this DATA_DIR`,
      );
      return true;
    }
    log.error({ rows: rows.length }, `${reason}; they were lost, because the folder DATA_DIR does not exist`);
  } catch (error) {
    log.error(
      { rows: rows.length, err: error },
      `${reason}; they were lost, because DATA_DIR cannot be written either`,
    );
  }
  return false;
}

const spoolFileName = /^unwritten-calls-[0-9a-f]+\.jsonl$/;
const privateFileMode = 0o600;

/**
 * Writes call records that the database could not store to a file in the data folder, for the next start. Returns its
 * path, or undefined if the folder does not exist. With PostgreSQL, nothing else needs the folder.
 * @throws any file system error
 */
export function spoolCalls(folder: string, rows: readonly CallRecord[], id: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const path = join(folder, `unwritten-calls-${id}.jsonl`);
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  writeFileSync(path, text, { mode: privateFileMode, flag: 'wx', flush: true });
  return path;
}

/**
 * Stores the records that an earlier process saved to files, and deletes the files. Several processes may run this
 * concurrently, because a stored record is not written twice. Returns the number of records and of unreadable lines.
 * @throws DatabaseError; the file is then retained for the next start
 */
export async function writeSpooledCalls(folder: string, write: CallWriter['write']) {
  const counts = { rows: 0, unreadable: 0 };
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!spoolFileName.test(name)) continue;
    const path = join(folder, name);
    const rows = readRows(path);
    await write(rows.valid);
    rmSync(path, { force: true });
    counts.rows += rows.valid.length;
    counts.unreadable += rows.unreadable;
  }
  return counts;
}

/** Skips unreadable lines, because the process may have been killed while it wrote the last line. */
function readRows(path: string): { valid: CallRecord[]; unreadable: number } {
  const lines = readLines(path);
  const rows = lines.map(readRow);
  const valid = rows.filter((row) => row !== undefined);
  return { valid, unreadable: rows.length - valid.length };
}

/** Returns no lines if another process has deleted the file. */
function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function readRow(line: string): CallRecord | undefined {
  try {
    const row = JSON.parse(line) as CallRecord;
    return recordColumns.every((column) => column in row) ? row : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
