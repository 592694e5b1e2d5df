import { tenantOf } from '../../domain/ids.ts';
import type { CredentialUses } from '../../store/api-keys.ts';
import { batchRows, type CallWriter } from '../../store/calls/call-writer.ts';
import { type CaptureRow, insertCaptures } from '../../store/calls/captures.ts';
import { oneAtATime } from '../../store/changes/follow-changes.ts';
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
  waiting(): number;
  /** Writes all waiting records and stops. Returns the records that could not be written. */
  stop(): Promise<CallRow[]>;
};

const intervalMs = 500;
/**
 * Maximum number of waiting records. More of them mean that the database is down, and the tenant with the most records
 * loses its oldest ones.
 */
export const mostWaitingRecords = 20_000;
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
const batchCaptures = { rows: 50, characters: 1024 * 1024 };

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
  const isKept = createRefusedCalls();

  /** True if the next write takes all records. Otherwise it takes only full batches. */
  let everything = false;

  async function writeWaiting(): Promise<void> {
    const takesAll = everything;
    everything = false;
    // Records that arrive in the meantime wait for the next write, because under load there are always some.
    for (let left = waiting.length; left >= (takesAll ? 1 : batchRows); left -= batchRows) {
      const batch = waiting.splice(0, Math.min(left, batchRows));
      try {
        await options.writeCalls(batch);
      } catch (error) {
        waiting = [...batch, ...waiting];
        throw error;
      }
    }
    if (takesAll) await writeTheRest();
  }

  async function writeTheRest(): Promise<void> {
    for (let left = captures.length; left > 0; ) {
      const batch = captures.splice(0, Math.min(left, batchOf(captures)));
      left -= batch.length;
      try {
        await insertCaptures(options.db, options.keyring, batch);
      } catch (error) {
        captures.unshift(...batch);
        throw error;
      }
    }
    await options.uses.write();
  }

  const write = oneAtATime(() => writeWaiting().then(options.onSuccess, options.onError));
  const flush = () => {
    everything = true;
    return write();
  };

  const timer = setInterval(() => {
    if (waiting.length > 0 || captures.length > 0 || options.uses.waiting() > 0) void flush();
  }, intervalMs);
  timer.unref();

  return {
    add(row, document) {
      if (row.outcome === 'limited' && !isKept(row)) return;
      waiting.push(row);
      if (waiting.length === batchRows) void write();
      if (document !== undefined) addCapture(captures, row, document);
      if (waiting.length > mostWaitingRecords)
        options.onDropped(takeOfLargest(waiting, ({ workspace_id }) => tenantOf(workspace_id), batchRows).length);
    },
    flush,
    waiting: () => waiting.length,
    async stop() {
      clearInterval(timer);
      await flush();
      return waiting.splice(0);
    },
  };
}

/** Returns the number of captures for the next statement. */
function batchOf(captures: readonly CaptureRow[]): number {
  let characters = 0;
  const first = captures.slice(0, batchCaptures.rows);
  const tooMany = first.findIndex(({ document }) => {
    characters += document.length;
    return characters > batchCaptures.characters;
  });
  return tooMany < 0 ? first.length : Math.max(1, tooMany);
}

function addCapture(captures: CaptureRow[], row: CallRow, document: string): void {
  const { id, workspace_id, server_id, started_at } = row;
  captures.push({ callId: id, workspaceId: workspace_id, serverId: server_id, at: started_at, document });
  if (captures.length > maxWaitingCaptures)
    takeOfLargest(captures, ({ workspaceId }) => tenantOf(workspaceId), droppedCaptures);
}

/** Maximum number of refused calls that a process records per server and minute. */
export const mostRefusedRecords = 600;
const minuteMs = 60_000;

/**
 * Returns a function that decides if the record of a refused call is stored. No call limit bounds the number of refused
 * calls, and on many servers anyone can cause them. The metrics count all of them.
 */
function createRefusedCalls(): (row: CallRow) => boolean {
  let minute = 0;
  const refused = new Map<string, number>();
  return function isKept({ server_id, started_at }) {
    const at = Math.floor(started_at / minuteMs);
    // A call that waited may have started in the previous minute. If the clock was set back, counting restarts.
    if (at > minute || at < minute - 1) {
      minute = at;
      refused.clear();
    }
    const count = (refused.get(server_id) ?? 0) + 1;
    refused.set(server_id, count);
    return count <= mostRefusedRecords;
  };
}

/**
 * Removes up to `most` items from a list: the oldest items of the owner with the most items, then those of the owner
 * with the next most, and so on. An owner that adds ever more items therefore evicts only its own, and a list of many
 * small owners is shortened too. Among owners with equal numbers, the one with the oldest item loses first.
 */
function takeOfLargest<Item>(oldestFirst: Item[], ownerOf: (item: Item) => string, most: number): Item[] {
  const largestFirst = [...Map.groupBy(oldestFirst, ownerOf).values()].toSorted((a, b) => b.length - a.length);
  const taken = new Set(largestFirst.flat().slice(0, most));
  const kept = oldestFirst.filter((item) => !taken.has(item));
  oldestFirst.splice(0, oldestFirst.length, ...kept);
  return [...taken];
}
