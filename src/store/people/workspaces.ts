import type { SetLimits } from '../../domain/limits.ts';
import type { Db } from '../db.ts';

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

/** The limits that the operator set for a workspace. */
export async function findWorkspaceLimits(db: Db, id: string): Promise<SetLimits> {
  const row = await db.selectFrom('workspaces').select('limits').where('id', '=', id).executeTakeFirst();
  return row?.limits ? (JSON.parse(row.limits) as SetLimits) : {};
}

export async function updateWorkspaceLimits(db: Db, id: string, limits: SetLimits): Promise<void> {
  await db
    .updateTable('workspaces')
    .set({ limits: JSON.stringify(limits) })
    .where('id', '=', id)
    .execute();
}
