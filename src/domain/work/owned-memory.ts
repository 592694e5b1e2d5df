import { LRUCache } from 'lru-cache';
import { tenantOf } from '../ids.ts';

export type OwnedMemoryOptions<Value> = {
  /** Maximum number of values. Beyond it the least recently used value is evicted. */
  max: number;
  /** Maximum total size of the values, in the unit of `sizeOf`. */
  maxSize?: number;
  sizeOf?: (value: Value) => number;
  /** Returns ids by which `keysOf` finds the keys of values. */
  idsOf?: (value: Value) => readonly string[];
  /**
   * Returns the owner who is charged for a value: a workspace, which counts toward its tenant, or the address of an
   * unverified caller. In a nearly full cache, a new value evicts values of the owner that uses more than half of it,
   * regardless of who reads them.
   */
  ownerOf: (value: Value) => string;
  /**
   * Returns a subdivision of the owner, such as an address. One that uses more than half of its owner's values loses
   * values first.
   */
  partyOf?: (value: Value) => string;
};

/** Cache for many owners with limited space, in which no owner can crowd out the others. */
export type OwnedMemory<Value> = {
  /** Returns a value and marks it as used. */
  get(key: string): Value | undefined;
  peek(key: string): Value | undefined;
  /**
   * Stores a value. A value that is larger than the whole cache is not stored. It expires after `lifeMs`; never if
   * absent.
   */
  set(key: string, value: Value, lifeMs?: number): void;
  delete(key: string): void;
  clear(): void;
  size(): number;
  /** Returns all keys, least recently used first. */
  keys(): Iterable<string>;
  /** Returns the keys of the values with this id, owner, or subdivision, in insertion order. */
  keysOf(id: string): ReadonlySet<string>;
};

/** Fraction of its limits from which on a cache is nearly full. */
const nearlyFull = 0.75;
const none: ReadonlySet<string> = new Set();

export function createOwnedMemory<Value extends object>(options: OwnedMemoryOptions<Value>): OwnedMemory<Value> {
  const { max, maxSize = Number.MAX_SAFE_INTEGER, sizeOf, idsOf, ownerOf, partyOf } = options;
  const keysById = new Map<string, Set<string>>();
  const sizes = new Map<string, number>();
  /**
   * Owners that used more than half when they got a value, each with the subdivision that used more than half of
   * theirs, if any. At most two still exceed half: one by number and one by size.
   */
  const large = new Map<string, string | undefined>();
  const sizeAt = (value: Value) => 1 + (sizeOf?.(value) ?? 0);
  const idsAt = (value: Value) =>
    [...(idsOf?.(value) ?? []), tenantOf(ownerOf(value)), partyOf?.(value)].filter((id) => id !== undefined);
  // The library allocates space for all `max` values up front if it knows that number, so it gets only the size.
  const entries = new LRUCache<string, Value>({
    maxSize,
    sizeCalculation: sizeAt,
    dispose(value, key) {
      for (const id of idsAt(value)) unlink(keysById, id, key);
      addSize(value, -sizeAt(value));
    },
  });
  const keysOf = (id: string) => keysById.get(id) ?? none;
  const hasHalf = (owner: string) => keysOf(owner).size > max / 2 || (sizes.get(owner) ?? 0) > maxSize / 2;
  const hasMost = (party: string, owner: string) => keysOf(party).size * 2 > keysOf(owner).size;

  function addSize(value: Value, size: number): void {
    const owner = tenantOf(ownerOf(value));
    const left = (sizes.get(owner) ?? 0) + size;
    if (left > 0) sizes.set(owner, left);
    else sizes.delete(owner);
  }

  /**
   * Makes room for a value of this size, regardless of its owner. While the cache would be nearly full, an owner of
   * more than half of it loses its oldest values. Otherwise the least recently used value is evicted.
   */
  function makeRoom(size: number): void {
    const isNearlyFull = () =>
      entries.size + 1 > nearlyFull * max || entries.calculatedSize + size > nearlyFull * maxSize;
    for (const [owner, crowd] of large) {
      while (hasHalf(owner) && isNearlyFull()) {
        const loser = crowd !== undefined && hasMost(crowd, owner) ? crowd : owner;
        entries.delete(keysOf(loser).values().next().value as string);
      }
      if (!hasHalf(owner)) large.delete(owner);
    }
  }

  return {
    get: (key) => entries.get(key),
    peek: (key) => entries.peek(key),
    set(key, value, lifeMs) {
      const size = sizeAt(value);
      entries.delete(key);
      if (size > maxSize) return;
      makeRoom(size);
      entries.set(key, value, lifeMs === undefined ? undefined : { ttl: lifeMs });
      if (!entries.has(key)) return;
      if (entries.size > max) entries.pop();
      for (const id of idsAt(value)) link(keysById, id, key);
      addSize(value, size);
      const [owner, party] = [tenantOf(ownerOf(value)), partyOf?.(value)];
      if (!hasHalf(owner)) return;
      large.set(owner, party !== undefined && hasMost(party, owner) ? party : large.get(owner));
    },
    delete: (key) => void entries.delete(key),
    clear: () => entries.clear(),
    size: () => entries.size,
    keys: () => entries.rkeys(),
    keysOf,
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
