import { randomBytes } from 'node:crypto';
import { type CallLog, createCallLog } from '../gateway/call/call-log.ts';
import type { Log } from '../log.ts';
import type { CredentialUses } from '../store/api-keys.ts';
import { spoolCalls, writeSpooledCalls } from '../store/calls/call-spool.ts';
import type { Database } from '../store/database.ts';
import { reasonOf } from '../store/engine/faults.ts';
import type { CallRow } from '../store/schema.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { outageLog } from './observability/fault-log.ts';

export type CallRecordParts = {
  store: Pick<Database, 'records' | 'calls'>;
  keyring: Keyring;
  uses: CredentialUses;
  dataDir: string;
  log: Log;
  onDropped: (rows: number) => void;
};

/** The call log, with a file for records that the database cannot store before the process ends. */
export type CallRecords = Omit<CallLog, 'stop'> & {
  /** Writes the waiting records, or puts them into a file for the next start. False when records are lost. */
  stop(): Promise<boolean>;
};

export function startCallRecords({ store, keyring, uses, dataDir, log, onDropped }: CallRecordParts): CallRecords {
  const { records: db, calls } = store;
  const callLog = createCallLog({
    db,
    writeCalls: calls.write,
    keyring,
    uses,
    ...outageLog(log, 'could not write call records; they wait', 'call records are written again'),
    onDropped(rows) {
      onDropped(rows);
      log.error({ rows }, 'call records were given up');
    },
  });
  const restored = restore(dataDir, calls, log);
  return {
    ...callLog,
    async stop() {
      await restored;
      const left = await callLog.stop();
      return left.length === 0 || putAside(dataDir, left, log);
    },
  };
}

async function restore(dataDir: string, { write }: Database['calls'], log: Log): Promise<void> {
  try {
    const { rows, unreadable } = await writeSpooledCalls(dataDir, write);
    if (rows + unreadable > 0) log.info({ rows, unreadable }, 'call records of an earlier process were written');
  } catch (error) {
    log.warn(
      { reason: reasonOf(error) },
      'call records of an earlier process could not be written; they stay in their file',
    );
  }
}

function putAside(dataDir: string, rows: readonly CallRow[], log: Log): boolean {
  const why = `${rows.length} call records could not be written, as the database did not take them before the service stopped`;
  try {
    const path = spoolCalls(dataDir, rows, randomBytes(8).toString('hex'));
    if (path !== undefined) {
      log.warn(
        { rows: rows.length, path },
        `${why}; they are in a file and are written at the next start with this DATA_DIR`,
      );
      return true;
    }
    log.error({ rows: rows.length }, `${why}; they are lost, because the folder DATA_DIR does not exist`);
  } catch (error) {
    log.error({ rows: rows.length, err: error }, `${why}; they are lost, because DATA_DIR cannot be written either`);
  }
  return false;
}
