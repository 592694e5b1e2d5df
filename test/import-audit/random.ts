/** Seeded random number generator (mulberry32), so that a run can be repeated. */
export type Random = {
  /** Returns a number from 0 up to but excluding 1. */
  next(): number;
  /** Returns an integer from 0 up to but excluding `end`. */
  below(end: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  shuffle<Item>(items: readonly Item[]): Item[];
  /** Returns an independent generator, so that work on one item does not change the values of the next one. */
  fork(name: string): Random;
};

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(next() * end);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick<Item>(items: readonly Item[]) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
    shuffle(items) {
      const shuffled = [...items];
      for (let at = shuffled.length - 1; at > 0; at--) {
        const other = below(at + 1);
        [shuffled[at], shuffled[other]] = [shuffled[other] as (typeof items)[0], shuffled[at] as (typeof items)[0]];
      }
      return shuffled;
    },
    fork: (name) => createRandom(hash(name) ^ seed),
  };
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}
