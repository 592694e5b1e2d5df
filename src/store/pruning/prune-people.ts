import { type Kysely, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, inSteps, type Pause } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';
import { transact } from '../transact.ts';

// No query here names a workspace: retention is the same in all of them.

/** Deletes keys that were revoked or expired before `before`, except those that made a key which is still stored. */
export async function pruneKeys(db: Db, before: number, pause?: Pause): Promise<void> {
  const hasMade = sql`exists (select 1 from api_keys as made
    where made.workspace_id = api_keys.workspace_id and made.created_by = api_keys.id)`;
  for (const ended of [sql`revoked_at < ${before}`, sql`expires_at < ${before}`])
    await deleteInSteps(db, { table: 'api_keys', key: ['id'], where: sql`${ended} and not ${hasMade}` }, pause);
}

/** Deletes invitations from before `before`. */
export async function pruneInvitations(db: Db, before: number, pause?: Pause): Promise<void> {
  const where = sql`created_at < ${before}`;
  await deleteInSteps(db, { table: 'invitations', key: ['workspace_id', 'email'], where }, pause);
}

/** Tables whose rows keep a workspace: things that people made in it, and records of what was done there. */
const contents = ['servers', 'api_keys', 'invitations', 'grants', 'audit_events', 'calls'] as const;

/**
 * Deletes empty workspaces whose members were last seen before `before`, and people who were last seen before it and are
 * in no workspace. A workspace without members belongs to the operator, and stays.
 */
export async function prunePeople(db: Kysely<Tables>, before: number, pause?: Pause): Promise<void> {
  await inSteps(async (most) => deleteEmptyWorkspaces(db, before, most), pause);
  const where = sql`last_seen_at < ${before}
    and not exists (select 1 from members where user_id = users.id)
    and not exists (select 1 from sessions where user_id = users.id)`;
  await deleteInSteps(db, { table: 'users', key: ['id'], where }, pause);
}

async function deleteEmptyWorkspaces(db: Kysely<Tables>, before: number, most: number): Promise<number> {
  const isEmpty = contents.map(
    (table) => sql`not exists (select 1 from ${sql.table(table)} where workspace_id = workspaces.id)`,
  );
  const members = sql`from members join users on users.id = members.user_id where members.workspace_id = workspaces.id`;
  const { rows } = await sql<{ id: string }>`
    select id from workspaces
    where created_at < ${before} and ${sql.join(isEmpty, sql` and `)}
      and exists (select 1 ${members})
      and not exists (select 1 ${members} and exists (select 1 from sessions where user_id = users.id))
      and not exists (select 1 ${members} and coalesce(users.last_seen_at, users.created_at) >= ${before})
    limit ${most}`.execute(db);
  for (const { id } of rows) {
    await transact(db, async (transaction) => {
      await transaction.deleteFrom('members').where('workspace_id', '=', id).execute();
      await transaction.deleteFrom('call_counts').where('workspace_id', '=', id).execute();
      await transaction.deleteFrom('workspaces').where('id', '=', id).execute();
    });
  }
  return rows.length;
}
