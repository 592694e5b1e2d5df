import { randomBytes } from 'node:crypto';

/** Seed of the random numbers. A failure names it, and `TEST_SEED` repeats it. */
export const seed = Number(process.env.TEST_SEED ?? randomBytes(4).readUInt32LE());

/** Returns a generator of seeded integers below a bound (xorshift32). */
export function numbersOf(state: number): (bound: number) => number {
  let number = state | 1;
  return (bound) => {
    number ^= number << 13;
    number ^= number >>> 17;
    number ^= number << 5;
    return (number >>> 0) % bound;
  };
}
