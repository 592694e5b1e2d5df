import { getPersonTenantId, getTenantId, tenantIdLength } from '@toolhost/credentials/ids';
import type { ConfiguredLimits } from '@toolhost/limits/call-limits';
import { type RawBuilder, sql } from 'kysely';
import type { ConfiguredQuotas } from '../quotas.ts';
import { dayMs, minuteMs } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';

export type Workspace = { id: string; name: string };

export async function insertWorkspace(db: Db, workspace: Workspace & { at: number }): Promise<void> {
  const { id, name, at } = workspace;
  await db
    .insertInto('workspaces')
    .values({ id, name, created_at: at })
    .onConflict((c) => c.column('id').doNothing())
    .execute();
}

export async function findWorkspace(db: Db, id: string): Promise<Workspace | undefined> {
  return db.selectFrom('workspaces').select(['id', 'name']).where('id', '=', id).executeTakeFirst();
}

export async function renameWorkspace(db: Db, id: string, name: string): Promise<void> {
  await db.updateTable('workspaces').set({ name }).where('id', '=', id).execute();
}

/** Counts the stored workspaces that a person created: those in use, and all including deleted ones. */
export async function countWorkspacesCreatedBy(db: Db, userId: string): Promise<{ inUse: number; all: number }> {
  const row = await db
    .selectFrom('workspaces')
    .select(sql<number>`count(*) filter (where deleted_at is null)`.as('in_use'))
    .select(sql<number>`count(*)`.as('all'))
    .where(isInTenant(getPersonTenantId(userId)))
    .executeTakeFirstOrThrow();
  return { inUse: Number(row.in_use), all: Number(row.all) };
}

/** Returns the limits that the operator set for a workspace. */
export async function findWorkspaceLimits(db: Db, id: string): Promise<ConfiguredLimits> {
  const row = await db.selectFrom('workspaces').select('limits').where('id', '=', id).executeTakeFirst();
  return row?.limits ? (JSON.parse(row.limits) as ConfiguredLimits) : {};
}

export async function updateWorkspaceLimits(db: Db, id: string, limits: ConfiguredLimits): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ limits: JSON.stringify(limits) })
    .where('id', '=', id)
    .execute();
}

/** Returns the quotas that the operator set for a workspace. */
export async function findSetQuotas(db: Db, workspaceId: string): Promise<ConfiguredQuotas> {
  const row = await db.selectFrom('workspaces').select('quotas').where('id', '=', workspaceId).executeTakeFirst();
  return row?.quotas ? (JSON.parse(row.quotas) as ConfiguredQuotas) : {};
}

export async function setQuotas(db: Db, workspaceId: string, quotas: ConfiguredQuotas): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ quotas: JSON.stringify(quotas) })
    .where('id', '=', workspaceId)
    .execute();
}

/** Number of changes per minute and per day (UTC) in all workspaces of a tenant. */
export type WriteCounts = { inMinute: number; inDay: number };

const getSpanStart = (at: number, span: number) => at - (at % span);

/**
 * Returns the condition that a workspace belongs to the same tenant, deleted or not. The literal must match the index.
 */
function isInTenant(workspaceId: string): RawBuilder<boolean> {
  return sql<boolean>`substr(id, 1, ${sql.lit(tenantIdLength)}) = ${getTenantId(workspaceId)}`;
}

/**
 * Counts a change of a workspace, in the transaction that makes it. Updating the workspace row serializes the
 * workspace's changes, so a count that is compared with a quota stays valid until the end of the transaction.
 */
