import { randomBytes } from 'node:crypto';
import { getTenantId, newId } from '@toolhost/credentials/ids';
import { type Selectable, sql } from 'kysely';
import { dayMs } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { encodeCursor, isInWorkspace, isOlderThan, type Page, toPage } from './page.ts';
import type { Tables } from './schema.ts';
import { getQuotaPeriod, takeFromQuotas } from './workspaces.ts';

/** Event of the audit log: who changed what, and when. `detail` is JSON without any secret. */
export type AuditEvent = Selectable<Tables['audit_events']>;

/** Maximum length of an event's detail. Input texts are bounded where they enter; this limit covers all others. */
export const maxDetailLength = 32 * 1024;
/** Details up to this length are always stored, regardless of their number. */
export const maxUnmeteredDetailLength = 1000;
/** Maximum number of characters of longer details that are stored per tenant and day (UTC). */
export const maxDetailCharsPerDay = 20_000_000;
/** Stored in place of a detail that is over the limit. */
const omittedDetail = '{"left_out":true}';

/** Inserts an audit event, in the transaction of the change that it records. */
export async function insertAuditEvent(db: Db, event: AuditEvent): Promise<void> {
  const detail = (await canStoreDetail(db, event)) ? event.detail : omittedDetail;
  await db
    .insertInto('audit_events')
    .values({ ...event, detail })
    .execute();
}

async function canStoreDetail(db: Db, { workspace_id: id, at, detail: { length } }: AuditEvent): Promise<boolean> {
  if (length <= maxUnmeteredDetailLength) return true;
  if (length > maxDetailLength) return false;
  const day = getQuotaPeriod('auditDetails', getTenantId(id), 'day', at);
  const [use] = await takeFromQuotas(db, [{ ...day, quota: maxDetailCharsPerDay, calls: length }]);
  return use?.granted === length;
}

/** Deletes events older than `before`. Takes no workspace, because retention is the same for all. */
export async function pruneAuditEvents(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'audit_events', key: ['id'], where: sql`at < ${before}` }, pause);
}

/**
 * Returns display names of actors: the current names of API keys, the names that login clients gave themselves, and,
 * with `shouldIncludeUsers`, the names or email addresses of users. Users are found without a workspace, because a
 * person may have left it since.
 */
