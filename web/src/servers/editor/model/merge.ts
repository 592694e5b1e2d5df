import { isObject } from '../../config.ts';

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Merges two changes of one value: a part that only one side changed is taken from that side, and where both changed
 * the same path, `mine` wins. Lists are compared entry by entry while they have the same length.
 */
export function merge(base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isSame(mine, base)) return theirs;
  if (isSame(theirs, base)) return mine;
  if (isObject(base) && isObject(mine) && isObject(theirs)) {
    const names = new Set([...Object.keys(theirs), ...Object.keys(mine)]);
    const merged = [...names].map((name) => [name, merge(base[name], mine[name], theirs[name])] as const);
    return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
  }
  const lists = [base, mine, theirs].filter(Array.isArray);
  if (lists.length === 3 && lists.every(({ length }) => length === lists[0]?.length))
    return lists[1]?.map((entry: unknown, index) => merge(lists[0]?.[index], entry, lists[2]?.[index]));
  return mine;
}
