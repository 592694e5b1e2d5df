/** Number of changes that a re-import would make. `server` counts changed fields of the server itself. */
type Counts = { changed: number; conflicts: number; new: number; gone: number; server: number };

const countPhrases: readonly (readonly [keyof Counts, string, string])[] = [
  ['server', 'server field changes', 'server fields change'],
  ['changed', 'tool changes', 'tools change'],
  ['conflicts', 'conflict', 'conflicts'],
  ['new', 'new operation', 'new operations'],
  ['gone', 'operation was removed', 'operations were removed'],
];

/** Formats the changes that a re-import would make. The dashboard uses this function too. */
export function formatImportChanges(counts: Counts): string {
  return countPhrases
    .filter(([name]) => counts[name] > 0)
    .map(([name, singular, plural]) => `${counts[name].toLocaleString('en')} ${counts[name] === 1 ? singular : plural}`)
    .join(', ');
}
