import { distance } from 'fastest-levenshtein';
import { synonyms } from './synonyms.ts';
import type { ToolIndex } from './tool-index.ts';

/** How much an occurrence counts of a word that means the same, is derived, only begins alike, or is spelled nearly so. */
const shareOf = { synonym: 0.7, derived: 1, beginning: 0.6, spelling: 0.5 };
const mostAlike = 12;
const shortestBeginning = 3;
const shortestMisspelled = 5;
const shortestRoot = 4;
/** How many terms are compared with a word that no tool has. */
const mostCompared = 20_000;
/** Endings of stems that the stemmer keeps: "contributor" and "contribute", "watcher" and "watch". */
const endings = ['er', 'or', 'ee', 'ment', 'ship', 'ion', 'al', 'ance', 'ive', 'ing', 'ed', 'abl', 'e'];

/** The occurrences of a term that stands for one of the query, and how much each counts. */
export type Variant = { from: number; end: number; share: number };

/** The terms of an index that stand for a term of a query, itself among them. */
export function variantsOf(index: ToolIndex, term: string): Variant[] {
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
