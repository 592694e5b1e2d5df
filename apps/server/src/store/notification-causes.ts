import { type RawBuilder, sql } from 'kysely';
import { minuteMs, startOfPeriod } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import type { CallRow } from './schema.ts';
import type { CheckCounts } from './servers/imports.ts';

/** Maximum number of rows per kind of event. Bounds each list regardless of the amount of data. */
const maxRowsPerKind = 50;
/** Maximum number of calls of a workspace that are searched for the newest calls of servers. */
const maxSearchedCalls = 20_000;

/** Finds servers with at least `minCalls` calls in whole minutes, more than half of which failed for any reason. */
export async function findFailingServers(
  db: Db,
  workspaceId: string,
  { from, minCalls }: { from: number; minCalls: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('call_counts')
    .select('slug')
    .where('workspace_id', '=', workspaceId)
    .where('width', '=', minuteMs)
    .where('at', '>=', startOfPeriod(from, minuteMs))
    .where('slug', '<>', '')
    .groupBy('slug')
    .having(sql<boolean>`sum(calls) >= ${minCalls} and sum(errors) * 2 > sum(calls)`)
    .orderBy('slug')
    .limit(maxRowsPerKind)
    .execute();
  return rows.map(({ slug }) => slug);
}

export type EndedCall = Pick<CallRow, 'outcome' | 'upstream_status' | 'caller_kind'>;

/**
 * Returns the newest calls of servers since `from`. They are searched among the newest calls of their workspace, which
 * are read only once.
 */
export async function findNewestCalls(
  db: Db,
  workspaceId: string,
  slugs: readonly string[],
  from: number,
): Promise<Map<string, EndedCall[]>> {
  const newest = db
    .selectFrom('calls')
    .select(['slug', 'outcome', 'upstream_status', 'caller_kind'])
    .where('workspace_id', '=', workspaceId)
    .where('started_at', '>=', from)
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(maxSearchedCalls)
    .as('newest');
  const rows = await db.selectFrom(newest).selectAll().where('slug', 'in', slugs).execute();
  return Map.groupBy(rows, ({ slug }) => slug);
}

type NamedKey = { id: string; name: string };

/**
 * Selects active keys without a notification that has this `dedupe`, as `createOneTimeNotification` formats it, which
 * ends with a space if there is no variant. Keys with a notification would use up the limit, and hide the others for as
 * long as they exist.
 */
function selectUnnotifiedKeys(db: Db, workspaceId: string, dedupe: RawBuilder<string>) {
  const query = db.selectFrom('api_keys').where('workspace_id', '=', workspaceId).where('revoked_at', 'is', null);
  const notified = db.selectFrom('notifications').select('id').where('workspace_id', '=', workspaceId);
  return query
    .where((e) => e.not(e.exists(notified.where('dedupe', '=', dedupe))))
    .orderBy('id')
    .limit(maxRowsPerKind);
}

/** Finds keys that expire within `withinMs` and were created with a longer lifetime. */
export async function findExpiringKeys(
  db: Db,
  workspaceId: string,
  { now, withinMs }: { now: number; withinMs: number },
): Promise<(NamedKey & { expiresAt: number })[]> {
  const rows = await selectUnnotifiedKeys(
    db,
    workspaceId,
    sql`'key.expiring ' || api_keys.id || ' ' || api_keys.expires_at`,
  )
    .select(['id', 'name', 'expires_at'])
    .where('expires_at', '>', now)
    .where('expires_at', '<=', now + withinMs)
    .where(sql<boolean>`expires_at - created_at > ${withinMs}`)
    .execute();
  return rows.map(({ id, name, expires_at }) => ({ id, name, expiresAt: expires_at ?? now }));
}

/** Finds active keys that were last used, or created, before `unusedSince`. */
export async function findUnusedKeys(
  db: Db,
  workspaceId: string,
  { now, unusedSince }: { now: number; unusedSince: number },
): Promise<NamedKey[]> {
  return selectUnnotifiedKeys(db, workspaceId, sql`'key.unused ' || api_keys.id || ' '`)
    .select(['id', 'name'])
    .where(sql<boolean>`coalesce(last_used_at, created_at) < ${unusedSince}`)
    .where((e) => e.or([e('expires_at', 'is', null), e('expires_at', '>', now)]))
    .execute();
}

/** Counts the logins that providers have ended since `since`, by existing server. */
export async function countBrokenLogins(
  db: Db,
  workspaceId: string,
  since: number,
): Promise<{ slug: string; logins: number }[]> {
  const rows = await db
    .selectFrom('grants')
    .innerJoin('servers', 'servers.id', 'grants.server_id')
    .select(['servers.slug', (e) => e.fn.countAll<number>().as('logins')])
    .where('grants.workspace_id', '=', workspaceId)
    .where('broken_at', '>=', since)
    .where('revoked_at', 'is', null)
    .where('servers.deleted_at', 'is', null)
    .groupBy('servers.slug')
    .orderBy('servers.slug')
    .limit(maxRowsPerKind)
    .execute();
  return rows.map(({ slug, logins }) => ({ slug, logins: Number(logins) }));
}

export type ChangedServer = { id: string; slug: string; documentHash: string; counts: CheckCounts };

/** Finds servers whose watched description had changes at the last check. */
export async function findChangedServers(db: Db, workspaceId: string): Promise<ChangedServer[]> {
  const rows = await db
    .selectFrom('import_checks')
    .innerJoin('servers', 'servers.id', 'import_checks.server_id')
    .select(['servers.id', 'servers.slug', 'import_checks.document_hash', 'import_checks.counts'])
    .where('import_checks.workspace_id', '=', workspaceId)
    .where('import_checks.due_at', 'is not', null)
    // A check without changes has only zeros as counts. Most checks do, and they must not use up the limit.
    .where(sql<boolean>`replace(import_checks.counts, ':0', '') like '%:%'`)
    .orderBy('servers.id')
    .where('servers.deleted_at', 'is', null)
    .limit(maxRowsPerKind)
    .execute();
  return rows.map(({ id, slug, document_hash, counts }) => ({
    id,
    slug,
    documentHash: document_hash ?? '',
    counts: JSON.parse(counts ?? '{}') as CheckCounts,
  }));
}

export type UsedQuota = { kind: 'workspace' | 'server' | 'key'; name: string; calls: number; quota: number };

/** Finds daily call quotas that are used to `minPercent` percent or more. `dayStart` is the start of the day. */
export async function findUsedCallQuotas(
  db: Db,
  workspaceId: string,
  { dayStart, minPercent }: { dayStart: number; minPercent: number },
): Promise<UsedQuota[]> {
  const owners = {
    workspace: sql`select id as ref, name from workspaces where id = ${workspaceId}`,
    server: sql`select id as ref, slug as name from servers where workspace_id = ${workspaceId} and deleted_at is null`,
    key: sql`select id as ref, name from api_keys where workspace_id = ${workspaceId} and revoked_at is null`,
  };
  const quotas: UsedQuota[] = [];
  for (const kind of ['workspace', 'server', 'key'] as const) {
    const { rows } = await sql<UsedQuota>`
      select ${kind} as kind, owner.name, used.calls, used.quota from (${owners[kind]}) as owner
      join call_quota_use as used on used.kind = ${kind} and used.ref = owner.ref and used.span = 'day'
        and used.starts_at = ${dayStart}
      where used.quota > 0 and used.calls * 100 >= used.quota * ${minPercent}
      order by owner.ref limit ${maxRowsPerKind}`.execute(db);
    quotas.push(...rows.map((row) => ({ ...row, calls: Number(row.calls), quota: Number(row.quota) })));
  }
  return quotas;
}
