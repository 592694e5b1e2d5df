import type { SelectQueryBuilder } from 'kysely';
import type { Outcome } from '../../errors.ts';
import type { Db } from '../db.ts';
import { type Cursor, encodeCursor, olderThan, type Page, pageOf } from '../page.ts';
import type { Tables } from '../schema.ts';
import { type CallRecord, recordColumns } from './call-writer.ts';

export type CallFilter = {
  slug?: string;
  slugs?: readonly string[];
  view?: string;
  tool?: string;
  /** `failed` matches every outcome except ok. */
  outcome?: Outcome | 'failed';
  callerKind?: string;
  keyId?: string;
  since?: number;
  /** Includes only calls that started before this time. */
  until?: number;
};

/** `searchedTo` is the start of the oldest searched call, if older calls may match too. */
export type CallPage = { rows: CallRecord[]; next: string | undefined; searchedTo: number | undefined };

/**
 * Maximum number of calls that one page searches for matches of a filter. The next page continues after them. An index
 * for a filter would cost every call more than all searches do.
 */
export const searchedAtOnce = 25_000;

export async function findCalls(
  db: Db,
  workspaceId: string,
  filter: CallFilter,
  page: Page & { searched?: number },
): Promise<CallPage> {
  const { searched: atOnce = searchedAtOnce } = page;
  const { since, until, ...rest } = filter;
  const candidates = candidatesOf(db, workspaceId, { since, until }, page.after);
  if (Object.keys(rest).length === 0) {
    const rows = await candidates
      .select(recordColumns)
      .limit(page.limit + 1)
      .execute();
    return { ...pageOf(rows, page.limit, cursorOf), searchedTo: undefined };
  }
  const searched = candidates.select(recordColumns).limit(atOnce).as('searched');
  const rows = await narrowed(db.selectFrom(searched), rest)
    .selectAll()
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  const result = pageOf(rows, page.limit, cursorOf);
  if (result.next !== undefined) return { ...result, searchedTo: undefined };
  const last = await candidates
    .select(['started_at', 'id'])
    .offset(atOnce - 1)
    .limit(1)
    .executeTakeFirst();
  return { rows, next: last && encodeCursor(cursorOf(last)), searchedTo: last?.started_at };
}

const cursorOf = (row: { started_at: number; id: string }): Cursor => ({ at: row.started_at, id: row.id });

type Calls<Output> = SelectQueryBuilder<{ calls: Tables['calls'] }, 'calls', Output>;

/** Selects calls, newest first. */
function candidatesOf(
  db: Db,
  workspaceId: string,
  { since, until }: { since: number | undefined; until: number | undefined },
  after: Cursor | undefined,
): Calls<object> {
  let query: Calls<object> = db.selectFrom('calls').where('workspace_id', '=', workspaceId);
  if (since !== undefined) query = query.where('started_at', '>=', since);
  if (until !== undefined) query = query.where('started_at', '<', until);
  return query.where(olderThan('started_at', after)).orderBy('started_at', 'desc').orderBy('id', 'desc');
}

function narrowed(
  searched: SelectQueryBuilder<{ searched: CallRecord }, 'searched', object>,
  { slug, slugs, view, tool, outcome, callerKind, keyId }: CallFilter,
) {
  let query = searched;
  if (slug !== undefined) query = query.where('slug', '=', slug);
  if (slugs) query = query.where('slug', 'in', [...slugs, '']);
  if (view !== undefined) query = query.where('view', '=', view);
  if (tool !== undefined) query = query.where('tool', '=', tool);
  if (outcome === 'failed') query = query.where('outcome', '<>', 'ok');
  else if (outcome !== undefined) query = query.where('outcome', '=', outcome);
  if (callerKind !== undefined) query = query.where('caller_kind', '=', callerKind);
  if (keyId !== undefined) query = query.where('key_id', '=', keyId);
  return query;
}

export async function findCall(db: Db, workspaceId: string, id: string): Promise<CallRecord | undefined> {
  return db
    .selectFrom('calls')
    .select(recordColumns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirst();
}
