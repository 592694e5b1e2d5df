/**
 * A query with parameters at its end, each in place of those with its name; `removed` are left out as well. All else stays
 * as it is written, which OAuth demands of the addresses of clients and providers (RFC 6749, 3.1 and 3.1.2);
 * `searchParams` would write it anew.
 */
export function addedQuery(
  query: string,
  added: readonly (readonly [name: string, value: string])[],
  removed: readonly string[] = [],
): string {
  const names = new Set([...removed, ...added.map(([name]) => name)]);
  const isReplaced = (pair: string) => [...new URLSearchParams(pair).keys()].some((name) => names.has(name));
  const kept = query === '' ? [] : query.split('&').filter((pair) => !isReplaced(pair));
  return [...kept, new URLSearchParams(added.map(([name, value]) => [name, value]))].join('&');
}
