import { type RawBuilder, sql } from 'kysely';
import type { SetQuotas } from '../domain/quotas.ts';
import { dayMs, minuteMs } from './calls/call-counts.ts';
import type { Db } from './db.ts';

/** The quotas that the operator set for a workspace. */
export async function findSetQuotas(db: Db, workspaceId: string): Promise<SetQuotas> {
  const row = await db.selectFrom('workspaces').select('quotas').where('id', '=', workspaceId).executeTakeFirst();
  return parsed(row?.quotas);
}

export async function setQuotas(db: Db, workspaceId: string, quotas: SetQuotas): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ quotas: JSON.stringify(quotas) })
    .where('id', '=', workspaceId)
    .execute();
}

const parsed = (text: string | null | undefined): SetQuotas => (text ? (JSON.parse(text) as SetQuotas) : {});

/** Number of changes of a workspace in a minute and in a day (UTC). */
export type Writes = { inMinute: number; inDay: number };

const startOf = (at: number, span: number) => at - (at % span);

/**
 * Counts a change of a workspace, in the transaction that makes it. This updates the row of the workspace and so
 * serialises its changes: a count that is compared with a quota stays right until the end of the transaction.
 */
export async function countWrite(
  db: Db,
  workspaceId: string,
  at: number,
): Promise<{ writes: Writes; quotas: SetQuotas }> {
  const [minute, day] = [startOf(at, minuteMs), startOf(at, dayMs)];
  const row = await db
    .updateTable('workspaces')
    .set({
      writes_at: minute,
      writes: sql<number>`case when writes_at = ${minute} then writes + 1 else 1 end`,
      day_writes_at: day,
      day_writes: sql<number>`case when day_writes_at = ${day} then day_writes + 1 else 1 end`,
    })
    .where('id', '=', workspaceId)
    .returning(['writes', 'day_writes', 'quotas'])
    .executeTakeFirst();
  return { writes: { inMinute: row?.writes ?? 1, inDay: row?.day_writes ?? 1 }, quotas: parsed(row?.quotas) };
}

/** Changes in the minute and the day of `at`. */
export async function writesAt(db: Db, workspaceId: string, at: number): Promise<Writes> {
  const row = await db.selectFrom('workspaces').selectAll().where('id', '=', workspaceId).executeTakeFirst();
  return {
    inMinute: row?.writes_at === startOf(at, minuteMs) ? (row.writes ?? 0) : 0,
    inDay: row?.day_writes_at === startOf(at, dayMs) ? (row.day_writes ?? 0) : 0,
  };
}

/** Number of servers, and the bytes of their configurations and kept versions. */
export type StoredServers = { servers: number; bytes: number };

export async function countServers(db: Db, workspaceId: string): Promise<StoredServers> {
  const row = await db
    .selectFrom('servers')
    .select((e) => e.fn.countAll<number>().as('servers'))
    .select(sql<number>`cast(coalesce(sum(stored_bytes), 0) as bigint)`.as('bytes'))
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow();
  return { servers: Number(row.servers), bytes: Number(row.bytes) };
}

/** Bytes of a server's configuration and kept versions, as far as they were measured. */
export async function bytesOfServer(db: Db, server: { workspaceId: string; id: string }): Promise<number> {
  const row = await db
    .selectFrom('servers')
    .select('stored_bytes')
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .executeTakeFirst();
  return row?.stored_bytes ?? 0;
}

/** Number of slugs that the workspace occupies: those of its servers, deleted ones included. */
export async function countSlugs(db: Db, workspaceId: string): Promise<number> {
  return counted(db, sql`servers where workspace_id = ${workspaceId}`);
}

export async function countSecrets(db: Db, workspaceId: string): Promise<number> {
  return counted(db, sql`secrets where workspace_id = ${workspaceId}`);
}

/** Number of valid keys. */
export async function countKeys(db: Db, workspaceId: string, now: number): Promise<number> {
  const isGood = sql`revoked_at is null and (expires_at is null or expires_at > ${now})`;
  return counted(db, sql`api_keys where workspace_id = ${workspaceId} and ${isGood}`);
}

/** Number of members and invitations. */
export async function countPeople(db: Db, workspaceId: string): Promise<number> {
  const members = await counted(db, sql`members where workspace_id = ${workspaceId}`);
  return members + (await counted(db, sql`invitations where workspace_id = ${workspaceId}`));
}

async function counted(db: Db, from: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${from}`.execute(db);
  return Number(rows[0]?.count);
}
