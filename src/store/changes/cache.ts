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
   * The owner of a value, one of its ids. In a cache that is nearly full, a new value displaces those of the owner that
   * has more than half of it, whoever reads it. Undefined for a value that is nobody's.
   */
  ownerOf?: (value: Value) => string | undefined;
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
  const { idsOf } = options;
  const { clock, freshUntil, isUp } = options.freshness;
  const { entries, put, keysOf } = createEntries(options);
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
        put(key, { value, until: startedAt + life });
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
      for (const key of keysOf(id)) entries.delete(key);
    },
    clear() {
      for (const reading of readings) reading.isCleared = true;
      underWay.clear();
      entries.clear();
    },
    counts: () => ({ entries: entries.size, ...counts }),
  };
}

type Entries<Value> = {
  entries: LRUCache<string, Entry<Value>>;
  put(key: string, entry: Entry<Value>): void;
  /** The keys of the entries that have this id, in the order in which they were read. */
  keysOf(id: string): ReadonlySet<string>;
};

const none: ReadonlySet<string> = new Set();

function createEntries<Value extends object>(options: RememberOptions<Value>): Entries<Value> {
  const { max, maxSize, sizeOf, idsOf, ownerOf = () => undefined } = options;
  const keysById = new Map<string, Set<string>>();
  const sizeAt = ({ value }: Entry<Value>) => 1 + (sizeOf?.(value) ?? 0);
  const entries = new LRUCache<string, Entry<Value>>({
    max,
    ...(maxSize !== undefined && { maxSize, sizeCalculation: sizeAt }),
    dispose(entry, key) {
      unlink(keysById, idsOf(entry.value), key);
      const owner = ownerOf(entry.value);
      if (owner !== undefined) shares.remove(owner, sizeAt(entry));
    },
  });
  const keysOf = (id: string) => keysById.get(id) ?? none;
  const shares = createShares(entries, keysOf);
  return {
    entries,
    keysOf,
    put(key, entry) {
      shares.makeRoom(sizeAt(entry));
      entries.set(key, entry);
      // A value that is larger than the whole cache is not kept.
      if (!entries.has(key)) return;
      for (const id of idsOf(entry.value)) link(keysById, id, key);
      const owner = ownerOf(entry.value);
      if (owner !== undefined) shares.add(owner, sizeAt(entry));
    },
  };
}

/** From this part of its limits on, a cache is nearly full. */
const nearlyFull = 0.75;

/** How much of a cache each owner has. */
type Shares = {
  add(owner: string, size: number): void;
  remove(owner: string, size: number): void;
  /**
   * Makes room for a value of this size, whoever its owner is: while the cache would be nearly full, an owner of more than
   * half of it loses the values that were read first. Otherwise the cache itself drops what was not used for longest.
   */
  makeRoom(size: number): void;
};

function createShares<Value>(
  entries: LRUCache<string, Entry<Value>>,
  keysOf: (owner: string) => ReadonlySet<string>,
): Shares {
  const { max } = entries;
  const maxSize = entries.maxSize || Number.POSITIVE_INFINITY;
  const sizes = new Map<string, number>();
  /** Owners that had more than half when they got a value. There are at most two that still do: by number, and by size. */
  const large = new Set<string>();
  const isNearlyFull = (size: number) =>
    entries.size + 1 > nearlyFull * max || entries.calculatedSize + size > nearlyFull * maxSize;
  const hasHalf = (owner: string) => keysOf(owner).size > max / 2 || (sizes.get(owner) ?? 0) > maxSize / 2;
  return {
    add(owner, size) {
      sizes.set(owner, (sizes.get(owner) ?? 0) + size);
      if (hasHalf(owner)) large.add(owner);
    },
    remove(owner, size) {
      const left = (sizes.get(owner) ?? 0) - size;
      if (left > 0) sizes.set(owner, left);
      else sizes.delete(owner);
    },
    makeRoom(size) {
      for (const owner of large) {
        while (hasHalf(owner) && isNearlyFull(size)) entries.delete(keysOf(owner).values().next().value as string);
        if (!hasHalf(owner)) large.delete(owner);
      }
    },
  };
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
