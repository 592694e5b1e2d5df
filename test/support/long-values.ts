import type { Json } from './toolhost/toolhost.ts';

/** Returns a list of `count` items, rounded down. */
export function times<Item>(count: number, make: (i: number) => Item): Item[] {
  return Array.from({ length: Math.floor(count) }, (_, i) => make(i));
}

/** Repeats a piece as often as it fits into this many bytes. */
export function repeatToFit(piece: string, bytes: number): string {
  return piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)));
}

/** Returns a JSON list that repeats an item as often as it fits into this many bytes, and at most `maxCount` times. */
export function makeList(item: string, bytes: number, maxCount = Infinity): string {
  return `[${Array(Math.min(maxCount, Math.floor(bytes / (item.length + 1)))).fill(item)}]`;
}

/** Returns an object of `count` fields. */
export function makeObject(count: number, makeField: (i: number) => [name: string, value: unknown]): Json {
  return Object.fromEntries(times(count, makeField));
}
