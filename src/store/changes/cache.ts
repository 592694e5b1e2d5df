import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { StoreFault, toStoreFault } from '../engine/faults.ts';

/** Limits of a process's trust in its cached values. Maintained by the change follower. */
export type Freshness = {
  /** Monotonic ms. */
  clock: () => number;
  /** Time until which cached values may be used at all, in monotonic ms. */
  fresh: { readonly until: number };
  /** Returns true if the database responded recently. */
  isUp: () => boolean;
};

export type RememberOptions<Value> = {
  /** Maximum number of values. Above it, the least recently used value is evicted. */
  max: number;
  freshness: Freshness;
  /** Maximum total size of the values, in the unit of `sizeOf`. */
  maxSize?: number;
  sizeOf?: (value: Value) => number;
  /** Returns the ids whose changes invalidate a value, in addition to its key. */
  idsOf: (value: Value) => readonly string[];
  /**
   * Returns the owner of a value; see `OwnedMemoryOptions`. A change with the owner's id also invalidates the value.
   */
  ownerOf: (value: Value) => string;
};

/** Database values that a process caches by key. */
export type Remembered<Value> = {
  /** Returns the cached value, while it may be used. */
  get(key: string): Value | undefined;
  /**
   * Reads a value and caches it. Concurrent callers share one read. `read` receives the value that it replaces. An
   * undefined result is not cached.
   * @throws any error from `read`
   */
  load(key: string, read: Read<Value>): Promise<Value | undefined>;
  /** Drops the value of a key, and values with this id, because they changed. */
  invalidate(id: string): void;
  /** Drops all values, because any of them may have changed. */
  clear(): void;
  /** Counts since the process started, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type Read<Value> = (before: Value | undefined) => Promise<{ value: Value; lifeMs?: number } | undefined>;

/** Maximum time that a value is used without being read again, even if no change was seen. */
export const lifeMs = 60_000;

type Entry<Value> = { value: Value; until: number };
/** Read in progress, and the keys and ids that were invalidated in the meantime. */
type Reading = { invalidated: Set<string>; isCleared: boolean };

/**
 * Creates a read-through cache. All caches follow these rules:
 * - A value is used until its change is reported, and for a minute at most.
 * - While the database is unavailable, an older value remains in use until a minute after the last successful poll:
 *   up to that poll, every change was reported.
 * - A value that changes while it is being read is not cached, because the read may have returned its old form. A
 *   request after the report of the change receives a read that began after it.
 */
export function createRemembered<Value extends object>(options: RememberOptions<Value>): Remembered<Value> {
  const { idsOf, ownerOf, sizeOf, max, maxSize } = options;
  const { clock, fresh, isUp } = options.freshness;
  const entries = createOwnedMemory<Entry<Value>>({
    max,
    ...(maxSize !== undefined && { maxSize }),
    ...(sizeOf && { sizeOf: ({ value }) => sizeOf(value) }),
    idsOf: ({ value }) => [...idsOf(value), ownerOf(value)],
    ownerOf: ({ value }) => ownerOf(value),
  });
  const underWay = new Map<string, Promise<Value | undefined>>();
  const readings = new Set<Reading>();
  const counts = { hits: 0, misses: 0 };

  async function read(key: string, how: Read<Value>): Promise<Value | undefined> {
    const startedAt = clock();
    const before = entries.peek(key)?.value;
    const reading: Reading = { invalidated: new Set(), isCleared: false };
    readings.add(reading);
    try {
      const found = await how(before);
      if (!found) {
        entries.delete(key);
        return undefined;
      }
      const { value, lifeMs: life = lifeMs } = found;
      const ids = [key, ...idsOf(value), ownerOf(value)];
      if (!reading.isCleared && !ids.some((id) => reading.invalidated.has(id))) {
        entries.set(key, { value, until: startedAt + life });
      }
      return value;
    } catch (error) {
      const known = entries.peek(key)?.value;
      // The change poll may not have noticed yet that the database is unavailable.
      if (known && clock() < fresh.until && toStoreFault(error) instanceof StoreFault) return known;
      throw error;
    } finally {
      readings.delete(reading);
    }
  }

  return {
    get(key) {
      const entry = entries.get(key);
      if (entry !== undefined) {
        const at = clock();
        if (at < fresh.until && (at < entry.until || !isUp())) {
          counts.hits++;
          return entry.value;
        }
      }
      return undefined;
    },
    load(key, how) {
      const others = underWay.get(key);
      if (others) return others;
      counts.misses++;
      const started = read(key, how).finally(() => {
        if (underWay.get(key) === started) underWay.delete(key);
      });
      underWay.set(key, started);
      return started;
    },
    invalidate(id) {
      for (const reading of readings) reading.invalidated.add(id);
      underWay.clear();
      entries.delete(id);
      for (const key of entries.keysOf(id)) entries.delete(key);
    },
    clear() {
      for (const reading of readings) reading.isCleared = true;
      underWay.clear();
      entries.clear();
    },
    counts: () => ({ entries: entries.size(), ...counts }),
  };
}
