import { randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { newId } from '../domain/ids.ts';
import { dayMs } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { isOf, olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';
import { periodOf, takeOfQuotas } from './workspaces.ts';

/** Who changed what, when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

/** Longest detail of an event. Texts of an input in it are bounded where they enter; this holds for those that are not. */
export const mostOfDetail = 32 * 1024;
/** Details that are no longer than this are kept however many there are. */
export const shortDetail = 1000;
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
  const day = periodOf('auditDetails', ref, 'day', at);
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

/**
 * Most events of the logins at one server that a day (UTC) keeps one by one. No quota of the workspace counts them, and
 * strangers may begin and refuse as many logins as they like.
 */
export const mostLoginEventsInDay = { login: 10_000, loginRevoked: 10_000, loginFailed: 500 } as const;

/** An event of a login in the workspace that it belongs to. */
export type LoginEventRow = AuditEvent & { operation: keyof typeof mostLoginEventsInDay };

/** Writes an event down, in the transaction of what it is about. Those above the most of the day are one row, with their number. */
export async function insertLoginEvent(db: Db, serverId: string, event: LoginEventRow): Promise<void> {
  const { workspace_id: workspaceId, operation } = event;
  const day = periodOf(operation, `${workspaceId} ${serverId}`, 'day', event.at);
  const [use] = await takeOfQuotas(db, [{ ...day, quota: mostLoginEventsInDay[operation], calls: 1 }]);
  if (use?.granted === 1) return insertAuditEvent(db, event);
  await countFurther(db, { ...event, id: `aud_${operation}_${workspaceId}_${serverId}_${day.startsAt / dayMs}` });
}

/** Nobody else counts meanwhile: the row of the quota is locked until the end of the transaction. */
async function countFurther(db: Db, event: AuditEvent): Promise<void> {
  const known = await db
    .selectFrom('audit_events')
    .select('detail')
    .where('workspace_id', '=', event.workspace_id)
    .where('id', '=', event.id)
    .executeTakeFirst();
  const { further = 0 } = JSON.parse(known?.detail ?? '{}') as { further?: number };
  const detail = JSON.stringify({ further: further + 1 });
  await db
    .insertInto('audit_events')
    .values({ ...event, detail })
    .onConflict((c) => c.column('id').doUpdateSet({ detail }))
    .execute();
}

/** How many logins of a workspace at one server upkeep has ended, and why. */
export type EndedLogins = { workspaceId: string; slug: string; logins: number; reason: string };

/** Tells a workspace that upkeep has ended logins at a server. */
export function insertEndedLogins(db: Db, { workspaceId, slug, ...detail }: EndedLogins, at: number): Promise<void> {
  return insertAuditEvent(db, {
    id: newId(randomBytes, 'aud'),
    workspace_id: workspaceId,
    at,
    actor_kind: 'service',
    actor_id: 'upkeep',
    operation: 'loginsEnded',
    target: slug,
    detail: JSON.stringify(detail),
    request_id: 'upkeep',
  });
}
