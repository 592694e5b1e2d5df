import { didYouMean, type Guesses } from './did-you-mean.ts';

/** Most right names that a wrong one is compared with. */
const mostCompared = 1000;
/** Most names in one message. */
export const mostNamed = 10;
const leastBeginning = 3;

/**
 * The text after "there is no such …": the nearest of these names, or `otherwise`. The reader must be allowed to see all
 * of the names.
 */
export function nearest(name: string, names: readonly string[], guesses: Guesses, otherwise = ''): string {
  if (guesses.left <= 0) return otherwise;
  const compared = names.slice(0, mostCompared);
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