export async function countWrite(
  db: Db,
  workspaceId: string,
  at: number,
): Promise<{ writes: WriteCounts; quotas: ConfiguredQuotas }> {
  const [minute, day] = [getSpanStart(at, minuteMs), getSpanStart(at, dayMs)];
  const row = await db
    .updateTable('workspaces')
    .set({
      writes_at: minute,
      writes: sql<number>`case when writes_at = ${minute} then writes + 1 else 1 end`,
      day_writes_at: day,
      day_writes: sql<number>`case when day_writes_at = ${day} then day_writes + 1 else 1 end`,
    })
    .where('id', '=', workspaceId)
    .returning('quotas')
    .executeTakeFirst();
  const quotas = row?.quotas ? (JSON.parse(row.quotas) as ConfiguredQuotas) : {};
  return { writes: await countWritesAt(db, workspaceId, at), quotas };
}

/** Returns the number of changes in the minute and the day of `at`, including workspaces that were deleted since. */
export async function countWritesAt(db: Db, workspaceId: string, at: number): Promise<WriteCounts> {
  const [minute, day] = [getSpanStart(at, minuteMs), getSpanStart(at, dayMs)];
  const row = await db
    .selectFrom('workspaces')
    .select(sql<number>`coalesce(sum(case when writes_at = ${minute} then writes end), 0)`.as('minute'))
    .select(sql<number>`coalesce(sum(case when day_writes_at = ${day} then day_writes end), 0)`.as('day'))
    .where(isInTenant(workspaceId))
    .executeTakeFirstOrThrow();
  return { inMinute: Number(row.minute), inDay: Number(row.day) };
}

/**
 * Number of servers, and bytes of their configurations and stored versions. A deleted server that is still stored
 * counts only toward the bytes.
 */
export type StoredServers = { servers: number; bytes: number };

