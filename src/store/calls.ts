import type { Outcome } from '../errors.ts';
import { type CallRecord, recordColumns } from './call-writer.ts';
import type { Db } from './database.ts';
import { olderThan, type Page, pageOf } from './page.ts';

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

export async function listCalls(
  db: Db,
  workspaceId: string,
  filter: CallFilter,
  page: Page,
): Promise<{ rows: CallRecord[]; next: string | undefined }> {
  let query = db.selectFrom('calls').select(recordColumns).where('workspace_id', '=', workspaceId);
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
    .select(recordColumns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirst();
}
