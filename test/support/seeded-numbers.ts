import { randomBytes } from 'node:crypto';

/** A failure names its seed; `TEST_SEED` repeats it. */
export const seed = Number(process.env.TEST_SEED ?? randomBytes(4).readUInt32LE());

/** Whole numbers below a bound that follow from a seed (xorshift32). */
export function numbersOf(state: number): (bound: number) => number {
  let number = state | 1;
  return (bound) => {
    number ^= number << 13;
    number ^= number >>> 17;
    number ^= number << 5;
    return (number >>> 0) % bound;
  };
}
