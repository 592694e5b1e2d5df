import { distance } from 'fastest-levenshtein';
import { getRequestedEffect, rateEffect } from './effects.ts';
import { synonyms } from './synonyms.ts';
import { getRarity, type ToolIndex } from './tool-index.ts';
import { getTerms } from './words.ts';

/** Saturation of term weights: k1 of BM25. */
const saturation = 0.77;
/** Maximum query words without an exact match for which similar terms are searched. */
const maxUnknownWords = 6;
/** Additional weight of a tool that matches the verb of the query, or that reads if the query has no verb. */
const effectBonus = { requested: 0.54, assumed: 0.14 };
/** Additional weight of a tool whose whole name is in the query: `get_project` before `get_project_features`. */
const fullNameBonus = 1;
/** Score of a tool whose exact name is in the query. It exceeds every other score. */
const nameScore = 1000;

/** Number of tools that match a query, and the positions of the best ones, best first. */
export type Matches = { total: number; best: readonly number[] };

/** Sums by tool position while a query is processed. */
type Sums = {
  scores: Float64Array;
  /** Rarities of the terms in the tool's name that the query contains. */
  nameCoverage: Float64Array;
  /** Contribution of the current query term. Zero between two terms. */
  current: Float64Array;
};

/**
 * Finds the `maxResults` best tools. Equally good matches keep their order. `isIncluded` filters tools by position. The
 * time grows with the number of tools: under 5 ms for 5,000.
 */
export function searchTools(
  index: ToolIndex,
  query: string,
  maxResults: number,
  isIncluded: (position: number) => boolean = () => true,
): Matches {
  const { size, nameRarities } = index;
  const totals = {
    scores: new Float64Array(size),
    nameCoverage: new Float64Array(size),
    current: new Float64Array(size),
  };
  let unknown = 0;
  for (const term of getQueryTerms(index, query)) {
    if (index.numbers.has(term) || ++unknown <= maxUnknownWords) addTerm(index, term, totals);
  }
  const requestedEffect = getRequestedEffect(query);
  const bonus = requestedEffect === undefined ? effectBonus.assumed : effectBonus.requested;
  const namedPositions = findNamedTools(index, query);
  const { scores, nameCoverage } = totals;
  let total = 0;
  for (let position = 0; position < size; position++) {
    const coverage = (nameCoverage[position] as number) / (nameRarities[position] || 1);
    const factor =
      (1 + bonus * rateEffect(index.effects[position] as number, requestedEffect)) *
      (1 + fullNameBonus * Math.min(1, coverage));
    const score = (scores[position] as number) * factor + (namedPositions.has(position) ? nameScore : 0);
    scores[position] = score > 0 && isIncluded(position) ? score : 0;
    if (scores[position] !== 0) total++;
  }
  return { total, best: findHighest(scores, Math.min(maxResults, total)) };
}

/**
 * Returns the positions of the `count` highest scores. Sorting the numbers in their own array takes a tenth of the
 * time.
 */
function findHighest(scores: Float64Array, count: number): number[] {
  const minScore = scores.toSorted()[scores.length - count] ?? Number.POSITIVE_INFINITY;
  const positions: number[] = [];
  for (let position = 0; position < scores.length; position++) {
    if ((scores[position] as number) >= minScore) positions.push(position);
  }
  return positions.sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b).slice(0, count);
}

