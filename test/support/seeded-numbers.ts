import { randomBytes } from 'node:crypto';

/** Seed of the random numbers. A failure names it, and `TEST_SEED` repeats it. */
export const seed = Number(process.env.TEST_SEED ?? randomBytes(4).readUInt32LE());

/** Returns a generator of seeded integers below a bound (xorshift32). */
export function createRandomInt(state: number): (bound: number) => number {
  let value = state | 1;
  return (bound) => {
    value ^= value << 13;
    value ^= value >>> 17;
    value ^= value << 5;
    return (value >>> 0) % bound;
  };
}
