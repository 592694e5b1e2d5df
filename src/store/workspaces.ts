import type { Db } from './database.ts';

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
