import { type Role, roles } from '@toolhost/credentials/credential';
import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { toSqlList } from '../page.ts';
import { hasOtherOwner } from './members.ts';

/** Maximum number of roles by group of a workspace. */
export const maxRoleGroups = 50;
/** Maximum length of the name of a group. */
export const maxGroupLength = 256;

/** Role that members have while the identity provider states this group for them. */
export type RoleGroup = { group: string; role: Role };

/** Lists the roles by group of a workspace, ordered by group. */
export async function listRoleGroups(db: Db, workspaceId: string): Promise<RoleGroup[]> {
  const rows = await db
    .selectFrom('role_groups')
    .select(['group_name', 'role'])
    .where('workspace_id', '=', workspaceId)
    .execute();
  return rows
    .map(({ group_name, role }) => ({ group: group_name, role: role as Role }))
    .toSorted((a, b) => (a.group < b.group ? -1 : 1));
}

/**
 * Replaces the roles by group of a workspace, and applies them to the members whose role comes from a group. All other
 * members get theirs when they sign in.
 */
export async function replaceRoleGroups(db: Db, workspaceId: string, roleGroups: readonly RoleGroup[]): Promise<void> {
  await db.deleteFrom('role_groups').where('workspace_id', '=', workspaceId).execute();
  const rows = roleGroups.map(({ group, role }) => ({ workspace_id: workspaceId, group_name: group, role }));
  if (rows.length > 0) await db.insertInto('role_groups').values(rows).execute();
  for (const role of roles) {
    const groups = roleGroups.filter((entry) => entry.role === role).map(({ group }) => group);
    await db
      .updateTable('members')
      .set({ role })
      .where('workspace_id', '=', workspaceId)
      .where('role_group', 'in', toSqlList(groups))
      .execute();
  }
  await db
    .updateTable('members')
    .set({ role: sql<string>`coalesce(given_role, role)`, role_group: null, given_role: null })
    .where('workspace_id', '=', workspaceId)
    .where('role_group', 'is not', null)
    .where('role_group', 'not in', toSqlList(roleGroups.map(({ group }) => group)))
    .execute();
}

/** Change of a role. `group` is undefined if the role that a member gave applies again. */
export type GroupRoleChange = { workspaceId: string; role: Role; group: string | undefined };

type Membership = {
  workspace_id: string;
  role: string;
  role_group: string | null;
  given_role: string | null;
  group_name: string | null;
  group_role: string | null;
};

/** A person, with the groups that the identity provider states. */
type GroupedPerson = { userId: string; groups: readonly string[] };

/**
 * Gives a person the highest role of their groups in each of their workspaces, and without a matching group the role
 * that a member gave. The last owner of a workspace stays an owner. Takes no workspace, because people belong to
 * several.
 */
export async function applyGroups(db: Db, person: GroupedPerson): Promise<GroupRoleChange[]> {
  const outdated = pickHighest(await selectMemberships(db, person).execute()).filter(isOutdated);
  const changes: GroupRoleChange[] = [];
  // The order prevents deadlocks between sign-ins.
  for (const workspaceId of outdated.map((membership) => membership.workspace_id).toSorted()) {
    const change = await applyInWorkspace(db, workspaceId, person);
    if (change) changes.push(change);
  }
  return changes;
}

/** Selects a person's memberships, each with every group that has a role there, if a group has or had one. */
function selectMemberships(db: Db, { userId, groups }: GroupedPerson) {
  return db
    .selectFrom('members')
    .leftJoin('role_groups', (join) =>
      join
        .onRef('role_groups.workspace_id', '=', 'members.workspace_id')
        .on('role_groups.group_name', 'in', toSqlList(groups)),
    )
    .select(['members.workspace_id', 'members.role', 'members.role_group', 'members.given_role'])
    .select(['role_groups.group_name', 'role_groups.role as group_role'])
    .where('members.user_id', '=', userId)
    .where((where) =>
      where.or([where('role_groups.role', 'is not', null), where('members.role_group', 'is not', null)]),
    );
}

/** Returns the row with the highest role for each workspace; of several, the one of the group that counts already. */
function pickHighest(memberships: readonly Membership[]): Membership[] {
  const rank = ({ group_role: role, group_name: name, role_group }: Membership) =>
    (role === null ? roles.length : roles.indexOf(role as Role)) * 2 + (name === role_group ? 0 : 1);
  const highest = new Map<string, Membership>();
  for (const membership of memberships.toSorted((a, b) => rank(b) - rank(a)))
    highest.set(membership.workspace_id, membership);
  return [...highest.values()];
}

/** Role that a member gave. */
const getGivenRole = ({ role, given_role }: Membership) => given_role ?? role;
const getNewRole = (membership: Membership) => (membership.group_role ?? getGivenRole(membership)) as Role;
const isOutdated = (membership: Membership) =>
  membership.group_name !== membership.role_group || membership.role !== getNewRole(membership);

async function applyInWorkspace(
  db: Db,
  workspaceId: string,
  person: GroupedPerson,
): Promise<GroupRoleChange | undefined> {
  // Waits for other changes of the workspace: of its roles by group, and of the role of another owner.
  await db.updateTable('workspaces').set('id', workspaceId).where('id', '=', workspaceId).execute();
  const rows = await selectMemberships(db, person).where('members.workspace_id', '=', workspaceId).execute();
  const [membership] = pickHighest(rows).filter(isOutdated);
  if (!membership) return undefined;
  const { role: before, group_name } = membership;
  const role = getNewRole(membership);
  const isDemotion = before === 'owner' && role !== 'owner';
  if (isDemotion && !(await hasOtherOwner(db, workspaceId, person.userId))) return undefined;
  await db
    .updateTable('members')
    .set({ role, role_group: group_name, given_role: group_name === null ? null : getGivenRole(membership) })
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', person.userId)
    .execute();
  return role === before ? undefined : { workspaceId, role, group: group_name ?? undefined };
}
