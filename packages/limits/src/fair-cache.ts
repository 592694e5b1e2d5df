import { getTenantId } from '@toolhost/credentials/ids';
import { LRUCache } from 'lru-cache';

export type FairCacheOptions<Value> = {
  /** Maximum number of values. Beyond it the least recently used value is evicted. */
  max: number;
  /** Maximum total size of the values, in the unit of `getSize`. */
  maxSize?: number;
  getSize?: (value: Value) => number;
  /** Returns ids by which `getKeys` finds the keys of values. */
  getIds?: (value: Value) => readonly string[];
  /**
   * Returns the owner who is charged for a value: a workspace, which counts toward its tenant, or the address of an
   * unverified caller. In a nearly full cache, a new value evicts values of the owner that uses more than half of it,
   * regardless of who reads them.
   */
  getOwner: (value: Value) => string;
  /**
   * Returns a subdivision of the owner, such as an address. One that uses more than half of its owner's values loses
   * values first.
   */
  getSubOwner?: (value: Value) => string;
};

/** Cache for many owners with limited space, in which no owner can crowd out the others. */
export type FairCache<Value> = {
  /** Returns a value and marks it as used. */
  get(key: string): Value | undefined;
  peek(key: string): Value | undefined;
  /**
   * Stores a value. A value that is larger than the whole cache is not stored. It expires after `ttlMs`; never if
   * absent.
   */
  set(key: string, value: Value, ttlMs?: number): void;
  delete(key: string): void;
  clear(): void;
  size(): number;
  /** Returns all keys, least recently used first. */
  keys(): Iterable<string>;
  /** Returns the keys of the values with this id, owner, or subdivision, in insertion order. */
  getKeys(id: string): ReadonlySet<string>;
};

/** Fraction of its limits from which on a cache is nearly full. */
const nearlyFullFraction = 0.75;
const noKeys: ReadonlySet<string> = new Set();

export function createFairCache<Value extends object>(options: FairCacheOptions<Value>): FairCache<Value> {
  const { max, maxSize = Number.MAX_SAFE_INTEGER, getSize, getIds, getOwner, getSubOwner } = options;
  const keysById = new Map<string, Set<string>>();
  const sizes = new Map<string, number>();
  /**
   * Owners that used more than half when they got a value, each with the subdivision that used more than half of
   * theirs, if any. At most two still exceed half: one by number and one by size.
   */
  const largeOwners = new Map<string, string | undefined>();
  const getEntrySize = (value: Value) => 1 + (getSize?.(value) ?? 0);
  const getEntryIds = (value: Value) =>
    [...(getIds?.(value) ?? []), getTenantId(getOwner(value)), getSubOwner?.(value)].filter((id) => id !== undefined);
  // The library allocates space for all `max` values up front if it knows that number, so it gets only the size.
  const entries = new LRUCache<string, Value>({
    maxSize,
    sizeCalculation: getEntrySize,
    dispose(value, key) {
      for (const id of getEntryIds(value)) unlink(keysById, id, key);
      addSize(value, -getEntrySize(value));
    },
  });
  const getKeys = (id: string) => keysById.get(id) ?? noKeys;
  const ownsHalf = (owner: string) => getKeys(owner).size > max / 2 || (sizes.get(owner) ?? 0) > maxSize / 2;
  const ownsMostOfOwner = (subOwner: string, owner: string) => getKeys(subOwner).size * 2 > getKeys(owner).size;

  function addSize(value: Value, size: number): void {
    const owner = getTenantId(getOwner(value));
    const newSize = (sizes.get(owner) ?? 0) + size;
    if (newSize > 0) sizes.set(owner, newSize);
    else sizes.delete(owner);
  }

  /**
   * Makes room for a value of this size, regardless of its owner. While the cache would be nearly full, an owner of
   * more than half of it loses its oldest values. Otherwise the least recently used value is evicted.
   */
  function evictFor(size: number): void {
    const isNearlyFull = () =>
      entries.size + 1 > nearlyFullFraction * max || entries.calculatedSize + size > nearlyFullFraction * maxSize;
    for (const [owner, largeSubOwner] of largeOwners) {
      while (ownsHalf(owner) && isNearlyFull()) {
        const evictedOwner =
          largeSubOwner !== undefined && ownsMostOfOwner(largeSubOwner, owner) ? largeSubOwner : owner;
        entries.delete(getKeys(evictedOwner).values().next().value as string);
      }
      if (!ownsHalf(owner)) largeOwners.delete(owner);
    }
  }

  return {
    get: (key) => entries.get(key),
    peek: (key) => entries.peek(key),
    set(key, value, ttlMs) {
      const size = getEntrySize(value);
      entries.delete(key);
      if (size > maxSize) return;
      evictFor(size);
      entries.set(key, value, ttlMs === undefined ? undefined : { ttl: ttlMs });
      if (!entries.has(key)) return;
      if (entries.size > max) entries.pop();
      for (const id of getEntryIds(value)) link(keysById, id, key);
      addSize(value, size);
      const [owner, subOwner] = [getTenantId(getOwner(value)), getSubOwner?.(value)];
      if (!ownsHalf(owner)) return;
      largeOwners.set(
        owner,
        subOwner !== undefined && ownsMostOfOwner(subOwner, owner) ? subOwner : largeOwners.get(owner),
      );
    },
    delete: (key) => void entries.delete(key),
    clear: () => entries.clear(),
    size: () => entries.size,
    keys: () => entries.rkeys(),
    getKeys,
  };
}

function link(keysById: Map<string, Set<string>>, id: string, key: string): void {
  const keys = keysById.get(id);
  if (keys) keys.add(key);
  else keysById.set(id, new Set([key]));
}

function unlink(keysById: Map<string, Set<string>>, id: string, key: string): void {
  const keys = keysById.get(id);
  keys?.delete(key);
  if (keys?.size === 0) keysById.delete(id);
}
