import { distance } from 'fastest-levenshtein';

/**
 * How many names the guesses of one answer may still be compared with. A comparison of two long names takes two
 * microseconds, and an input may have thousands of wrong names beside thousands of right ones.
 */
export type Guesses = { left: number };

const mostCompared = 2000;

/** Each answer has its own; whatever makes several guesses for one answer passes them on. */
export function newGuesses(): Guesses {
  return { left: mostCompared };
}

const longestGuess = 100;
const mostAllowed = 1000;

/**
 * "; did you mean `method`?" when one of the allowed words is close, else nothing, also when the answer has no guesses
 * left. Takes 1,000 words at most into account.
 */
export function didYouMean(word: string, allowed: readonly string[], guesses: Guesses): string {
  if (word.length > longestGuess || guesses.left <= 0) return '';
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const guess of allowed.slice(0, mostAllowed)) {
    const most = Math.floor((guess.length + 1) / 3);
    if (Math.abs(guess.length - word.length) > most || guess.length > longestGuess) continue;
    if (guesses.left-- <= 0) break;
    const far = distance(wanted, guess.toLowerCase());
    if (far > most || far >= least) continue;
    best = guess;
    least = far;
  }
  return best === undefined ? '' : `; did you mean \`${best}\`?`;
}

/** Most right names that a wrong one is compared with. */
const mostRightNames = 1000;
/** Most names in one message. */
export const mostNamed = 10;
const leastBeginning = 3;

/**
 * The text after "there is no such …": the nearest of these names, or `otherwise`. The reader must be allowed to see all
 * of the names.
 */
export function nearest(name: string, names: readonly string[], guesses: Guesses, otherwise = ''): string {
  if (guesses.left <= 0) return otherwise;
  const compared = names.slice(0, mostRightNames);
  return didYouMean(name, compared, guesses) || beginsAlike(name, compared) || otherwise;
}

/** A name with the same beginning: someone who remembers the beginning leaves out more than a slip would. */
function beginsAlike(name: string, names: readonly string[]): string {
  if (name.length < leastBeginning) return '';
  const found = names.find((other) => other.startsWith(name) || name.startsWith(`${other}-`));
  return found === undefined ? '' : `; did you mean \`${found}\`?`;
}

/** The same for names that are few enough to list them all, such as the tools of a server. `none` and `all` lead to the list. */
export function nearestOrAll(
  name: string,
  names: readonly string[],
  guesses: Guesses,
  { none, all } = { none: '; it has none', all: '; it has: ' },
): string {
  return nearest(name, names, guesses, names.length === 0 ? none : all + listed(names));
}

export function listed(names: readonly string[]): string {
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return names.slice(0, mostNamed).join(', ') + more;
}
