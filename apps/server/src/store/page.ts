import { AppError } from '@toolhost/errors/errors';
import { type RawBuilder, type SqlBool, sql } from 'kysely';

/** Position in a list, which is ordered by a time and an id, newest first. A cursor is the pair of the last row. */
export type Cursor = { at: number; id: string };

export type Page = { limit: number; after: Cursor | undefined };

export function encodeCursor(cursor: Cursor): string {
  return Buffer.from(`${cursor.at}.${cursor.id}`).toString('base64url');
}

/** Decodes a time in ms and an ID of visible ASCII, separated by a dot. @throws AppError invalid */
export function decodeCursor(text: string): Cursor {
  const [, at, id] = /^(\d{1,15})\.([!-~]{1,300})$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (at === undefined || id === undefined) {
    throw new AppError('invalid', 'cursor: this service did not issue it; start again without a cursor', {
      problems: [{ path: 'cursor', message: 'this service did not issue it; start again without a cursor' }],
    });
  }
  return { at: Number(at), id };
}

/** Returns the condition that a row comes after the cursor in the order "newest first"; true without a cursor. */
export function isOlderThan(column: string, after: Cursor | undefined, idColumn = 'id'): RawBuilder<SqlBool> {
  if (!after) return sql<SqlBool>`1 = 1`;
  return sql<SqlBool>`(${sql.ref(column)}, ${sql.ref(idColumn)}) < (${after.at}, ${after.id})`;
}

/** Returns the condition that a row comes after the cursor in the order "oldest first"; true without a cursor. */
export function isNewerThan(timeColumn: string, idColumn: string, after: Cursor | undefined): RawBuilder<SqlBool> {
  if (!after) return sql<SqlBool>`1 = 1`;
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) > (${after.at}, ${after.id})`;
}

/**
 * Returns the condition that rows belong to a workspace, for queries by a list of ids or slugs. SQLite would estimate
 * the list to be more work than reading the whole workspace. No index has this expression, so SQLite uses the list.
 */
export function isInWorkspace(workspaceId: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`workspace_id || '' = ${workspaceId}`;
}

/** Returns the operand of `in`, which cannot be empty in SQL. No id, slug, or role is an empty text. */
export const toSqlList = (texts: readonly string[]): string[] => [...texts, ''];

/** Creates a page from rows that were read with one more than the limit, which only shows that there is a next page. */
export function toPage<Row>(
  rows: Row[],
  limit: number,
  getCursor: (row: Row) => Cursor,
): { rows: Row[]; next: string | undefined } {
  const { rows: pageRows, next } = toPageWithCursor(rows, limit, getCursor);
  return { rows: pageRows, next: next && encodeCursor(next) };
}

/** Creates a page like `toPage`, with a cursor that is not encoded yet. */
export function toPageWithCursor<Row>(
  rows: Row[],
  limit: number,
  getCursor: (row: Row) => Cursor,
): { rows: Row[]; next: Cursor | undefined } {
  if (rows.length <= limit) return { rows, next: undefined };
  const pageRows = rows.slice(0, limit);
  const last = pageRows.at(-1);
  return { rows: pageRows, next: last && getCursor(last) };
}
