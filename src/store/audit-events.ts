import { type Selectable, sql } from 'kysely';
import { dayMs, startOf } from './calls/call-counts.ts';
import { takeOfQuotas } from './calls/call-quota-use.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { isOf, olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** Who changed what, when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

/** Longest detail of an event. Texts of an input in it are bounded where they enter; this holds for those that are not. */
const mostOfDetail = 32 * 1024;
/** Details that are no longer than this are kept however many there are. */
const shortDetail = 1000;
/** Most characters of longer details that a day (UTC) keeps of a workspace. */
export const mostDetailsInDay = 20_000_000;
/** The detail of an event that has a longer one. */
const leftOut = '{"left_out":true}';

/** Writes an event down, in the transaction of what it is about. */
export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  const detail = (await isKept(db, event)) ? event.detail : leftOut;
  await db
    .insertInto('audit_events')
    .values({ ...event, detail })
    .execute();
}

async function isKept(db: Db, { workspace_id: ref, at, detail: { length } }: AuditEvent): Promise<boolean> {
  if (length <= shortDetail) return true;
  if (length > mostOfDetail) return false;
  const day = { kind: 'auditDetails', ref, span: 'day', startsAt: startOf(at, dayMs) } as const;
  const [use] = await takeOfQuotas(db, [{ ...day, quota: mostDetailsInDay, calls: length }]);
  return use?.granted === length;
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

/** Most characters of details in one page of events; a page ends early above it. */
const mostOfPage = 500_000;

export async function findAuditEvents(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: AuditEvent[]; next: string | undefined }> {
  const query = db.selectFrom('audit_events').select(['id', 'workspace_id', 'at', 'actor_kind', 'actor_id']);
  const rows = await query
    .select(['operation', 'target', 'request_id', 'detail'])
    .where('workspace_id', '=', workspaceId)
    .where(olderThan('at', page.after))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows, Math.min(page.limit, fitting(rows)), (row) => ({ at: row.at, id: row.id }));
}

/** How many of the first rows fit into a page. */
function fitting(rows: readonly AuditEvent[]): number {
  let left = mostOfPage;
  const first = rows.findIndex(({ detail }) => {
    left -= detail.length;
    return left < 0;
  });
  return first < 0 ? rows.length : Math.max(1, first);
}
