import fc from 'fast-check';
import { getRunCount } from '../sets.ts';

type Arbitraries<Values> = { [Index in keyof Values]: fc.Arbitrary<Values[Index]> };

/** Checks a property of generated values, `fullCount` times in the full set of tests. */
export async function assertAlways<Values extends [unknown, ...unknown[]]>(
  fullCount: number,
  arbitraries: Arbitraries<Values>,
  check: (...values: Values) => Promise<void>,
): Promise<void> {
  await fc.assert(fc.asyncProperty(...arbitraries, check), { numRuns: getRunCount(fullCount) });
}

/** Checks a property without waiting. */
export function assertAlwaysSync<Values extends [unknown, ...unknown[]]>(
  fullCount: number,
  arbitraries: Arbitraries<Values>,
  check: (...values: Values) => void,
): void {
  fc.assert(fc.property(...arbitraries, check), { numRuns: getRunCount(fullCount) });
}
