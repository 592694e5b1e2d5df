import { LRUCache } from 'lru-cache';
import { tenantOf } from '../ids.ts';

export type OwnedMemoryOptions<Value> = {
  /** Above it the least recently used value is dropped. */
  max: number;
  /** Largest total size of the values, in the unit of `sizeOf`. */
  maxSize?: number;
  sizeOf?: (value: Value) => number;
  /** Ids by which `keysOf` finds the keys of values. */
  idsOf?: (value: Value) => readonly string[];
  /**
   * Who can cause values like this one: a workspace, which counts for its tenant, or an address of strangers. In a memory
   * that is nearly full, a new value displaces those of the owner that has more than half of it, whoever reads it.
   */
  ownerOf: (value: Value) => string;
  /** A part of the owner, such as an address. The one with more than half of what an owner has loses first. */
  partyOf?: (value: Value) => string;
};

/** What a process remembers of many owners, in a limited space that no owner can take from the others. */
export type OwnedMemory<Value> = {
  /** The value, which counts as used now. */
  get(key: string): Value | undefined;
  peek(key: string): Value | undefined;
  /** A value that is larger than the whole memory is not kept. After `lifeMs` it is dropped; never when absent. */
  set(key: string, value: Value, lifeMs?: number): void;
  delete(key: string): void;
  clear(): void;
  size(): number;
  /** All keys, that of the least recently used value first. */
  keys(): Iterable<string>;
  /** The keys of the values with this id, owner or party, in the order in which they were set. */
  keysOf(id: string): ReadonlySet<string>;
};

/** From this part of its limits on, a memory is nearly full. */
const nearlyFull = 0.75;
const none: ReadonlySet<string> = new Set();

export function createOwnedMemory<Value extends object>(options: OwnedMemoryOptions<Value>): OwnedMemory<Value> {
  const { max, maxSize = Number.MAX_SAFE_INTEGER, sizeOf, idsOf, ownerOf, partyOf } = options;
  const keysById = new Map<string, Set<string>>();
  const sizes = new Map<string, number>();
  /**
   * Owners that had more than half when they got a value, with the party that had more than half of theirs, if any. At
   * most two still have it: by number, and by size.
   */
  const large = new Map<string, string | undefined>();
  const sizeAt = (value: Value) => 1 + (sizeOf?.(value) ?? 0);
  const idsAt = (value: Value) =>
    [...(idsOf?.(value) ?? []), tenantOf(ownerOf(value)), partyOf?.(value)].filter((id) => id !== undefined);
  // The library reserves room for `max` values at once when it knows that number, so it only knows the size.
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
   * Makes room for a value of this size, whoever its owner is: while the memory would be nearly full, an owner of more
   * than half of it loses the values that were set first. Otherwise what was not used for longest is dropped.
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
