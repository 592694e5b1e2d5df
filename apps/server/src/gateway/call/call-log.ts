import { getTenantId } from '@toolhost/credentials/ids';
import type { CredentialUses } from '../../store/api-keys.ts';
import { batchRows, type CallWriter } from '../../store/calls/call-writer.ts';
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
  stop(): Promise<CallRow[]>;
};

/** Time between two writes, in ms. */
const intervalMs = 500;
/**
 * Maximum number of waiting records. More of them mean that the database is down, and the tenant with the most records
 * loses its oldest ones.
 */
export const maxWaitingRecords = 20_000;
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
  writeCalls: CallWriter['write'];
  keyring: Keyring;
  /** Written together with the records. */
  uses: CredentialUses;
  onError: (error: unknown) => void;
  onSuccess: () => void;
  onDropped: (rows: number) => void;
};

export function createCallLog(options: CallLogOptions): CallLog {
  let waiting: CallRow[] = [];
  const captures: CaptureRow[] = [];
  const shouldStore = createRefusalSampler();

  /** True if the next write takes all records. Otherwise it takes only full batches. */
  let isFullWrite = false;

  async function writeWaiting(): Promise<void> {
    const isFull = isFullWrite;
    isFullWrite = false;
    // Records that arrive in the meantime wait for the next write, because under load there are always some.
    for (let remaining = waiting.length; remaining >= (isFull ? 1 : batchRows); remaining -= batchRows) {
      const batch = waiting.splice(0, Math.min(remaining, batchRows));
      try {
        await options.writeCalls(batch);
      } catch (error) {
        waiting = [...batch, ...waiting];
        throw error;
      }
    }
    if (isFull) await writeCapturesAndUses();
  }

  async function writeCapturesAndUses(): Promise<void> {
    for (let remaining = captures.length; remaining > 0; ) {
      const batch = captures.splice(0, Math.min(remaining, getBatchSize(captures)));
      remaining -= batch.length;
      try {
        await insertCaptures(options.db, options.keyring, batch);
      } catch (error) {
        captures.unshift(...batch);
        throw error;
      }
    }
    await options.uses.flush();
  }

  const write = coalesceRuns(() => writeWaiting().then(options.onSuccess, options.onError));
  const flush = () => {
    isFullWrite = true;
    return write();
  };

  const timer = setInterval(() => {
    if (waiting.length > 0 || captures.length > 0 || options.uses.pendingCount() > 0) void flush();
  }, intervalMs).unref();

  return {
    add(row, document) {
      if (row.outcome === 'limited' && !shouldStore(row)) return;
      waiting.push(row);
      if (waiting.length === batchRows) void write();
      if (document !== undefined) addCapture(captures, row, document);
      if (waiting.length > maxWaitingRecords)
        options.onDropped(
          removeFromLargestOwners(waiting, ({ workspace_id }) => getTenantId(workspace_id), batchRows).length,
        );
    },
    flush,
    getWaitingCount: () => waiting.length,
    async stop() {
      clearInterval(timer);
      await flush();
      return waiting.splice(0);
    },
  };
}

/** Returns the number of captures for the next statement. */
function getBatchSize(captures: readonly CaptureRow[]): number {
  let characters = 0;
  const batch = captures.slice(0, maxCaptureBatch.rows);
  const overflowIndex = batch.findIndex(({ document }) => {
    characters += document.length;
    return characters > maxCaptureBatch.characters;
  });
  return overflowIndex < 0 ? batch.length : Math.max(1, overflowIndex);
}

function addCapture(captures: CaptureRow[], row: CallRow, document: string): void {
  const { id, workspace_id, server_id, started_at } = row;
  captures.push({ callId: id, workspaceId: workspace_id, serverId: server_id, at: started_at, document });
  if (captures.length > maxWaitingCaptures)
    removeFromLargestOwners(captures, ({ workspaceId }) => getTenantId(workspaceId), droppedCaptures);
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

/**
 * Removes up to `maxItems` items from a list: the oldest items of the owner with the most items, then those of the
 * owner with the next most, and so on. An owner that adds ever more items therefore evicts only its own. Among owners
 * with equal numbers, the one with the oldest item loses first.
 */
function removeFromLargestOwners<Item>(
  oldestFirst: Item[],
  getOwner: (item: Item) => string,
  maxItems: number,
): Item[] {
  const largestFirst = [...Map.groupBy(oldestFirst, getOwner).values()].toSorted((a, b) => b.length - a.length);
  const removed = new Set(largestFirst.flat().slice(0, maxItems));
  const retained = oldestFirst.filter((item) => !removed.has(item));
  oldestFirst.splice(0, oldestFirst.length, ...retained);
  return [...removed];
}
