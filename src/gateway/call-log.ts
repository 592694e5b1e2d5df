import { touchApiKey } from '../store/api-keys.ts';
import { insertCalls } from '../store/calls.ts';
import type { Db } from '../store/database.ts';
import type { CallRow } from '../store/schema.ts';

/** Writes call records in batches, after the reply; a call never waits for its record. */
export type CallLog = {
  add(row: CallRow): void;
  /** Writes what is waiting; before `listCalls`, so that a caller sees its own calls, and at the end. */
  flush(): Promise<void>;
  stop(): Promise<void>;
};

const intervalMs = 500;
const batchRows = 500;
/** More than this waiting means that the database is down; the oldest are then given up. */
const maxWaiting = 20_000;

export type CallLogOptions = { db: Db; onError: (error: unknown) => void; onDropped: (rows: number) => void };

export function createCallLog(options: CallLogOptions): CallLog {
  let waiting: CallRow[] = [];
  const usedKeys = new Map<string, number>();
  let writing: Promise<void> = Promise.resolve();

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, batchRows);
      try {
        await insertCalls(options.db, batch);
      } catch (error) {
        waiting = [...batch, ...waiting];
        throw error;
      }
    }
    for (const [keyId, at] of [...usedKeys]) {
      usedKeys.delete(keyId);
      await touchApiKey(options.db, keyId, at);
    }
  }

  function flush(): Promise<void> {
    const next = writing.catch(() => undefined).then(writeAll);
    writing = next;
    return next;
  }

  const timer = setInterval(() => {
    if (waiting.length > 0) flush().catch(options.onError);
  }, intervalMs);
  timer.unref();

  return {
    add(row) {
      waiting.push(row);
      if (row.key_id) usedKeys.set(row.key_id, row.started_at);
      if (waiting.length > maxWaiting) options.onDropped(waiting.splice(0, batchRows).length);
    },
    flush,
    async stop() {
      clearInterval(timer);
      await flush().catch(options.onError);
    },
  };
}