export async function findDisplayNames(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  shouldIncludeUsers: boolean,
): Promise<ReadonlyMap<string, string>> {
  const distinctIds = [...new Set(ids), ''];
  const usersQuery = db.selectFrom('users').select(['id', 'name', 'email']).where('id', 'in', distinctIds);
  const users = shouldIncludeUsers ? await usersQuery.execute() : [];
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where(isInWorkspace(workspaceId))
    .where('id', 'in', distinctIds)
    .execute();
  const logins = await db
    .selectFrom('grants')
    // The person of a login that has ended is only known to `users`.
    .leftJoin('users', 'users.id', 'grants.person_id')
    .select(['grants.id', 'grants.client_name', 'grants.person', 'users.email', 'users.name'])
    .where(isInWorkspace(workspaceId))
    .where('grants.id', 'in', distinctIds)
    .execute();
  const formatLogin = ({ client_name: client, person, email, name }: (typeof logins)[number]) => {
    const personName = person ?? email ?? name;
    return shouldIncludeUsers && personName !== null ? `${client} (${personName})` : client;
  };
  const entries = [
    ...logins.map((login) => [login.id, formatLogin(login)] as const),
    ...users.map(({ id, name, email }) => [id, name ?? email] as const),
    ...keys.map((key) => [key.id, key.name] as const),
  ];
  return new Map(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Maximum number of detail characters in one page of events. A page ends early above it. */
const maxDetailCharsPerPage = 500_000;

export type AuditFilter = {
  actorId?: string | undefined;
  operation?: string | undefined;
  target?: string | undefined;
  since?: number | undefined;
  /** Includes only events before this time. */
  until?: number | undefined;
};

/** Maximum number of events that one page searches for matches of a filter. The next page continues after them. */
export const maxEventsSearchedPerPage = 25_000;

export async function findAuditEvents(
  db: Db,
  workspaceId: string,
  page: Page & AuditFilter,
): Promise<{ rows: AuditEvent[]; next: string | undefined; searchedTo?: number | undefined }> {
  const { actorId, operation, target, since, until, limit } = page;
  let candidates = db.selectFrom('audit_events').where('workspace_id', '=', workspaceId);
  if (since !== undefined) candidates = candidates.where('at', '>=', since);
  if (until !== undefined) candidates = candidates.where('at', '<', until);
  candidates = candidates.where(isOlderThan('at', page.after));
  const isFiltered = actorId !== undefined || operation !== undefined || target !== undefined;
  // Details are long, so they are read only for the events that are returned.
  const ordered = candidates.orderBy('at', 'desc').orderBy('id', 'desc');
  const searched = ordered.select(['id', 'at', 'actor_id', 'operation', 'target']).limit(maxEventsSearchedPerPage);
  let matching = db.selectFrom(searched.as('searched'));
  if (actorId !== undefined) matching = matching.where('actor_id', '=', actorId);
  if (operation !== undefined) matching = matching.where('operation', '=', operation);
  if (target !== undefined) matching = matching.where('target', '=', target);
  const ids = matching
    .select('id')
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1);
  const pageQuery = isFiltered
    ? db
        .selectFrom('audit_events')
        .where(isInWorkspace(workspaceId))
        .where('id', 'in', [...(await ids.execute()).map(({ id }) => id), ''])
    : candidates;
  const rows = await pageQuery
    .select(['id', 'workspace_id', 'at', 'actor_kind', 'actor_id', 'operation', 'target', 'request_id', 'detail'])
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute();
  const result = toPage(rows, Math.min(limit, countFittingRows(rows)), (row) => ({ at: row.at, id: row.id }));
  if (!isFiltered || result.next !== undefined) return result;
  const lastSearched = await ordered
    .select(['at', 'id'])
    .offset(maxEventsSearchedPerPage - 1)
    .limit(1)
    .executeTakeFirst();
  return { ...result, next: lastSearched && encodeCursor(lastSearched), searchedTo: lastSearched?.at };
}

/** Returns the number of leading rows that fit into a page. */
function countFittingRows(rows: readonly AuditEvent[]): number {
  let charsLeft = maxDetailCharsPerPage;
  const firstOverflow = rows.findIndex(({ detail }) => {
    charsLeft -= detail.length;
    return charsLeft < 0;
  });
  return firstOverflow < 0 ? rows.length : Math.max(1, firstOverflow);
}

/**
 * Maximum number of login events per server and day (UTC) that are stored individually. No workspace quota counts them,
 * and unverified callers may start and deny any number of logins.
 */
export const maxLoginEventsPerDay = { login: 10_000, loginRevoked: 10_000, loginFailed: 500 } as const;

/** Login event in the workspace that the login belongs to. */
export type LoginEventRow = AuditEvent & { operation: keyof typeof maxLoginEventsPerDay };

/**
 * Inserts a login event, in the transaction of the change that it records. Events above the daily maximum are combined
 * into one row with their number.
 */
export async function insertLoginEvent(db: Db, serverId: string, event: LoginEventRow): Promise<void> {
  const { workspace_id: workspaceId, operation } = event;
  const day = getQuotaPeriod(operation, `${workspaceId} ${serverId}`, 'day', event.at);
  const [use] = await takeFromQuotas(db, [{ ...day, quota: maxLoginEventsPerDay[operation], calls: 1 }]);
  if (use?.granted === 1) return insertAuditEvent(db, event);
  await incrementOverflowCount(db, {
    ...event,
    id: `aud_${operation}_${workspaceId}_${serverId}_${day.startsAt / dayMs}`,
  });
}

/** Needs no lock of its own, because the transaction has locked the row of the quota. */
async function incrementOverflowCount(db: Db, event: AuditEvent): Promise<void> {
  const existing = await db
    .selectFrom('audit_events')
    .select('detail')
    .where('workspace_id', '=', event.workspace_id)
    .where('id', '=', event.id)
    .executeTakeFirst();
  const { further = 0 } = JSON.parse(existing?.detail ?? '{}') as { further?: number };
  const detail = JSON.stringify({ further: further + 1 });
  await db
    .insertInto('audit_events')
    .values({ ...event, detail })
    .onConflict((c) => c.column('id').doUpdateSet({ detail }))
    .execute();
}

/** Number of logins of a workspace at one server that maintenance has ended, and the reason. */
export type EndedLogins = { workspaceId: string; slug: string; logins: number; reason: string };

/** Records in the workspace's audit log that maintenance has ended logins at a server. */
export function insertLoginsEndedEvent(
  db: Db,
  { workspaceId, slug, ...detail }: EndedLogins,
  at: number,
): Promise<void> {
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
