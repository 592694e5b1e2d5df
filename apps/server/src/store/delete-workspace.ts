import type { Db } from './db.ts';
import { moveSessionsFrom } from './people/sessions.ts';
import { tombstone } from './servers/deleted-servers.ts';

export async function findMemberIds(db: Db, workspaceId: string): Promise<string[]> {
  const rows = await db.selectFrom('members').select('user_id').where('workspace_id', '=', workspaceId).execute();
  return rows.map((row) => row.user_id);
}

/**
 * Tables whose rows are used to serve calls or to admit people. A workspace has at most a few thousand rows in each.
 */
const immediatelyDeletedTables = [
  'secrets',
  'client_tokens',
  'person_values',
  'import_checks',
  'webhooks',
  'models',
  'invitations',
  'sessions',
  'role_groups',
  'members',
] as const;

/** Deletes everything that is served and every access. Maintenance deletes the remaining rows. */
export async function deleteWorkspaceContents(db: Db, workspaceId: string, deletedAt: number): Promise<void> {
  await moveSessionsFrom(db, workspaceId);
  for (const table of immediatelyDeletedTables)
    await db.deleteFrom(table).where('workspace_id', '=', workspaceId).execute();
  await db
    .updateTable('servers')
    .set({ deleted_at: deletedAt, updated_at: deletedAt, capture_until: null, ...tombstone })
    .where('workspace_id', '=', workspaceId)
    // Includes deleted servers that could still be restored.
    .where('summary', 'is not', null)
    .execute();
  await db
    .updateTable('api_keys')
    .set({ revoked_at: deletedAt })
    .where('workspace_id', '=', workspaceId)
    .where('revoked_at', 'is', null)
    .execute();
  await db.updateTable('workspaces').set({ name: '', deleted_at: deletedAt }).where('id', '=', workspaceId).execute();
}
