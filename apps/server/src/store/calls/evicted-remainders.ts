/** The stored remainder of a result: its owner and size. */
export type StoredRemainder = {
  id: string;
  /** The caller, or the address of callers without a verified credential. */
  caller: string;
  isUnverified: boolean;
  rows: number;
  characters: number;
};

type Size = { rows: number; characters: number };

type CallerUsage = Size & { isUnverified: boolean; oldestFirst: StoredRemainder[] };

/** Fraction of a workspace's space that all unverified callers may use together. */
const unverifiedShare = 3 / 4;

/**
 * Returns the remainders that a workspace must evict so that the others take at most `limit`. The caller with the
 * largest share loses its oldest remainder, so a caller that stores more and more evicts its own. `newestFirst` begins
 * with the remainder that was just stored, which stays.
 */
export function selectEvictedRemainders(newestFirst: readonly StoredRemainder[], limit: Size): StoredRemainder[] {
  const total = { rows: 0, characters: 0 };
  const unverified = { rows: 0, characters: 0 };
  const usageByCaller = new Map<string, CallerUsage>();
  for (const remainder of newestFirst.toReversed()) {
    const { caller, isUnverified } = remainder;
    const usage = usageByCaller.get(caller) ?? { isUnverified, rows: 0, characters: 0, oldestFirst: [] };
    usage.oldestFirst.push(remainder);
    usageByCaller.set(caller, usage);
    for (const size of [usage, total, ...(isUnverified ? [unverified] : [])]) addSize(size, remainder, 1);
  }
  const getUsedFraction = ({ rows, characters }: Size) => Math.max(rows / limit.rows, characters / limit.characters);
  const evicted: StoredRemainder[] = [];
  for (;;) {
    const mustEvictUnverified = getUsedFraction(unverified) > unverifiedShare;
    if (!mustEvictUnverified && getUsedFraction(total) <= 1) return evicted;
    const [newest] = newestFirst;
    const canEvictFrom = (caller: CallerUsage) =>
      caller.oldestFirst[0] !== undefined &&
      caller.oldestFirst[0] !== newest &&
      (caller.isUnverified || !mustEvictUnverified);
    let largest: CallerUsage | undefined;
    for (const caller of usageByCaller.values()) {
      if (canEvictFrom(caller) && getUsedFraction(caller) > (largest ? getUsedFraction(largest) : 0)) largest = caller;
    }
    const remainder = largest?.oldestFirst.shift();
    if (!largest || !remainder) return evicted;
    evicted.push(remainder);
    for (const size of [largest, total, ...(largest.isUnverified ? [unverified] : [])]) addSize(size, remainder, -1);
  }
}

function addSize(size: Size, { rows, characters }: Size, sign: 1 | -1): void {
  size.rows += sign * rows;
  size.characters += sign * characters;
}
