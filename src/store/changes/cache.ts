import { LRUCache } from 'lru-cache';
import { StoreFault, toStoreFault } from '../engine/faults.ts';

/** How much a process may trust what it remembers; told by the follower of changes. */
export type Freshness = {
  /** Monotonic ms. */
  clock: () => number;
  /** Until when what is remembered may be used at all, in monotonic ms. */
  freshUntil: () => number;
  /** Whether the database answered lately. */
  isUp: () => boolean;
};

export type RememberOptions<Value> = {
  /** Above it what was not used for longest is forgotten. */
  max: number;
  freshness: Freshness;
  /** The most that the values may take together, in the unit of `sizeOf`. */
  maxSize?: number;
  sizeOf?: (value: Value) => number;
  /** The ids whose changes make a value out of date, besides its key. */
  idsOf: (value: Value) => readonly string[];
};

/** Values of the database that a process remembers by a key. */
export type Remembered<Value> = {
  /** The value, while it may be used. */
  get(key: string): Value | undefined;
  /**
   * Reads a value and remembers it. Several who ask at once share one reading. `read` is given the value that it
   * replaces; undefined is not remembered.
   * @throws whatever `read` throws
   */
  load(key: string, read: Read<Value>): Promise<Value | undefined>;
  /** Forgets the value of a key, and those with this id, because they changed. */
  forget(id: string): void;
  /** Forgets everything, because anything may have changed. */
  clear(): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

export type Read<Value> = (before: Value | undefined) => Promise<{ value: Value; lifeMs?: number } | undefined>;

/** No value is used for longer without being read again, also if its changes were never seen. */
export const lifeMs = 60_000;

type Entry<Value> = { value: Value; until: number };
/** A reading that is under way, and what was forgotten meanwhile. */
type Reading = { forgotten: Set<string>; isCleared: boolean };

/**
 * The one rule of all caches:
 * - A value is used until its change is reported, and for a minute at most.
 * - While the database does not answer, a value that is older is used on, until a minute after the last look for changes
 *   that succeeded: up to then every change was reported.
 * - What changes while it is being read is not remembered, as it may have been read in its old form; whoever asks after
 *   the change was reported gets a reading that began after it.
 */
export function createRemembered<Value extends object>(options: RememberOptions<Value>): Remembered<Value> {
  const { idsOf } = options;
  const { clock, freshUntil, isUp } = options.freshness;
  const keysById = new Map<string, Set<string>>();
  const entries = createEntries(options, (value, key) => unlink(keysById, idsOf(value), key));
  const underWay = new Map<string, Promise<Value | undefined>>();
  const readings = new Set<Reading>();
  const counts = { hits: 0, misses: 0 };

  async function read(key: string, how: Read<Value>): Promise<Value | undefined> {
    const startedAt = clock();
    const before = entries.peek(key)?.value;
    const reading: Reading = { forgotten: new Set(), isCleared: false };
    readings.add(reading);
    try {
      const found = await how(before);
      if (!found) {
        entries.delete(key);
        return undefined;
      }
      const { value, lifeMs: life = lifeMs } = found;
      const ids = idsOf(value);
      if (!reading.isCleared && ![key, ...ids].some((id) => reading.forgotten.has(id))) {
        entries.set(key, { value, until: startedAt + life });
        for (const id of ids) link(keysById, id, key);
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
    forget(id) {
      for (const reading of readings) reading.forgotten.add(id);
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
