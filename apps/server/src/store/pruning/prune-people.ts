import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause, runInSteps } from '../delete-in-steps.ts';
import { transact } from '../engine/watched-dialect.ts';
import type { Tables } from '../schema.ts';

// No query here takes a workspace, because retention is the same in all of them.

/**
 * Maximum number of revoked and expired keys per workspace. Removing a member waits until everything that the
 * member's keys created is found.
 */
export const maxEndedKeys = 10_000;

const hasCreatedRowsIn = (table: 'api_keys' | 'servers' | 'secrets' | 'models') =>
  sql`exists (select 1 from ${sql.table(table)} as made where made.workspace_id = api_keys.workspace_id
    and made.created_by = api_keys.id ${sql.raw(table === 'servers' ? 'and made.deleted_at is null' : '')})`;

/** Condition that rows created with a key exist. Only the key identifies the person behind them. */
const hasCreatedRows = sql`(${sql.join((['api_keys', 'servers', 'secrets', 'models'] as const).map(hasCreatedRowsIn), sql` or `)})`;

/** Deletes keys that were revoked or expired before `before`, except keys that created rows which are still stored. */
export async function pruneKeys(db: Db, before: number, pause?: Pause): Promise<void> {
  for (const ended of [sql`revoked_at < ${before}`, sql`expires_at < ${before}`])
    await deleteInSteps(db, { table: 'api_keys', key: ['id'], where: sql`${ended} and not ${hasCreatedRows}` }, pause);
}

/** Deletes ended keys of each workspace beyond the newest `limit`, except keys that created stored rows. */
export async function pruneKeysOverLimit(db: Db, now: number, limit: number, pause?: Pause): Promise<void> {
  const hasEnded = sql`(revoked_at is not null or expires_at <= ${now})`;
  const { rows: overLimit } = await sql<{ id: string }>`select workspace_id as id from api_keys where ${hasEnded}
    group by workspace_id having count(*) > ${limit}`.execute(db);
  for (const { id } of overLimit) {
    const isEnded = sql`workspace_id = ${id} and ${hasEnded}`;
    const { rows } = await sql<{ at: number; id: string }>`select created_at as at, id from api_keys
      where ${isEnded} order by created_at desc, id desc limit 1 offset ${limit}`.execute(db);
    const [firstOver] = rows;
    if (!firstOver) continue;
    const where = sql`${isEnded} and (created_at, id) <= (${firstOver.at}, ${firstOver.id}) and not ${hasCreatedRows}`;
    await deleteInSteps(db, { table: 'api_keys', key: ['id'], where }, pause);
  }
}

/** Deletes invitations older than `before`. */
export async function pruneInvitations(db: Db, before: number, pause?: Pause): Promise<void> {
  const where = sql`created_at < ${before}`;
  await deleteInSteps(db, { table: 'invitations', key: ['workspace_id', 'email'], where }, pause);
}

/** Tables whose rows prevent the deletion of an empty workspace: created objects, and records of activity. */
const contentTables = ['servers', 'api_keys', 'models', 'invitations', 'grants', 'audit_events', 'calls'] as const;

/**
 * Deletes empty workspaces whose members were last seen before `before`, and people who were last seen before it and
 * are in no workspace. A workspace without members belongs to the operator, and is retained.
 */
export async function prunePeople(db: Kysely<Tables>, before: number, pause?: Pause): Promise<void> {
  await runInSteps((maxRows) => deleteEmptyWorkspaces(db, before, maxRows), pause);
  await pruneDeletedWorkspaces(db, before, pause);
  const where = sql`last_seen_at < ${before}
    and not exists (select 1 from members where user_id = users.id)
    and not exists (select 1 from sessions where user_id = users.id)
    and not exists (select 1 from grants where person_id = users.id and revoked_at is null)`;
  await deleteInSteps(db, { table: 'users', key: ['id'], where }, pause);
}

/** Deletes the remains of a deleted workspace: long rows immediately, and its own row when nothing else is left. */
async function pruneDeletedWorkspaces(db: Db, before: number, pause?: Pause): Promise<void> {
  const isDeleted = sql`workspace_id in (select id from workspaces where deleted_at is not null)`;
  await deleteInSteps(
    db,
    { table: 'server_versions', key: ['server_id', 'version'], where: isDeleted, maxRows: 50 },
    pause,
  );
  await deleteInSteps(db, { table: 'imports', key: ['id'], where: isDeleted, maxRows: 50 }, pause);
  const remainingTables = [...contentTables, 'call_counts', 'usage_counts', 'notifications'] as const;
  const isEmptied = remainingTables.map(
    (table) => sql`not exists (select 1 from ${sql.table(table)} where workspace_id = workspaces.id)`,
  );
  const where = sql`deleted_at < ${before} and ${sql.join(isEmptied, sql` and `)}`;
  await deleteInSteps(db, { table: 'workspaces', key: ['id'], where }, pause);
}

async function deleteEmptyWorkspaces(db: Kysely<Tables>, before: number, maxRows: number): Promise<number> {
  const isEmpty = contentTables.map(
    (table) => sql`not exists (select 1 from ${sql.table(table)} where workspace_id = workspaces.id)`,
  );
  const members = sql`from members join users on users.id = members.user_id where members.workspace_id = workspaces.id`;
  const isUnused = sql`created_at < ${before} and ${sql.join(isEmpty, sql` and `)}
    and exists (select 1 ${members})
    and not exists (select 1 ${members} and exists (select 1 from sessions where user_id = users.id))
    and not exists (select 1 ${members} and coalesce(users.last_seen_at, users.created_at) >= ${before})`;
  const { rows } = await sql<{ id: string }>`select id from workspaces where ${isUnused} limit ${maxRows}`.execute(db);
  for (const { id } of rows) await transact(db, (transaction) => deleteUnused(transaction, id, isUnused));
  return rows.length;
}

/** Deletes a workspace, unless one of its members has returned since it was selected. */
async function deleteUnused(db: Db, id: string, isUnused: RawBuilder<unknown>): Promise<void> {
  // A person who signs in first changes this row, and so waits for the end of this transaction, or is visible to it.
  await sql`update users set last_seen_at = last_seen_at
    where id in (select user_id from members where workspace_id = ${id})`.execute(db);
  const { rows } = await sql`select 1 from workspaces where id = ${id} and ${isUnused}`.execute(db);
  if (rows.length === 0) return;
  await db.deleteFrom('members').where('workspace_id', '=', id).execute();
  await db.deleteFrom('role_groups').where('workspace_id', '=', id).execute();
  await db.deleteFrom('webhooks').where('workspace_id', '=', id).execute();
  await db.deleteFrom('usage_counts').where('workspace_id', '=', id).execute();
  await db.deleteFrom('call_counts').where('workspace_id', '=', id).execute();
  await db.deleteFrom('workspaces').where('id', '=', id).execute();
}
