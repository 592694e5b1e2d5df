import type { Json } from './toolhost/toolhost.ts';

/** Returns one field of each item. */
export function pluck<Item, Key extends keyof Item>(items: readonly Item[], key: Key): Item[Key][];
/** Returns these fields of each row, one after the other. */
export function pluck(rows: unknown, ...fields: string[]): unknown[];
export function pluck(rows: unknown, ...fields: string[]): unknown[] {
  return (rows as Json[]).flatMap((row) => fields.map((field) => row[field]));
}
