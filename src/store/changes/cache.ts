import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { StoreFault, toStoreFault } from '../engine/faults.ts';

/** How far a process may trust its cached values; maintained by the follower of changes. */
export type Freshness = {
  /** Monotonic ms. */
  clock: () => number;
  /** Time until which cached values may be used at all, in monotonic ms. */
  fresh: { readonly until: number };
  /** Whether the database answered recently. */
  isUp: () => boolean;
};

export type RememberOptions<Value> = {
  /** Above it the least recently used value is dropped. */
  max: number;
  freshness: Freshness;
  /** Largest total size of the values, in the unit of `sizeOf`. */
  maxSize?: number;
  sizeOf?: (value: Value) => number;
  /** The ids whose changes invalidate a value, besides its key. */
  idsOf: (value: Value) => readonly string[];
  /** The owner of a value; see `OwnedMemoryOptions`. A change with its id invalidates the value, too. */
  ownerOf: (value: Value) => string;
};

/** Values of the database that a process caches by a key. */
export type Remembered<Value> = {
  /** The value, while it may be used. */
  get(key: string): Value | undefined;
  /**
   * Reads a value and caches it. Concurrent callers share one reading. `read` receives the value that it replaces; its
   * result is not cached when undefined.
   * @throws whatever `read` throws
   */
  load(key: string, read: Read<Value>): Promise<Value | undefined>;
  /** Drops the value of a key, and values with this id, because they changed. */
  invalidate(id: string): void;
  /** Drops everything, because anything may have changed. */
  clear(): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type Read<Value> = (before: Value | undefined) => Promise<{ value: Value; lifeMs?: number } | undefined>;

/** Longest use of a value without a new reading, even if no change of it was seen. */
export const lifeMs = 60_000;

type Entry<Value> = { value: Value; until: number };
/** A reading in progress, and the keys and ids that were dropped meanwhile. */
type Reading = { invalidated: Set<string>; isCleared: boolean };

/**
 * The rule of all caches:
 * - A value is used until its change is reported, and for a minute at most.
 * - While the database does not answer, an older value stays in use until a minute after the last successful look for
 *   changes: up to that look every change was reported.
 * - A value that changes while it is being read is not cached, because the reading may have its old form. A request after
 *   the report of the change gets a reading that began after it.
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
      // The look for changes may not have noticed yet that the database does not answer.
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
