import { likeness, wantedEffect } from './effects.ts';
import { mostQueryTerms, queryTerms } from './query.ts';
import { rarityOf, type ToolIndex } from './tool-index.ts';
import { variantsOf } from './variants.ts';

/** How soon more weight of a term stops to count: k1 of BM25. */
const saturation = 0.77;
/** Words of a query that no tool has for which like ones are looked for. */
const mostUnknown = 6;
/** How much more a tool counts that does what the verb of the query says, or that reads where the query has no verb. */
const effectBonus = { asked: 0.54, assumed: 0.14 };
/** How much more a tool counts whose whole name is in the query: `get_project` before `get_project_features`. */
const wholeNameBonus = 1;
/** A name that is written out in the query comes before everything else. */
const nameScore = 1000;

/** How many tools fit a query, and the best of them as positions in the list, best first. */
export type Matches = { total: number; best: readonly number[] };

/** Sums by position of a tool while a query is worked on. */
type Sums = {
  scores: Float64Array;
  /** Rarities of the terms of the tool's name that the query has. */
  namesCovered: Float64Array;
  /** What the current term of the query contributes. Zero between two terms. */
  current: Float64Array;
};

/**
 * Searches for the `most` best tools. Those that fit equally well keep their order. `isWanted` leaves tools out by their
 * position. The time grows with the number of tools: under 5 ms for 5,000.
 */
export function searchTools(
  index: ToolIndex,
  query: string,
  most: number,
  isWanted: (position: number) => boolean = () => true,
): Matches {
  const { size, nameRarities } = index;
  const sums = {
    scores: new Float64Array(size),
    namesCovered: new Float64Array(size),
    current: new Float64Array(size),
  };
  let unknown = 0;
  for (const term of queryTerms(index, query)) {
    if (index.numbers.has(term) || ++unknown <= mostUnknown) addTerm(index, term, sums);
  }
  const asked = wantedEffect(query);
  const bonus = asked === undefined ? effectBonus.assumed : effectBonus.asked;
  const named = namedTools(index, query);
  const { scores, namesCovered } = sums;
  let total = 0;
  for (let position = 0; position < size; position++) {
    const covered = (namesCovered[position] as number) / (nameRarities[position] || 1);
    const factor =
      (1 + bonus * likeness(index.effects[position] as number, asked)) * (1 + wholeNameBonus * Math.min(1, covered));
    const score = (scores[position] as number) * factor + (named.has(position) ? nameScore : 0);
    scores[position] = score > 0 && isWanted(position) ? score : 0;
    if (scores[position] !== 0) total++;
  }
  return { total, best: highest(scores, Math.min(most, total)) };
}

/** The positions of the `count` highest scores. Numbers are sorted in an array of their own, which takes a tenth of the time. */
function highest(scores: Float64Array, count: number): number[] {
  const least = scores.toSorted()[scores.length - count] ?? Number.POSITIVE_INFINITY;
  const found: number[] = [];
  for (let position = 0; position < scores.length; position++) {
    if ((scores[position] as number) >= least) found.push(position);
  }
  return found.sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b).slice(0, count);
}

/** The tools whose names stand in the query. */
function namedTools({ names }: ToolIndex, query: string): Set<number> {
  const words = query.toLowerCase().split(/[\s,;:'"`()]+/, mostQueryTerms);
  return new Set(words.flatMap((word) => names.get(word) ?? []));
}

/**
 * Adds what a term of the query contributes. Of the words that stand for it the best counts, once, and together they are
 * as common as all of them: a rare synonym of a common word says little.
 */
function addTerm(index: ToolIndex, term: string, { scores, namesCovered, current }: Sums): void {
  const variants = variantsOf(index, term);
  const rarity = rarityOf(
    variants.reduce((sum, { from, end }) => sum + end - from, 0),
    index.size,
  );
  const touched: number[] = [];
  for (const { from, end, share } of variants) {
    const covered = share * rarityOf(end - from, index.size);
    for (let at = from; at < end; at++) {
      const position = index.tools[at] as number;
      const weight = index.weights[at] as number;
      const gain = (share * rarity * weight * (saturation + 1)) / (weight + saturation);
      if (current[position] === 0) touched.push(position);
      if (gain > (current[position] as number)) current[position] = gain;
      if (index.inName[at]) namesCovered[position] = (namesCovered[position] as number) + covered;
    }
  }
  for (const position of touched) {
    scores[position] = (scores[position] as number) + (current[position] as number);
    current[position] = 0;
  }
}
