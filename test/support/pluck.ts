import type { Json } from './toolhost/toolhost.ts';

/** Returns these fields of each row, one after the other. */
export function pluck(rows: unknown, ...fields: string[]): unknown[] {
  return (rows as Json[]).flatMap((row) => fields.map((field) => row[field]));
}
