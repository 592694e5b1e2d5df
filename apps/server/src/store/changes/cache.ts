import { createFairCache } from '@toolhost/limits/fair-cache';
import { DatabaseError, toDatabaseError } from '../engine/database-errors.ts';

/** Limits of a process's trust in its cached values. Maintained by the change follower. */
export type Freshness = {
  /** Monotonic ms. */
  clock: () => number;
  /** Time until which cached values may be used at all, in monotonic ms. */
  fresh: { readonly until: number };
  /** Returns true if the database responded recently. */
  isUp: () => boolean;
};

export type ReadThroughCacheOptions<Value> = {
  /** Maximum number of values. Above it, the least recently used value is evicted. */
  max: number;
  freshness: Freshness;
  /** Maximum total size of the values, in the unit of `getSize`. */
  maxSize?: number;
  getSize?: (value: Value) => number;
  /** Returns the ids whose changes invalidate a value, in addition to its key. */
  getIds: (value: Value) => readonly string[];
  /** Returns the owner of a value; see `FairCacheOptions`. A change with the owner's id also invalidates the value. */
  getOwner: (value: Value) => string;
};

/** Database values that a process caches by key. */
export type ReadThroughCache<Value> = {
  /** Returns the cached value, while it may be used. */
  get(key: string): Value | undefined;
  /**
   * Reads a value and caches it. Concurrent callers share one read. `read` receives the value that it replaces. An
   * undefined result is not cached.
   * @throws any error from `read`
   */
  load(key: string, read: ReadValue<Value>): Promise<Value | undefined>;
  /** Drops the value of a key, and values with this id, because they changed. */
  invalidate(id: string): void;
  /** Drops all values, because any of them may have changed. */
  clear(): void;
  /** Counts since the process started, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type ReadValue<Value> = (
  previous: Value | undefined,
) => Promise<{ value: Value; maxAgeMs?: number } | undefined>;

/** Maximum time that a value is used without being read again, even if no change was seen. */
export const maxAgeMs = 60_000;

type Entry<Value> = { value: Value; expiresAt: number };
/** Read in progress, and the keys and ids that were invalidated in the meantime. */
type PendingRead = { invalidated: Set<string>; isCleared: boolean };

/**
 * Creates a read-through cache. All caches follow these rules:
 * - A value is used until its change is reported, and for a minute at most.
 * - While the database is unavailable, an older value remains in use until a minute after the last successful poll:
 *   up to that poll, every change was reported.
 * - A value that changes while it is being read is not cached, because the read may have returned its old form. A
 *   request after the report of the change receives a read that began after it.
 */
export function createReadThroughCache<Value extends object>(
  options: ReadThroughCacheOptions<Value>,
): ReadThroughCache<Value> {
  const { getIds, getOwner, getSize, max, maxSize } = options;
  const { clock, fresh, isUp } = options.freshness;
  const entries = createFairCache<Entry<Value>>({
    max,
    ...(maxSize !== undefined && { maxSize }),
    ...(getSize && { getSize: ({ value }) => getSize(value) }),
    getIds: ({ value }) => [...getIds(value), getOwner(value)],
    getOwner: ({ value }) => getOwner(value),
  });
  const pendingLoads = new Map<string, Promise<Value | undefined>>();
  const pendingReads = new Set<PendingRead>();
  const counts = { hits: 0, misses: 0 };

  async function readAndCache(key: string, readValue: ReadValue<Value>): Promise<Value | undefined> {
    const startedAt = clock();
    const previous = entries.peek(key)?.value;
    const pendingRead: PendingRead = { invalidated: new Set(), isCleared: false };
    pendingReads.add(pendingRead);
    try {
      const result = await readValue(previous);
      if (!result) {
        entries.delete(key);
        return undefined;
      }
      const { value, maxAgeMs: valueMaxAgeMs = maxAgeMs } = result;
      const ids = [key, ...getIds(value), getOwner(value)];
      if (!pendingRead.isCleared && !ids.some((id) => pendingRead.invalidated.has(id))) {
        entries.set(key, { value, expiresAt: startedAt + valueMaxAgeMs });
      }
      return value;
    } catch (error) {
      const stale = entries.peek(key)?.value;
      // The change poll may not have noticed yet that the database is unavailable.
      if (stale && clock() < fresh.until && toDatabaseError(error) instanceof DatabaseError) return stale;
      throw error;
    } finally {
      pendingReads.delete(pendingRead);
    }
  }

  return {
    get(key) {
      const entry = entries.get(key);
      if (entry !== undefined) {
        const now = clock();
        if (now < fresh.until && (now < entry.expiresAt || !isUp())) {
          counts.hits++;
          return entry.value;
        }
      }
      return undefined;
    },
    load(key, readValue) {
      const pendingLoad = pendingLoads.get(key);
      if (pendingLoad) return pendingLoad;
      counts.misses++;
      const newLoad = readAndCache(key, readValue).finally(() => {
        if (pendingLoads.get(key) === newLoad) pendingLoads.delete(key);
      });
      pendingLoads.set(key, newLoad);
      return newLoad;
    },
    invalidate(id) {
      for (const pendingRead of pendingReads) pendingRead.invalidated.add(id);
      pendingLoads.clear();
      entries.delete(id);
      for (const key of entries.getKeys(id)) entries.delete(key);
    },
    clear() {
      for (const pendingRead of pendingReads) pendingRead.isCleared = true;
      pendingLoads.clear();
      entries.clear();
    },
    counts: () => ({ entries: entries.size(), ...counts }),
  };
}
