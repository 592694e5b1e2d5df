/** The stored remainder of a result: its owner and size. */
export type KeptRest = {
  id: string;
  /** The caller, or the address of callers without a verified credential. */
  party: string;
  isStranger: boolean;
  rows: number;
  characters: number;
};

type Size = { rows: number; characters: number };

type Party = Size & { isStranger: boolean; oldestFirst: KeptRest[] };

/** Fraction of a workspace's space that all unverified callers may use together. */
const strangersPart = 3 / 4;

/**
 * Returns the remainders that a workspace must evict so that the others take at most `most`. The caller with the
 * largest share loses its oldest remainder, so a caller that stores more and more evicts its own. `newestFirst` begins
 * with the remainder that was just stored, which stays.
 */
export function displacedRests(newestFirst: readonly KeptRest[], most: Size): KeptRest[] {
  const all = { rows: 0, characters: 0 };
  const strangers = { rows: 0, characters: 0 };
  const parties = new Map<string, Party>();
  for (const rest of newestFirst.toReversed()) {
    const { party, isStranger } = rest;
    const own = parties.get(party) ?? { isStranger, rows: 0, characters: 0, oldestFirst: [] };
    own.oldestFirst.push(rest);
    parties.set(party, own);
    for (const sum of [own, all, ...(isStranger ? [strangers] : [])]) add(sum, rest, 1);
  }
  const partOf = ({ rows, characters }: Size) => Math.max(rows / most.rows, characters / most.characters);
  const displaced: KeptRest[] = [];
  for (;;) {
    const isOfStrangers = partOf(strangers) > strangersPart;
    if (!isOfStrangers && partOf(all) <= 1) return displaced;
    const [first] = newestFirst;
    const holds = (party: Party) =>
      party.oldestFirst[0] !== undefined && party.oldestFirst[0] !== first && (party.isStranger || !isOfStrangers);
    let largest: Party | undefined;
    for (const party of parties.values()) {
      if (holds(party) && partOf(party) > (largest ? partOf(largest) : 0)) largest = party;
    }
    const rest = largest?.oldestFirst.shift();
    if (!largest || !rest) return displaced;
    displaced.push(rest);
    for (const sum of [largest, all, ...(largest.isStranger ? [strangers] : [])]) add(sum, rest, -1);
  }
}

function add(sum: Size, { rows, characters }: Size, sign: 1 | -1): void {
  sum.rows += sign * rows;
  sum.characters += sign * characters;
}
