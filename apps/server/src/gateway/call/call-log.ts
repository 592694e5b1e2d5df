import { getTenantId } from '@toolhost/credentials/ids';
import type { CredentialUses } from '../../store/api-keys.ts';
import {
  batchRecords,
  type CallRecord,
  type CallWriter,
  type RecordBatch,
  readRecordBatch,
  transactionRecords,
} from '../../store/calls/call-writer.ts';
import { type CaptureRow, insertCaptures } from '../../store/calls/captures.ts';
import { coalesceRuns } from '../../store/changes/follow-changes.ts';
import type { Db } from '../../store/db.ts';
import type { CallRow } from '../../store/schema.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';

/** Writes call records in batches, after the response. A call never waits for its record. */
export type CallLog = {
  /** Adds a record. `capture` is the JSON text of a `Capture`. Records of calls that a limit refused are sampled. */
  add(row: CallRow, capture?: string): void;
  /**
   * Writes all waiting records. Called before `listCalls`, so that callers see their own calls, and at shutdown.
   * Records that cannot be written remain queued and no error is thrown, so stored calls stay readable while the disk
   * is full.
   */
  flush(): Promise<void>;
  /** Returns the number of records that are not yet written. */
  getWaitingCount(): number;
  /** Writes all waiting records and stops. Returns the records that could not be written. */
  stop(): Promise<CallRecord[]>;
};

/** Time between two writes, in ms. */
const intervalMs = 500;
/**
 * Maximum number of waiting records. More of them mean that the database is down, and the tenant with the most records
 * loses its oldest ones.
 */
export const maxWaitingRecords = 20_000;
/** Number of records that are dropped together, because dropping reads and rewrites their batches. */
const droppedRecords = 1000;
/**
 * Maximum number of waiting captures, which are large and not essential. Above it, the tenant with the most captures
 * loses `droppedCaptures` of its oldest ones.
 */
const maxWaitingCaptures = 200;
const droppedCaptures = 20;
/**
 * Maximum number of captures, and of their characters, that one statement writes. With SQLite, all other writes wait
 * for it.
 */
const maxCaptureBatch = { rows: 50, characters: 1024 * 1024 };

export type CallLogOptions = {
  db: Db;
  calls: CallWriter;
  keyring: Keyring;
  /** Written together with the records. */
  uses: CredentialUses;
  onError: (error: unknown) => void;
  onSuccess: () => void;
  onDropped: (rows: number) => void;
};

export function createCallLog(options: CallLogOptions): CallLog {
  /** The newest records, fewer than a batch. */
  let open: CallRow[] = [];
  const queue = createRecordQueue(options);
  const captures = createCaptureQueue(options);
  const shouldStore = createRefusalSampler();

  /** True if the next write takes all records. Otherwise it takes only full transactions. */
  let isFullWrite = false;

  async function writeWaiting(): Promise<void> {
    const isFull = isFullWrite;
    isFullWrite = false;
    if (isFull) closeBatch();
    // Records that arrive in the meantime wait for the next write, because under load there are always some.
    for (let remaining = queue.count(); remaining >= (isFull ? 1 : transactionRecords); ) {
      const batches = queue.takeTransaction();
      if (batches.length === 0) break;
      remaining -= countRecords(batches);
      try {
        await options.calls.writeBatches(batches);
      } catch (error) {
        queue.putBack(batches);
        throw error;
      }
    }
    if (!isFull) return;
    await captures.write();
    await options.uses.flush();
  }

  function closeBatch(): void {
    queue.add(open);
    open = [];
  }

  const write = coalesceRuns(() => writeWaiting().then(options.onSuccess, options.onError));
  const flush = () => {
    isFullWrite = true;
    return write();
  };

  const getWaitingCount = () => queue.count() + open.length;

  const timer = setInterval(() => {
    if (getWaitingCount() > 0 || captures.getWaitingCount() > 0 || options.uses.pendingCount() > 0) void flush();
  }, intervalMs).unref();

  return {
    add(row, document) {
      if (row.outcome === 'limited' && !shouldStore(row)) return;
      open.push(row);
      if (document !== undefined) captures.add(row, document);
      if (open.length < batchRecords) return;
      closeBatch();
      const count = queue.count();
      // Above it, a write is already running, or failed and is retried by the timer.
      if (count >= transactionRecords && count < transactionRecords + batchRecords) void write();
    },
    flush,
    getWaitingCount,
    async stop() {
      clearInterval(timer);
      await flush();
      return queue.takeRecords();
    },
  };
}

const countRecords = (batches: readonly RecordBatch[]): number => batches.reduce((sum, { count }) => sum + count, 0);

