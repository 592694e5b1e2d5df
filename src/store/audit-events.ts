import { type Selectable, sql } from 'kysely';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { isOf, olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** Who changed what, when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  await db.insertInto('audit_events').values(event).execute();
}

/** Deletes events from before `before`. No workspace: retention is the same for all. */
export async function pruneAuditEvents(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'audit_events', key: ['id'], where: sql`at < ${before}` }, pause);
}

/**
 * Current names of the users and API keys among these ids. Users are found without a workspace, because a person may
 * have left it since.
 */
export async function namesOfActors(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids), ''];
  const users = await db.selectFrom('users').select(['id', 'name', 'email']).where('id', 'in', wanted).execute();
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where(isOf(workspaceId))
    .where('id', 'in', wanted)
    .execute();
  const named = [
    ...users.map(({ id, name, email }) => [id, name ?? email] as const),
    ...keys.map((key) => [key.id, key.name] as const),
  ];
  return new Map(named.filter((entry): entry is [string, string] => entry[1] !== null));
}

export async function findAuditEvents(
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
