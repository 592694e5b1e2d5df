import { distance } from 'fastest-levenshtein';
import { likeness, wantedEffect } from './effects.ts';
import { synonyms } from './synonyms.ts';
import { rarityOf, type ToolIndex } from './tool-index.ts';
import { termsOf } from './words.ts';

/** Saturation of term weights: k1 of BM25. */
const saturation = 0.77;
/** Maximum query words without an exact match for which similar terms are searched. */
const mostUnknown = 6;
/** Additional weight of a tool that matches the verb of the query, or that reads if the query has no verb. */
const effectBonus = { asked: 0.54, assumed: 0.14 };
/** Additional weight of a tool whose whole name is in the query: `get_project` before `get_project_features`. */
const wholeNameBonus = 1;
/** Score of a tool whose exact name is in the query. It exceeds every other score. */
const nameScore = 1000;

/** Number of tools that match a query, and the positions of the best ones, best first. */
export type Matches = { total: number; best: readonly number[] };

/** Sums by tool position while a query is processed. */
type Sums = {
  scores: Float64Array;
  /** Rarities of the terms in the tool's name that the query contains. */
  namesCovered: Float64Array;
  /** Contribution of the current query term. Zero between two terms. */
  current: Float64Array;
};

/**
 * Finds the `most` best tools. Equally good matches keep their order. `isWanted` filters tools by position. The time
 * grows with the number of tools: under 5 ms for 5,000.
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

/**
 * Returns the positions of the `count` highest scores. Sorting the numbers in their own array takes a tenth of the
 * time.
 */
function highest(scores: Float64Array, count: number): number[] {
  const least = scores.toSorted()[scores.length - count] ?? Number.POSITIVE_INFINITY;
  const found: number[] = [];
  for (let position = 0; position < scores.length; position++) {
    if ((scores[position] as number) >= least) found.push(position);
  }
  return found.sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b).slice(0, count);
}

/** Returns the tools whose names are in the query. */
function namedTools({ names }: ToolIndex, query: string): Set<number> {
  const words = query.toLowerCase().split(/[\s,;:'"`()]+/, mostQueryTerms);
  return new Set(words.flatMap((word) => names.get(word) ?? []));
}

/**
 * Adds the contribution of a query term. Of its variants, only the best counts for a tool, once. The variants are rated
 * by their common frequency, so that a rare synonym of a common word adds little.
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

/** Maximum terms of a query that are searched. */
const mostQueryTerms = 24;

/**
 * Returns the terms of a query. Two adjacent words also count as one if tools contain the compound, such as "work log"
 * and "worklog".
 */
function queryTerms({ numbers }: ToolIndex, query: string): string[] {
  // All words of this question are stop words otherwise.
  const terms = termsOf(query.replace(/\bwho ?am ?i\b/gi, 'current user'), new Map());
  const joined = terms.slice(1).map((term, index) => `${terms[index]}${term}`);
  return [...new Set([...terms, ...joined.filter((term) => numbers.has(term))])].slice(0, mostQueryTerms);
}

/** Weight of an occurrence of a synonym, a derived word, a word with the same beginning, or a similar spelling. */
const shareOf = { synonym: 0.7, derived: 1, beginning: 0.6, spelling: 0.5 };
const mostAlike = 12;
const shortestBeginning = 3;
const shortestMisspelled = 5;
const shortestRoot = 4;
/** Maximum terms that an unknown word is compared with. */
const mostCompared = 20_000;
/** Suffixes that the stemmer does not remove: "contributor" and "contribute", "watcher" and "watch". */
const endings = ['er', 'or', 'ee', 'ment', 'ship', 'ion', 'al', 'ance', 'ive', 'ing', 'ed', 'abl', 'e'];

/** Occurrences of a term that matches a query term, and their weight. */
type Variant = { from: number; end: number; share: number };

/** Returns the terms of an index that match a query term, including itself. */
function variantsOf(index: ToolIndex, term: string): Variant[] {
  return standingFor(index, term).flatMap(([other, share]) => {
    const number = index.numbers.get(other);
    if (number === undefined) return [];
    return [{ from: index.starts[number] as number, end: index.starts[number + 1] as number, share }];
  });
}

function standingFor(index: ToolIndex, term: string): [term: string, share: number][] {
  const shared = (terms: readonly string[], share: number) =>
    terms.filter((other) => index.numbers.has(other)).map((other): [string, number] => [other, share]);
  const same = shared(synonyms.get(term) ?? [], shareOf.synonym);
  const derived = shared(derivedFrom(term), shareOf.derived);
  if (index.numbers.has(term)) return [[term, 1], ...same, ...derived];
  if (derived.length > 0) return [...derived, ...same];
  const { beginning, spelling } = termsLike(index, term);
  if (beginning.length > 0) return [...shared(beginning, shareOf.beginning), ...same];
  return same.length > 0 ? same : shared(spelling, shareOf.spelling);
}

function derivedFrom(term: string): string[] {
  if (term.length < shortestRoot) return [];
  const roots = endings
    .filter((ending) => term.endsWith(ending) && term.length - ending.length >= shortestRoot)
    .map((ending) => term.slice(0, -ending.length));
  return [...endings.map((ending) => term + ending), ...roots];
}

/** Returns the terms that begin with a text, and those with the same first letter at an edit distance of one. */
function termsLike({ numbers }: ToolIndex, text: string): { beginning: string[]; spelling: string[] } {
  const found = { beginning: [] as string[], spelling: [] as string[] };
  const [first] = text;
  let compared = 0;
  for (const term of numbers.keys()) {
    if (++compared > mostCompared) break;
    if (term[0] !== first) continue;
    if (term.startsWith(text)) {
      if (text.length >= shortestBeginning && found.beginning.length < mostAlike) found.beginning.push(term);
    } else if (
      text.length >= shortestMisspelled &&
      found.spelling.length < mostAlike &&
      Math.abs(term.length - text.length) <= 1 &&
      distance(term, text) === 1
    ) {
      found.spelling.push(term);
    }
  }
  return found;
}
