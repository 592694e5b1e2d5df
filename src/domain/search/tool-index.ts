import { distance } from 'fastest-levenshtein';
import { effectOf, wantedEffect } from './effects.ts';
import { synonyms } from './synonyms.ts';
import { termsOf } from './words.ts';

/** The parts of a tool that are searched. */
export type SearchedTool = {
  name: string;
  title: string | undefined;
  description: string;
  method: string;
  arguments: readonly string[];
  tags: readonly string[];
};

/**
 * An inverted index of tools. The occurrences of the term with number `t` are those from `starts[t]` to `starts[t + 1]`:
 * positions of tools, and the weight of the term in each.
 */
export type ToolIndex = {
  readonly size: number;
  readonly numbers: ReadonlyMap<string, number>;
  readonly starts: Uint32Array;
  readonly tools: Uint32Array;
  readonly weights: Float32Array;
  /** What each tool does, by its HTTP method. */
  readonly effects: Uint8Array;
  /** Positions of the tools by their names in small letters. */
  readonly names: ReadonlyMap<string, number>;
};

type Part = { weight: number; usual: number; norm: number };

/**
 * How much a term counts in each part, the usual number of terms there, and how much more terms than that weaken each
 * of them (BM25F: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.5). The numbers are
 * those that did best with the questions of `test/gateway/search-quality.test.ts`.
 */
const parts = {
  name: { weight: 3, usual: 4, norm: 0.95 },
  title: { weight: 2, usual: 4, norm: 0.5 },
  description: { weight: 3, usual: 10, norm: 0.4 },
  arguments: { weight: 0.3, usual: 8, norm: 0.6 },
  tags: { weight: 1, usual: 2, norm: 0.5 },
} as const;
const saturation = 2.5;

/** Characters of a description that are searched, and most terms of one tool. Both bound the size of an index. */
const longestDescription = 1000;
const mostTerms = 400;
/** Characters of tools, or occurrences, that are indexed in one turn of the event loop: a few milliseconds at most. */
const turnLength = 5000;

type Occurrences = { tools: number[]; weights: number[] };

/** Makes an index of so many tools in steps; each `yield` is an opportunity to let other work run. */
export function* indexing(size: number, toolAt: (position: number) => SearchedTool): Generator<void, ToolIndex> {
  const stems = new Map<string, string>();
  const occurrences = new Map<string, Occurrences>();
  const names = new Map<string, number>();
  const effects = new Uint8Array(size);
  let done = 0;
  for (let position = 0; position < size; position++) {
    const tool = toolAt(position);
    if (done > turnLength) {
      yield;
      done = 0;
    }
    names.set(tool.name.toLowerCase(), position);
    effects[position] = effectOf(tool.method);
    for (const [term, weight] of weightsOf(tool, stems)) {
      const found = occurrences.get(term) ?? { tools: [], weights: [] };
      found.tools.push(position);
      found.weights.push(weight);
      occurrences.set(term, found);
    }
    done += lengthOf(tool);
  }
  yield;
  return { ...(yield* packed(occurrences)), size, names, effects };
}

/** The occurrences in flat arrays, which take a fifth of the memory. */
function* packed(
  occurrences: ReadonlyMap<string, Occurrences>,
): Generator<void, Pick<ToolIndex, 'numbers' | 'starts' | 'tools' | 'weights'>> {
  let total = 0;
  for (const found of occurrences.values()) total += found.tools.length;
  const numbers = new Map<string, number>();
  const starts = new Uint32Array(occurrences.size + 1);
  const tools = new Uint32Array(total);
  const weights = new Float32Array(total);
  let at = 0;
  let done = 0;
  for (const [term, found] of occurrences) {
    numbers.set(term, numbers.size);
    tools.set(found.tools, at);
    weights.set(found.weights, at);
    at += found.tools.length;
    starts[numbers.size] = at;
    done += found.tools.length + 10;
    if (done > turnLength) {
      yield;
      done = 0;
    }
  }
  return { numbers, starts, tools, weights };
}

function lengthOf(tool: SearchedTool): number {
  return tool.name.length + Math.min(tool.description.length, longestDescription) + 20 * tool.arguments.length + 50;
}

