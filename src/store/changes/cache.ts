import { LRUCache } from 'lru-cache';
import { StoreFault, toStoreFault } from '../engine/faults.ts';

/** How far a process may trust its cached values; maintained by the follower of changes. */
export type Freshness = {
  /** Monotonic ms. */
  clock: () => number;
  /** Time until which cached values may be used at all, in monotonic ms. */
  freshUntil: () => number;
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
  /**
   * The owner of a value, one of its ids. In a cache that is nearly full, an owner of more than half of it displaces its
   * own values, so nobody who uses ever other values displaces those of all others.
   */
  ownerOf?: (value: Value) => string;
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
  const { idsOf, ownerOf } = options;
  const { clock, freshUntil, isUp } = options.freshness;
  const keysById = new Map<string, Set<string>>();
  const entries = createEntries(options, (value, key) => unlink(keysById, idsOf(value), key));
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
      const ids = idsOf(value);
      if (!reading.isCleared && ![key, ...ids].some((id) => reading.invalidated.has(id))) {
        entries.set(key, { value, until: startedAt + life });
        for (const id of ids) link(keysById, id, key);
        if (ownerOf) keepShare(entries, keysById.get(ownerOf(value)) ?? new Set(), key);
      }
      return value;
    } catch (error) {
      const known = entries.peek(key)?.value;
      // The look for changes may not have noticed yet that the database does not answer.
      if (known && clock() < freshUntil() && toStoreFault(error) instanceof StoreFault) return known;
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
        if (at < freshUntil() && (at < entry.until || !isUp())) {
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
      for (const key of keysById.get(id) ?? []) entries.delete(key);
    },
    clear() {
      for (const reading of readings) reading.isCleared = true;
      underWay.clear();
      entries.clear();
    },
    counts: () => ({ entries: entries.size, ...counts }),
  };
}

function createEntries<Value extends object>(
  { max, maxSize, sizeOf }: RememberOptions<Value>,
  onGone: (value: Value, key: string) => void,
): LRUCache<string, Entry<Value>> {
  return new LRUCache({
    max,
    ...(maxSize !== undefined && { maxSize, sizeCalculation: ({ value }) => 1 + (sizeOf?.(value) ?? 0) }),
    dispose: ({ value }, key) => onGone(value, key),
  });
}

/** The part of a cache that one owner may fill. */
const nearlyFull = 0.75;

/** Drops the values of an owner that were read first, while it has more than half of a cache that is nearly full. */
function keepShare<Value>(entries: LRUCache<string, Entry<Value>>, keys: ReadonlySet<string>, latest: string): void {
  const { max, maxSize } = entries;
  const mostSize = maxSize || Number.POSITIVE_INFINITY;
  const isNearlyFull = () => entries.size > nearlyFull * max || entries.calculatedSize > nearlyFull * mostSize;
  if (!isNearlyFull()) return;
  const sizeAt = (key: string) => entries.info(key)?.size ?? 0;
  let size = keys.values().reduce((sum, key) => sum + sizeAt(key), 0);
  for (const key of keys) {
    if (!isNearlyFull() || key === latest || (keys.size <= max / 2 && size <= mostSize / 2)) return;
    size -= sizeAt(key);
    entries.delete(key);
  }
}

function link(keysById: Map<string, Set<string>>, id: string, key: string): void {
  const keys = keysById.get(id);
  if (keys) keys.add(key);
  else keysById.set(id, new Set([key]));
}

function unlink(keysById: Map<string, Set<string>>, ids: readonly string[], key: string): void {
  for (const id of ids) {
    const keys = keysById.get(id);
    keys?.delete(key);
    if (keys?.size === 0) keysById.delete(id);
  }
}