/** Returns the tools whose names are in the query. */
function findNamedTools({ names }: ToolIndex, query: string): Set<number> {
  const words = query.toLowerCase().split(/[\s,;:'"`()]+/, maxQueryTerms);
  return new Set(words.flatMap((word) => names.get(word) ?? []));
}

/**
 * Adds the contribution of a query term. Of its variants, only the best counts for a tool, once. The variants are rated
 * by their common frequency, so that a rare synonym of a common word adds little.
 */
function addTerm(index: ToolIndex, term: string, { scores, nameCoverage, current }: Sums): void {
  const variants = getVariants(index, term);
  const rarity = getRarity(
    variants.reduce((sum, { from, end }) => sum + end - from, 0),
    index.size,
  );
  const touchedPositions: number[] = [];
  for (const { from, end, share: weightFactor } of variants) {
    const coverage = weightFactor * getRarity(end - from, index.size);
    for (let at = from; at < end; at++) {
      const position = index.tools[at] as number;
      const weight = index.weights[at] as number;
      const gain = (weightFactor * rarity * weight * (saturation + 1)) / (weight + saturation);
      if (current[position] === 0) touchedPositions.push(position);
      if (gain > (current[position] as number)) current[position] = gain;
      if (index.inName[at]) nameCoverage[position] = (nameCoverage[position] as number) + coverage;
    }
  }
  for (const position of touchedPositions) {
    scores[position] = (scores[position] as number) + (current[position] as number);
    current[position] = 0;
  }
}

/** Maximum terms of a query that are searched. */
const maxQueryTerms = 24;

/**
 * Returns the terms of a query. Two adjacent words also count as one if tools contain the compound, such as "work log"
 * and "worklog".
 */
function getQueryTerms({ numbers }: ToolIndex, query: string): string[] {
  // All words of this question are stop words otherwise.
  const terms = getTerms(query.replace(/\bwho ?am ?i\b/gi, 'current user'), new Map());
  const compounds = terms.slice(1).map((term, index) => `${terms[index]}${term}`);
  return [...new Set([...terms, ...compounds.filter((term) => numbers.has(term))])].slice(0, maxQueryTerms);
}

/** Weight of an occurrence of a synonym, a derived word, a word with the same beginning, or a similar spelling. */
const variantWeights = { synonym: 0.7, derived: 1, beginning: 0.6, spelling: 0.5 };
const maxSimilarTerms = 12;
const minPrefixLength = 3;
const minMisspelledLength = 5;
const minRootLength = 4;
/** Maximum terms that an unknown word is compared with. */
const maxComparedTerms = 20_000;
/** Suffixes that the stemmer does not remove: "contributor" and "contribute", "watcher" and "watch". */
const endings = ['er', 'or', 'ee', 'ment', 'ship', 'ion', 'al', 'ance', 'ive', 'ing', 'ed', 'abl', 'e'];

/** Occurrences of a term that matches a query term, and their weight. */
type Variant = { from: number; end: number; share: number };

/** Returns the terms of an index that match a query term, including itself. */
function getVariants(index: ToolIndex, term: string): Variant[] {
  return findMatchingTerms(index, term).flatMap(([match, weightFactor]) => {
    const number = index.numbers.get(match);
    if (number === undefined) return [];
    return [{ from: index.starts[number] as number, end: index.starts[number + 1] as number, share: weightFactor }];
  });
}

function findMatchingTerms(index: ToolIndex, term: string): [term: string, share: number][] {
  const weighted = (terms: readonly string[], weightFactor: number) =>
    terms.filter((other) => index.numbers.has(other)).map((other): [string, number] => [other, weightFactor]);
  const synonymMatches = weighted(synonyms.get(term) ?? [], variantWeights.synonym);
  const derived = weighted(getDerivedTerms(term), variantWeights.derived);
  if (index.numbers.has(term)) return [[term, 1], ...synonymMatches, ...derived];
  if (derived.length > 0) return [...derived, ...synonymMatches];
  const { beginning, spelling } = findSimilarTerms(index, term);
  if (beginning.length > 0) return [...weighted(beginning, variantWeights.beginning), ...synonymMatches];
  return synonymMatches.length > 0 ? synonymMatches : weighted(spelling, variantWeights.spelling);
}

function getDerivedTerms(term: string): string[] {
  if (term.length < minRootLength) return [];
  const roots = endings
    .filter((ending) => term.endsWith(ending) && term.length - ending.length >= minRootLength)
    .map((ending) => term.slice(0, -ending.length));
  return [...endings.map((ending) => term + ending), ...roots];
}

/** Returns the terms that begin with a text, and those with the same first letter at an edit distance of one. */
function findSimilarTerms({ numbers }: ToolIndex, text: string): { beginning: string[]; spelling: string[] } {
  const similar = { beginning: [] as string[], spelling: [] as string[] };
  const [firstLetter] = text;
  let compared = 0;
  for (const term of numbers.keys()) {
    if (++compared > maxComparedTerms) break;
    if (term[0] !== firstLetter) continue;
    if (term.startsWith(text)) {
      if (text.length >= minPrefixLength && similar.beginning.length < maxSimilarTerms) similar.beginning.push(term);
    } else if (
      text.length >= minMisspelledLength &&
      similar.spelling.length < maxSimilarTerms &&
      Math.abs(term.length - text.length) <= 1 &&
      distance(term, text) === 1
    ) {
      similar.spelling.push(term);
    }
  }
  return similar;
}