/** The terms of a tool and their weights. */
function weightsOf(tool: SearchedTool, stems: Map<string, string>): Map<string, number> {
  const weights = new Map<string, number>();
  const add = (terms: readonly string[], { weight, usual, norm }: Part) => {
    const share = weight / (1 - norm + norm * Math.max(0.5, terms.length / usual));
    for (const term of terms) {
      const before = weights.get(term);
      if (before !== undefined || weights.size < mostTerms) weights.set(term, (before ?? 0) + share);
    }
  };
  // In a name such as `post_customers_customer_cards` a repetition comes from the path and says nothing.
  add([...new Set(termsOf(tool.name, stems))], parts.name);
  if (tool.title !== undefined) add(termsOf(tool.title, stems), parts.title);
  add(termsOf(tool.description.slice(0, longestDescription), stems), parts.description);
  add(termsOf(tool.arguments.join(' '), stems), parts.arguments);
  add(termsOf(tool.tags.join(' '), stems), parts.tags);
  return weights;
}

/** Most terms of a query that are searched for. */
const mostQueryTerms = 24;
/** How much an occurrence counts of a word that means the same, that only begins alike, or that is spelled nearly so. */
const shareOf = { synonym: 0.9, beginning: 0.6, spelling: 0.5 };
const mostAlike = 12;
const shortestBeginning = 3;
const shortestMisspelled = 5;
/** Words of a query that no tool has for which like ones are looked for, and how many terms are compared with each. */
const mostUnknown = 6;
const mostCompared = 20_000;
/** How much more a tool counts that does what the verb of the query says. */
const effectBonus = 0.15;
/** A name that is written out in the query comes before everything else. */
const nameScore = 1000;

/** How many tools fit a query, and the best of them as positions in the list, best first. */
export type Matches = { total: number; best: readonly number[] };

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
  const scores = new Float64Array(index.size);
  const best = new Float64Array(index.size);
  let unknown = 0;
  for (const term of [...new Set(termsOf(query, new Map()))].slice(0, mostQueryTerms)) {
    if (index.numbers.has(term) || ++unknown <= mostUnknown) addTerm(index, term, scores, best);
  }
  const wanted = wantedEffect(query);
  const named = namedTools(index, query);
  let total = 0;
  for (let position = 0; position < index.size; position++) {
    const bonus = index.effects[position] === wanted ? 1 + effectBonus : 1;
    const score = (scores[position] as number) * bonus + (named.has(position) ? nameScore : 0);
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
function addTerm(index: ToolIndex, term: string, scores: Float64Array, best: Float64Array): void {
  const variants = variantsOf(index, term);
  const common = variants.reduce((sum, { from, end }) => sum + end - from, 0);
  const rarity = Math.log(1 + (Math.max(0, index.size - common) + 0.5) / (common + 0.5));
  const touched: number[] = [];
  for (const { from, end, share } of variants) {
    for (let at = from; at < end; at++) {
      const position = index.tools[at] as number;
      const weight = index.weights[at] as number;
      const gain = (share * rarity * weight * (saturation + 1)) / (weight + saturation);
      if (best[position] === 0) touched.push(position);
      if (gain > (best[position] as number)) best[position] = gain;
    }
  }
  for (const position of touched) {
    scores[position] = (scores[position] as number) + (best[position] as number);
    best[position] = 0;
  }
}

/** The occurrences of a term that stands for one of the query, and how much each counts. */
type Variant = { from: number; end: number; share: number };

function variantsOf(index: ToolIndex, term: string): Variant[] {
  return standingFor(index, term).flatMap(([other, share]) => {
    const number = index.numbers.get(other);
    if (number === undefined) return [];
    return [{ from: index.starts[number] as number, end: index.starts[number + 1] as number, share }];
  });
}

function standingFor(index: ToolIndex, term: string): [term: string, share: number][] {
  const same: [string, number][] = (synonyms.get(term) ?? []).map((other) => [other, shareOf.synonym]);
  if (index.numbers.has(term)) return [[term, 1], ...same];
  const { beginning, spelling } = termsLike(index, term);
  if (beginning.length > 0) return [...beginning.map((other): [string, number] => [other, shareOf.beginning]), ...same];
  if (same.some(([other]) => index.numbers.has(other))) return same;
  return spelling.map((other) => [other, shareOf.spelling]);
}

/** The terms that begin with a text, and those with the same first letter that differ from it by one slip. */
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