export async function countServers(db: Db, workspaceId: string): Promise<StoredServers> {
  const row = await db
    .selectFrom('servers')
    .select(sql<number>`count(*) filter (where deleted_at is null)`.as('servers'))
    .select(sql<number>`cast(coalesce(sum(stored_bytes), 0) as bigint)`.as('bytes'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow();
  return { servers: Number(row.servers), bytes: Number(row.bytes) };
}

/** Returns the bytes of a server's configuration and stored versions, as far as they were measured. */
export async function getServerBytes(db: Db, server: { workspaceId: string; id: string }): Promise<number> {
  const row = await db
    .selectFrom('servers')
    .select('stored_bytes')
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .executeTakeFirst();
  return row?.stored_bytes ?? 0;
}

/** Counts the slugs that the tenant occupies, including those of deleted servers and deleted workspaces. */
export async function countSlugs(db: Db, workspaceId: string): Promise<number> {
  return countRows(db, sql`servers where workspace_id in (select id from workspaces where ${isInTenant(workspaceId)})`);
}

export async function countSecrets(db: Db, workspaceId: string): Promise<number> {
  return countRows(db, sql`secrets where workspace_id = ${workspaceId}`);
}

/** Counts the valid keys. */
export async function countKeys(db: Db, workspaceId: string, now: number): Promise<number> {
  const isValid = sql`revoked_at is null and (expires_at is null or expires_at > ${now})`;
  return countRows(db, sql`api_keys where workspace_id = ${workspaceId} and ${isValid}`);
}

/** Counts the members and invitations. */
export async function countMembersAndInvitations(db: Db, workspaceId: string): Promise<number> {
  const members = await countRows(db, sql`members where workspace_id = ${workspaceId}`);
  return members + (await countRows(db, sql`invitations where workspace_id = ${workspaceId}`));
}

async function countRows(db: Db, source: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${source}`.execute(db);
  return Number(rows[0]?.count);
}

/**
 * One minute or day (UTC) of a quota. A quota counts the calls of a server, a workspace, a key, or the unverified callers
 * of a server; or the login events at a server, the bytes of new logins of a workspace or a server, or the details in
 * its audit log. `startsAt` is in epoch ms.
 */
export type QuotaPeriod = { kind: string; ref: string; span: 'minute' | 'day'; startsAt: number };

/** Calls, or other counted units, that a process requests from a quota. */
export type QuotaRequest = QuotaPeriod & { quota: number; calls: number };
/** Number of calls granted, and the total that all processes have taken, including these. */
export type QuotaGrant = { granted: number; taken: number };

const spanMs = { minute: minuteMs, day: dayMs };

/** Returns the period of a quota that contains `at`. */
export function getQuotaPeriod<Kind extends string>(
  kind: Kind,
  ref: string,
  span: QuotaPeriod['span'],
  at: number,
): QuotaPeriod & { kind: Kind } {
  return { kind, ref, span, startsAt: getSpanStart(at, spanMs[span]) };
}

/** Retention of a period by its span, in ms: long enough that it has ended by every clock. */
const retentionMs = { minute: 60 * minuteMs, day: 2 * dayMs };

// No query here takes a workspace, because the ids come from calls that were just authorized.

/**
 * Takes calls from quotas, fewer if fewer are left. Results are in the order of the list. All processes together never
 * exceed a quota.
 */
export async function takeFromQuotas(db: Db, requests: readonly QuotaRequest[]): Promise<QuotaGrant[]> {
  const rows = await db
    .insertInto('call_quota_use')
    .values(
      sortByKey(requests).map((request) => {
        const calls = Math.min(request.calls, request.quota);
        return { ...toColumns(request), quota: request.quota, calls, granted: calls };
      }),
    )
    .onConflict((conflict) =>
      conflict.columns(['kind', 'ref', 'span', 'starts_at']).doUpdateSet({
        quota: sql<number>`excluded.quota`,
        calls: sql<number>`call_quota_use.calls + ${grantedSql}`,
        granted: grantedSql,
      }),
    )
    .returning(['kind', 'ref', 'span', 'starts_at', 'calls', 'granted'])
    .execute();
  const grants = new Map(
    rows.map((row) => [
      toKey({ ...row, startsAt: Number(row.starts_at) }),
      { granted: Number(row.granted), taken: Number(row.calls) },
    ]),
  );
  return requests.map((request) => grants.get(toKey(request)) ?? { granted: 0, taken: request.quota });
}

/** Grants the remainder of a quota if less is left than requested. */
const grantedSql = sql<number>`case
  when call_quota_use.calls + excluded.granted <= excluded.quota then excluded.granted
  when call_quota_use.calls >= excluded.quota then 0
  else excluded.quota - call_quota_use.calls
end`;

/** Adds calls that were made without the database, or returns calls that were taken but not made (negative). */
export async function settleQuotas(db: Db, uses: readonly (QuotaPeriod & { calls: number })[]): Promise<void> {
  await db
    .insertInto('call_quota_use')
    .values(
      sortByKey(uses).map((use) => ({
        ...toColumns(use),
        quota: 0,
        calls: Math.max(0, use.calls),
        granted: use.calls,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['kind', 'ref', 'span', 'starts_at']).doUpdateSet({
        calls: sql<number>`call_quota_use.calls + excluded.granted`,
      }),
    )
    .execute();
}

function toColumns({ kind, ref, span, startsAt }: QuotaPeriod) {
  return { kind, ref, span, starts_at: startsAt };
}

/** Sorts by key, so that two writers cannot deadlock. */
function sortByKey<Period extends QuotaPeriod>(periods: readonly Period[]): Period[] {
  return periods.toSorted((a, b) => (toKey(a) < toKey(b) ? -1 : 1));
}

function toKey({ kind, ref, span, startsAt }: QuotaPeriod): string {
  return `${kind} ${ref} ${span} ${startsAt}`;
}

/** Deletes periods that are past their retention. */
export async function pruneQuotaUse(db: Db, now: number, pause?: Pause): Promise<void> {
  const key = ['kind', 'ref', 'span', 'starts_at'];
  for (const span of ['minute', 'day'] as const) {
    const where = sql`span = ${span} and starts_at < ${now - retentionMs[span]}`;
    await deleteInSteps(db, { table: 'call_quota_use', key, where }, pause);
  }
}
