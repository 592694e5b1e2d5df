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
