/** What importing again would change, in numbers. `server` counts the fields of the server itself. */
type Counts = { changed: number; conflicts: number; new: number; gone: number; server: number };

const words: readonly (readonly [keyof Counts, string, string])[] = [
  ['server', 'field of the server changes', 'fields of the server change'],
  ['changed', 'tool changes', 'tools change'],
  ['conflicts', 'conflict', 'conflicts'],
  ['new', 'new operation', 'new operations'],
  ['gone', 'operation is gone', 'operations are gone'],
];

/** What importing again would change, in words; the dashboard uses it too. */
export function changesText(counts: Counts): string {
  return words
    .filter(([name]) => counts[name] > 0)
    .map(([name, one, several]) => `${counts[name].toLocaleString('en')} ${counts[name] === 1 ? one : several}`)
    .join(', ');
}