/** Batches that wait to be written, the oldest first. */
function createRecordQueue({ calls, onDropped }: Pick<CallLogOptions, 'calls' | 'onDropped'>) {
  let waiting: RecordBatch[] = [];
  return {
    count: () => countRecords(waiting),
    add(records: readonly CallRecord[]): void {
      waiting.push(...calls.toBatches(records));
      const count = countRecords(waiting);
      if (count <= maxWaitingRecords) return;
      waiting = dropFromLargestTenants(waiting, calls);
      onDropped(count - countRecords(waiting));
    },
    /** Removes and returns the oldest batches, for one transaction. */
    takeTransaction(): RecordBatch[] {
      let records = 0;
      const end = waiting.findIndex(({ count }) => {
        records += count;
        return records > transactionRecords;
      });
      return waiting.splice(0, end < 0 ? waiting.length : end);
    },
    putBack(batches: readonly RecordBatch[]): void {
      waiting = [...batches, ...waiting];
    },
    /** Removes and returns all records. */
    takeRecords: () => waiting.splice(0).flatMap(readRecordBatch),
  };
}

/**
 * Returns batches without up to `droppedRecords` records: the oldest ones of the tenant with the most, then those of
 * the tenant with the next most, and so on. A tenant that adds ever more records therefore evicts only its own.
 */
function dropFromLargestTenants(batches: readonly RecordBatch[], { toBatches }: CallWriter): RecordBatch[] {
  const counts = new Map<string, number>();
  for (const { workspaces } of batches)
    for (const [workspaceId, count] of workspaces)
      counts.set(getTenantId(workspaceId), (counts.get(getTenantId(workspaceId)) ?? 0) + count);
  const drops = new Map<string, number>();
  let remaining = droppedRecords;
  for (const [tenantId, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    drops.set(tenantId, Math.min(count, remaining));
    remaining -= Math.min(count, remaining);
  }
  const shouldDrop = (workspaceId: string) => (drops.get(getTenantId(workspaceId)) ?? 0) > 0;
  return batches.flatMap((batch) => {
    if (![...batch.workspaces.keys()].some(shouldDrop)) return batch;
    const retained = readRecordBatch(batch).filter(({ workspace_id }) => {
      if (!shouldDrop(workspace_id)) return true;
      const tenantId = getTenantId(workspace_id);
      drops.set(tenantId, (drops.get(tenantId) ?? 0) - 1);
      return false;
    });
    return toBatches(retained);
  });
}

/** Captures that wait to be written. */
function createCaptureQueue({ db, keyring }: Pick<CallLogOptions, 'db' | 'keyring'>) {
  const captures: CaptureRow[] = [];
  return {
    getWaitingCount: () => captures.length,
    add({ id, workspace_id, server_id, started_at }: CallRow, document: string): void {
      captures.push({ callId: id, workspaceId: workspace_id, serverId: server_id, at: started_at, document });
      if (captures.length > maxWaitingCaptures) dropCaptures(captures);
    },
    async write(): Promise<void> {
      for (let remaining = captures.length; remaining > 0; ) {
        const batch = captures.splice(0, Math.min(remaining, getCaptureBatchSize(captures)));
        remaining -= batch.length;
        try {
          await insertCaptures(db, keyring, batch);
        } catch (error) {
          captures.unshift(...batch);
          throw error;
        }
      }
    },
  };
}

/** Removes `droppedCaptures` captures like `dropFromLargestTenants`. */
function dropCaptures(captures: CaptureRow[]): void {
  const byTenant = [...Map.groupBy(captures, ({ workspaceId }) => getTenantId(workspaceId)).values()];
  const largestFirst = byTenant.toSorted((a, b) => b.length - a.length);
  const dropped = new Set(largestFirst.flat().slice(0, droppedCaptures));
  const retained = captures.filter((capture) => !dropped.has(capture));
  captures.splice(0, captures.length, ...retained);
}

/** Returns the number of captures for the next statement. */
function getCaptureBatchSize(captures: readonly CaptureRow[]): number {
  let characters = 0;
  const batch = captures.slice(0, maxCaptureBatch.rows);
  const overflowIndex = batch.findIndex(({ document }) => {
    characters += document.length;
    return characters > maxCaptureBatch.characters;
  });
  return overflowIndex < 0 ? batch.length : Math.max(1, overflowIndex);
}

/** Maximum number of refused calls that a process records per server and minute. */
export const maxRefusedRecords = 600;
const minuteMs = 60_000;

/**
 * Returns a function that decides if the record of a refused call is stored. No call limit bounds the number of refused
 * calls, and on many servers anyone can cause them. The metrics count all of them.
 */
function createRefusalSampler(): (row: CallRow) => boolean {
  let currentMinute = 0;
  const refusedCounts = new Map<string, number>();
  return function shouldStore({ server_id, started_at }) {
    const minute = Math.floor(started_at / minuteMs);
    // A call that waited may have started in the previous minute. If the clock was set back, counting restarts.
    if (minute > currentMinute || minute < currentMinute - 1) {
      currentMinute = minute;
      refusedCounts.clear();
    }
    const count = (refusedCounts.get(server_id) ?? 0) + 1;
    refusedCounts.set(server_id, count);
    return count <= maxRefusedRecords;
  };
}
