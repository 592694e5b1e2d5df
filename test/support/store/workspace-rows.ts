import type { Db } from '../../../apps/server/src/store/db.ts';

/** Stores a workspace, the smallest row that refers to no other row. */
export async function insertWorkspace(db: Db, id: string): Promise<void> {
  await db.insertInto('workspaces').values({ id, name: '', created_at: 0 }).execute();
}

/** Returns the ids of all stored workspaces. */
export async function findWorkspaceIds(db: Db): Promise<string[]> {
  return (await db.selectFrom('workspaces').select('id').execute()).map(({ id }) => id);
}
