import type { Role } from '../domain/scopes.ts';
import type { Db } from './database.ts';

/** A person as the identity provider knows them: `issuer` and `subject` together are the identity. */
export type User = { id: string; issuer: string; subject: string; email: string | null; name: string | null };

/** Stores a person at sign-in; one who came before keeps their id. */
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

/** The workspaces of a person; the one query that starts from the user and not from a workspace. */
export async function membershipsOf(db: Db, userId: string): Promise<{ workspaceId: string; role: Role }[]> {
  const rows = await db.selectFrom('members').select(['workspace_id', 'role']).where('user_id', '=', userId).execute();
  return rows.map((row) => ({ workspaceId: row.workspace_id, role: row.role as Role }));
}

/** No workspace: people belong to several. */
export async function findUser(db: Db, id: string): Promise<User | undefined> {
  return db
    .selectFrom('users')
    .select(['id', 'issuer', 'subject', 'email', 'name'])
    .where('id', '=', id)
    .executeTakeFirst();
}
