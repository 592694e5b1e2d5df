const mostShown = 3;
const longestShown = 80;

/** The first few of some names, which may be long and many, and the number of the others. */
export function firstNames(names: readonly string[]): string {
  const shown = names
    .slice(0, mostShown)
    .map((name) => (name.length > longestShown ? `${name.slice(0, longestShown)}…` : name));
  const left = names.length - shown.length;
  return left > 0 ? `${shown.join(', ')} and ${left} more` : shown.join(', ');
}
