import type { CompiledQuery, Kysely, Selectable } from 'kysely';
import type { Outcome } from '../errors.ts';
import type { Db } from './database.ts';
import { olderThan, type Page, pageOf } from './page.ts';
import type { CallRow, Tables } from './schema.ts';

/** The record of a finished call; times in epoch ms, spans in ms, sizes in bytes. */
export type CallRecord = Selectable<Tables['calls']>;

export type CallFilter = {
  slug?: string;
  slugs?: readonly string[];
  tool?: string;
  outcome?: Outcome;
  callerKind?: string;
  keyId?: string;
  since?: number;
  /** Only calls that started before. */
  until?: number;
};

/** Writes rows of any workspaces at once, `batchRows` at most: each names its own. */
export type CallWriter = (rows: readonly CallRow[]) => Promise<void>;

/** How many rows go to the database at once under load, through a statement made for as many. */
export const batchRows = 100;

/**
 * Makes its two statements once, for many rows and for one, because under load the making costs more than the writing.
 * What is there already stays as it is: a batch is written again when the answer to its first writing was lost.
 */
export function createCallWriter(db: Kysely<Tables>): CallWriter {
  const statements = new Map<number, { query: CompiledQuery; columns: (keyof CallRow)[] }>();

  function compile(rows: readonly CallRow[]) {
    const values = db.insertInto('calls').values([...rows]);
    const query = values.onConflict((c) => c.column('id').doNothing()).compile();
    const made = { query, columns: Object.keys(rows[0] as CallRow) as (keyof CallRow)[] };
    statements.set(rows.length, made);
    return made;
  }

  async function insert(on: Db, rows: readonly CallRow[]): Promise<void> {
    const { query, columns } = statements.get(rows.length) ?? compile(rows);
    await on.executeQuery({ ...query, parameters: rows.flatMap((row) => columns.map((column) => row[column])) });
  }

  return async (rows) => {
    if (rows.length === batchRows) return insert(db, rows);
    await db.transaction().execute(async (transaction) => {
      for (const row of rows) await insert(transaction, [row]);
    });
  };
}

export async function listCalls(
  db: Db,
  workspaceId: string,
  filter: CallFilter,
  page: Page,
): Promise<{ rows: CallRecord[]; next: string | undefined }> {
  let query = db.selectFrom('calls').selectAll().where('workspace_id', '=', workspaceId);
  if (filter.slug !== undefined) query = query.where('slug', '=', filter.slug);
  if (filter.slugs) query = query.where('slug', 'in', [...filter.slugs, '']);
  if (filter.tool !== undefined) query = query.where('tool', '=', filter.tool);
  if (filter.outcome !== undefined) query = query.where('outcome', '=', filter.outcome);
  if (filter.callerKind !== undefined) query = query.where('caller_kind', '=', filter.callerKind);
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId);
  if (filter.since !== undefined) query = query.where('started_at', '>=', filter.since);
  if (filter.until !== undefined) query = query.where('started_at', '<', filter.until);
  const rows = await query
    .where(olderThan('started_at', page.after))
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows, page.limit, (row) => ({ at: row.started_at, id: row.id }));
}

export async function findCall(db: Db, workspaceId: string, id: string): Promise<CallRecord | undefined> {
  return db
    .selectFrom('calls')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** How many rows are deleted at once, so that nobody waits long for the database. */
const prunedAtOnce = 1000;

/** Forgets calls of all workspaces there are that started before `before`. Gives how many there were. */
export async function pruneCalls(db: Db, before: number): Promise<number> {
  let pruned = 0;
  for (const { id } of await db.selectFrom('workspaces').select('id').execute()) {
    const old = db
      .selectFrom('calls')
      .select('id')
      .where('workspace_id', '=', id)
      .where('started_at', '<', before)
      .limit(prunedAtOnce);
    for (let deleted = prunedAtOnce; deleted === prunedAtOnce; pruned += deleted) {
      deleted = Number((await db.deleteFrom('calls').where('id', 'in', old).executeTakeFirst()).numDeletedRows);
    }
  }
  return pruned;
}
