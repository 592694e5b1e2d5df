import { randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { newId, tenantOf } from '../domain/ids.ts';
import { dayMs } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { encodeCursor, isOf, olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';
import { periodOf, takeOfQuotas } from './workspaces.ts';

/** Who changed what, when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

/** Longest detail of an event. Texts of an input in it are bounded where they enter; this holds for those that are not. */
export const mostOfDetail = 32 * 1024;
/** Details that are no longer than this are kept however many there are. */
export const shortDetail = 1000;
/** Most characters of longer details that a day (UTC) keeps of a tenant. */
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

async function isKept(db: Db, { workspace_id: id, at, detail: { length } }: AuditEvent): Promise<boolean> {
  if (length <= shortDetail) return true;
  if (length > mostOfDetail) return false;
  const day = periodOf('auditDetails', tenantOf(id), 'day', at);
  const [use] = await takeOfQuotas(db, [{ ...day, quota: mostDetailsInDay, calls: length }]);
  return use?.granted === length;
}

/** Deletes events from before `before`. No workspace: retention is the same for all. */
export async function pruneAuditEvents(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'audit_events', key: ['id'], where: sql`at < ${before}` }, pause);
}

/**
 * Current names of the API keys among these ids, what the clients of logins called themselves, and `withPeople` the names
 * or addresses of users, who are found without a workspace, because a person may have left it since.
 */
export async function namesOfActors(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  withPeople: boolean,
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids), ''];
  const people = db.selectFrom('users').select(['id', 'name', 'email']).where('id', 'in', wanted);
  const users = withPeople ? await people.execute() : [];
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where(isOf(workspaceId))
    .where('id', 'in', wanted)
    .execute();
  const logins = await db
    .selectFrom('grants')
    .select(['id', 'client_name'])
    .where(isOf(workspaceId))
    .where('id', 'in', wanted)
    .execute();
  const named = [
    ...logins.map((login) => [login.id, login.client_name] as const),
    ...users.map(({ id, name, email }) => [id, name ?? email] as const),
    ...keys.map((key) => [key.id, key.name] as const),
  ];
  return new Map(named.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Most characters of details in one page of events; a page ends early above it. */
const mostOfPage = 500_000;

export type AuditFilter = {
  actorId?: string | undefined;
  operation?: string | undefined;
  target?: string | undefined;
  since?: number | undefined;
  /** Only events before this time. */
  until?: number | undefined;
};

/** Most events that one page reads to find those of a filter; the next page continues after them. */
export const eventsSearchedAtOnce = 25_000;

export async function findAuditEvents(
  db: Db,
  workspaceId: string,
  page: Page & AuditFilter,
): Promise<{ rows: AuditEvent[]; next: string | undefined; searchedTo?: number | undefined }> {
  const { actorId, operation, target, since, until, limit } = page;
  let candidates = db.selectFrom('audit_events').where('workspace_id', '=', workspaceId);
  if (since !== undefined) candidates = candidates.where('at', '>=', since);
  if (until !== undefined) candidates = candidates.where('at', '<', until);
  candidates = candidates.where(olderThan('at', page.after));
  const isFiltered = actorId !== undefined || operation !== undefined || target !== undefined;
  // The details are long, so they are read only of what is shown.
  const ordered = candidates.orderBy('at', 'desc').orderBy('id', 'desc');
  const searched = ordered.select(['id', 'at', 'actor_id', 'operation', 'target']).limit(eventsSearchedAtOnce);
  let wanted = db.selectFrom(searched.as('searched'));
  if (actorId !== undefined) wanted = wanted.where('actor_id', '=', actorId);
  if (operation !== undefined) wanted = wanted.where('operation', '=', operation);
  if (target !== undefined) wanted = wanted.where('target', '=', target);
  const ids = wanted
    .select('id')
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1);
  const found = isFiltered
    ? db
        .selectFrom('audit_events')
        .where(isOf(workspaceId))
        .where('id', 'in', [...(await ids.execute()).map(({ id }) => id), ''])
    : candidates;
  const rows = await found
    .select(['id', 'workspace_id', 'at', 'actor_kind', 'actor_id', 'operation', 'target', 'request_id', 'detail'])
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute();
  const result = pageOf(rows, Math.min(limit, fitting(rows)), (row) => ({ at: row.at, id: row.id }));
  if (!isFiltered || result.next !== undefined) return result;
  const last = await ordered
    .select(['at', 'id'])
    .offset(eventsSearchedAtOnce - 1)
    .limit(1)
    .executeTakeFirst();
  return { ...result, next: last && encodeCursor(last), searchedTo: last?.at };
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
