import { tenantOf } from '../../domain/ids.ts';
import type { CredentialUses } from '../../store/api-keys.ts';
import { batchRows, type CallWriter } from '../../store/calls/call-writer.ts';
import { type CaptureRow, insertCaptures } from '../../store/calls/captures.ts';
import { oneAtATime } from '../../store/changes/follow-changes.ts';
import type { Db } from '../../store/db.ts';
import type { CallRow } from '../../store/schema.ts';
import type { Keyring } from '../../store/sealing/sealing.ts';

/** Writes call records in batches, after the reply; a call never waits for its record. */
export type CallLog = {
  /** `capture` is the JSON text of a `Capture`. Of the calls that limits refuse only some are kept. */
  add(row: CallRow, capture?: string): void;
  /**
   * Writes what is waiting; called before `listCalls`, so that a caller sees its own calls, and at shutdown. Records
   * that cannot be written keep waiting, and nothing is thrown: stored calls stay readable when the disk is full.
   */
  flush(): Promise<void>;
  /** Number of records that are not written yet. */
  waiting(): number;
  /** Writes what is waiting for the last time. Returns the records that could not be written. */
  stop(): Promise<CallRow[]>;
};

const intervalMs = 500;
/** More waiting records than this mean that the database is down; the tenant with most loses its oldest. */
export const mostWaitingRecords = 20_000;
/** Captures are large and not essential: above this number the tenant with most loses so many of its oldest. */
const maxWaitingCaptures = 200;
const droppedCaptures = 20;
/** Most captures, and characters of them, that one statement writes: everybody else waits for it with SQLite. */
const batchCaptures = { rows: 50, characters: 1024 * 1024 };

export type CallLogOptions = {
  db: Db;
  writeCalls: CallWriter['write'];
  keyring: Keyring;
  /** Written with the records. */
  uses: CredentialUses;
  onError: (error: unknown) => void;
  onSuccess: () => void;
  onDropped: (rows: number) => void;
};

export function createCallLog(options: CallLogOptions): CallLog {
  let waiting: CallRow[] = [];
  const captures: CaptureRow[] = [];
  const isKept = createRefusedCalls();

  /** Whether the next write takes everything; otherwise it takes only whole batches. */
  let everything = false;

  async function writeWaiting(): Promise<void> {
    const takesAll = everything;
    everything = false;
    // Records that arrive meanwhile wait for the next write: under load there are always some.
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

/** How many of the first captures are written at once. */
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

/** Most refused calls of one server that a process records in a minute. */
export const mostRefusedRecords = 600;
const minuteMs = 60_000;

/**
 * Whether the record of a refused call is kept. No limit of calls bounds those that it refuses, and on many servers anybody may
 * have calls refused; the metrics count all of them.
 */
function createRefusedCalls(): (row: CallRow) => boolean {
  let minute = 0;
  const refused = new Map<string, number>();
  return function isKept({ server_id, started_at }) {
    const at = Math.floor(started_at / minuteMs);
    // A call that waited may have begun in the minute before; a clock that was set back begins anew.
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
 * Takes up to `most` items out of a list: the oldest ones of the owner that has most, and when these are all, those of the
 * owner that has most after it. So one who adds ever more displaces only its own, and a list of many small owners gets
 * room as well. Of owners that have equally many, the one whose oldest item came first gives up.
 */
function takeOfLargest<Item>(oldestFirst: Item[], ownerOf: (item: Item) => string, most: number): Item[] {
  const largestFirst = [...Map.groupBy(oldestFirst, ownerOf).values()].toSorted((a, b) => b.length - a.length);
  const taken = new Set(largestFirst.flat().slice(0, most));
  const kept = oldestFirst.filter((item) => !taken.has(item));
  oldestFirst.splice(0, oldestFirst.length, ...kept);
  return [...taken];
}
