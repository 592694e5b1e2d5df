import { type Role, roles } from '../../domain/credentials/scopes.ts';
import type { Db } from '../db.ts';

/** A person as the identity provider knows them: `issuer` and `subject` together are the identity. */
export type User = { id: string; issuer: string; subject: string; email: string | null; name: string | null };

/** Stores a person at sign-in; a known person keeps their id. */
export async function saveUser(db: Db, user: User & { at: number }): Promise<User> {
  const { at, ...values } = user;
  await db
    .insertInto('users')
    .values({ ...values, created_at: at, last_seen_at: at })
    .onConflict((c) =>
      c.columns(['issuer', 'subject']).doUpdateSet({ email: user.email, name: user.name, last_seen_at: at }),
    )
    .execute();
  return db
    .selectFrom('users')
    .select(['id', 'issuer', 'subject', 'email', 'name'])
    .where('issuer', '=', user.issuer)
    .where('subject', '=', user.subject)
    .executeTakeFirstOrThrow();
}

/** Adds a member, or gives one another role. */
export async function saveMember(
  db: Db,
  member: { workspaceId: string; userId: string; role: Role; at: number },
): Promise<void> {
  const { workspaceId, userId, role, at } = member;
  await db
    .insertInto('members')
    .values({ workspace_id: workspaceId, user_id: userId, role, created_at: at })
    .onConflict((c) => c.columns(['workspace_id', 'user_id']).doUpdateSet({ role }))
    .execute();
}

/** Adds a person who was invited. A member whose role has more rights keeps it: only an owner lowers a role. */
export async function joinWorkspace(db: Db, member: Parameters<typeof saveMember>[1]): Promise<void> {
  const { workspaceId, userId, role, at } = member;
  const less = roles.slice(roles.indexOf(role) + 1);
  await db
    .insertInto('members')
    .values({ workspace_id: workspaceId, user_id: userId, role, created_at: at })
    .onConflict((c) =>
      c
        .columns(['workspace_id', 'user_id'])
        .doUpdateSet({ role })
        .where('members.role', 'in', [...less, '']),
    )
    .execute();
}

/** The role of a person in a workspace. */
export async function findRole(db: Db, userId: string, workspaceId: string): Promise<Role | undefined> {
  return (await findWorkspaceOf(db, userId, workspaceId))?.role;
}

/** The workspaces that a person joined first, `most` of them, with their names. */
export async function workspacesOf(db: Db, userId: string, most: number): Promise<OwnWorkspace[]> {
  return (await ownWorkspaces(db, userId).orderBy('members.created_at').orderBy('id').limit(most).execute()).map(
    toOwnWorkspace,
  );
}

export async function findWorkspaceOf(db: Db, userId: string, id: string): Promise<OwnWorkspace | undefined> {
  const row = await ownWorkspaces(db, userId).where('workspaces.id', '=', id).executeTakeFirst();
  return row && toOwnWorkspace(row);
}

export type OwnWorkspace = { id: string; name: string; role: Role };

function ownWorkspaces(db: Db, userId: string) {
  return db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['workspaces.id', 'workspaces.name', 'members.role'])
    .where('members.user_id', '=', userId);
}

function toOwnWorkspace(row: { id: string; name: string; role: string }): OwnWorkspace {
  return { ...row, role: row.role as Role };
}

/** No workspace: people belong to several. */
export async function findUser(db: Db, id: string): Promise<User | undefined> {
  return db
    .selectFrom('users')
    .select(['id', 'issuer', 'subject', 'email', 'name'])
    .where('id', '=', id)
    .executeTakeFirst();
}
