import type { Outcome } from '@toolhost/errors/errors';
import type { SelectQueryBuilder } from 'kysely';
import type { Db } from '../db.ts';
import { type Cursor, encodeCursor, isOlderThan, type Page, toPage, toSqlList } from '../page.ts';
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
export const maxCallsSearchedPerPage = 25_000;

export async function findCalls(
  db: Db,
  workspaceId: string,
  filter: CallFilter,
  page: Page & { searchLimit?: number },
): Promise<CallPage> {
  const { searchLimit = maxCallsSearchedPerPage } = page;
  const { since, until, ...filters } = filter;
  const candidates = selectCandidates(db, workspaceId, { since, until }, page.after);
  if (Object.keys(filters).length === 0) {
    const rows = await candidates
      .select(recordColumns)
      .limit(page.limit + 1)
      .execute();
    return { ...toPage(rows, page.limit, toCursor), searchedTo: undefined };
  }
  const searched = candidates.select(recordColumns).limit(searchLimit).as('searched');
  const rows = await applyFilter(db.selectFrom(searched), filters)
    .selectAll()
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  const result = toPage(rows, page.limit, toCursor);
  if (result.next !== undefined) return { ...result, searchedTo: undefined };
  const lastSearched = await candidates
    .select(['started_at', 'id'])
    .offset(searchLimit - 1)
    .limit(1)
    .executeTakeFirst();
  return { rows, next: lastSearched && encodeCursor(toCursor(lastSearched)), searchedTo: lastSearched?.started_at };
}

const toCursor = (row: { started_at: number; id: string }): Cursor => ({ at: row.started_at, id: row.id });

type Calls<Output> = SelectQueryBuilder<{ calls: Tables['calls'] }, 'calls', Output>;

/** Selects calls, newest first. */
function selectCandidates(
  db: Db,
  workspaceId: string,
  { since, until }: { since: number | undefined; until: number | undefined },
  after: Cursor | undefined,
): Calls<object> {
  let query: Calls<object> = db.selectFrom('calls').where('workspace_id', '=', workspaceId);
  if (since !== undefined) query = query.where('started_at', '>=', since);
  if (until !== undefined) query = query.where('started_at', '<', until);
  return query.where(isOlderThan('started_at', after)).orderBy('started_at', 'desc').orderBy('id', 'desc');
}

function applyFilter(
  searched: SelectQueryBuilder<{ searched: CallRecord }, 'searched', object>,
  { slug, slugs, view, tool, outcome, callerKind, keyId }: CallFilter,
) {
  let query = searched;
  if (slug !== undefined) query = query.where('slug', '=', slug);
  if (slugs) query = query.where('slug', 'in', toSqlList(slugs));
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
