import { type Role, roles } from '@toolhost/credentials/credential';
import { getPersonTenantId, tenantIdLength } from '@toolhost/credentials/ids';
import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { toSqlList } from '../page.ts';

/** Person as known to the identity provider. `issuer` and `subject` together are the identity. */
export type User = { id: string; issuer: string; subject: string; email: string | null; name: string | null };

/** Stores a person at sign-in. An existing person retains their id. */
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

/** Columns of a role that a member gave, and that no group gives. */
const givenByMember = { role_group: null, given_role: null };

/** Adds a member, or gives an existing one another role. */
export async function saveMember(
  db: Db,
  member: { workspaceId: string; userId: string; role: Role; at: number },
): Promise<void> {
  const { workspaceId, userId, role, at } = member;
  await db
    .insertInto('members')
    .values({ workspace_id: workspaceId, user_id: userId, role, created_at: at })
    .onConflict((c) => c.columns(['workspace_id', 'user_id']).doUpdateSet({ role, ...givenByMember }))
    .execute();
}

/** Adds an invited person. A member whose role has more rights retains it, because only an owner can lower a role. */
export async function joinWorkspace(db: Db, member: Parameters<typeof saveMember>[1]): Promise<void> {
  const { workspaceId, userId, role, at } = member;
  const lowerRoles = roles.slice(roles.indexOf(role) + 1);
  await db
    .insertInto('members')
    .values({ workspace_id: workspaceId, user_id: userId, role, created_at: at })
    .onConflict((c) =>
      c
        .columns(['workspace_id', 'user_id'])
        .doUpdateSet({ role, ...givenByMember })
        .where('members.role', 'in', toSqlList(lowerRoles)),
    )
    .execute();
}

/** Returns the role of a person in a workspace. */
export async function findRole(db: Db, userId: string, workspaceId: string): Promise<Role | undefined> {
  return (await findJoinedWorkspace(db, userId, workspaceId))?.role;
}

/**
 * Returns at most `limit` workspaces of a person, with their names: first those that the person created, then in the
 * order of joining.
 */
export async function findJoinedWorkspaces(db: Db, userId: string, limit: number): Promise<JoinedWorkspace[]> {
  const rows = await selectJoinedWorkspaces(db, userId)
    .orderBy('is_own', 'desc')
    .orderBy('members.created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(toJoinedWorkspace);
}

export async function findJoinedWorkspace(db: Db, userId: string, id: string): Promise<JoinedWorkspace | undefined> {
  const row = await selectJoinedWorkspaces(db, userId).where('workspaces.id', '=', id).executeTakeFirst();
  return row && toJoinedWorkspace(row);
}

/** Returns the workspace that a person switched to last, among those that they are still a member of. */
export async function findLastChosenWorkspace(db: Db, userId: string): Promise<JoinedWorkspace | undefined> {
  const row = await selectJoinedWorkspaces(db, userId)
    .where('members.selected_at', 'is not', null)
    .orderBy('members.selected_at', 'desc')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  return row && toJoinedWorkspace(row);
}

/** Stores that a person switched to a workspace. The choice ends with the membership. */
export async function chooseWorkspace(
  db: Db,
  { workspaceId, userId, at }: { workspaceId: string; userId: string; at: number },
): Promise<void> {
  await db
    .updateTable('members')
    .set({ selected_at: at })
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .execute();
}

/** Workspace of a person. `isOwn` is true if the person created it, `isChosen` if the person ever switched to it. */
export type JoinedWorkspace = { id: string; name: string; role: Role; isOwn: boolean; isChosen: boolean };

function selectJoinedWorkspaces(db: Db, userId: string) {
  const tenant = sql`substr(workspaces.id, 1, ${sql.lit(tenantIdLength)})`;
  const isOwn = sql<number>`case when ${tenant} = ${getPersonTenantId(userId)} then 1 else 0 end`;
  return db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['workspaces.id', 'workspaces.name', 'members.role', 'members.selected_at', isOwn.as('is_own')])
    .where('members.user_id', '=', userId);
}

type JoinedRow = { id: string; name: string; role: string; selected_at: number | null; is_own: number };

function toJoinedWorkspace({ id, name, role, selected_at, is_own }: JoinedRow): JoinedWorkspace {
  return { id, name, role: role as Role, isOwn: Number(is_own) === 1, isChosen: selected_at !== null };
}

/** Takes no workspace, because people belong to several. */
export async function findUser(db: Db, id: string): Promise<User | undefined> {
  return db
    .selectFrom('users')
    .select(['id', 'issuer', 'subject', 'email', 'name'])
    .where('id', '=', id)
    .executeTakeFirst();
}
