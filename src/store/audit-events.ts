import type { Selectable } from 'kysely';
import type { Db } from './database.ts';
import { olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** Who changed what, when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  await db.insertInto('audit_events').values(event).execute();
}

export async function listAuditEvents(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: AuditEvent[]; next: string | undefined }> {
  const query = db.selectFrom('audit_events').selectAll().where('workspace_id', '=', workspaceId);
  const rows = await query
    .where(olderThan('at', page.after))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows, page.limit, (row) => ({ at: row.at, id: row.id }));
}
