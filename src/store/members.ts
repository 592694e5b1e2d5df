import type { Role } from '../domain/scopes.ts';
import type { Db } from './database.ts';
import { deleteSessionsOf } from './sessions.ts';

/** A person in a workspace. */
export type Member = { userId: string; email: string | null; name: string | null; role: Role; createdAt: number };

/** Somebody who was asked to join and has not signed in since. */
export type Invitation = { workspaceId: string; email: string; role: Role; invitedBy: string; createdAt: number };

export async function listMembers(db: Db, workspaceId: string): Promise<Member[]> {
  const rows = await db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select(['members.user_id', 'users.email', 'users.name', 'members.role', 'members.created_at'])
    .where('members.workspace_id', '=', workspaceId)
    .orderBy('members.created_at')
    .execute();
  return rows.map((row) => ({
    userId: row.user_id,
    email: row.email,
    name: row.name,
    role: row.role as Role,
    createdAt: row.created_at,
  }));
}

/** Removes a member with the sessions that show the workspace. Whether there was such a member. */
export async function deleteMember(db: Db, workspaceId: string, userId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('members')
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  await deleteSessionsOf(db, { workspaceId, userId });
  return result.numDeletedRows > 0n;
}

export async function saveInvitation(db: Db, invitation: Invitation): Promise<void> {
  const { workspaceId, email, role, invitedBy, createdAt } = invitation;
  await db
    .insertInto('invitations')
    .values({ workspace_id: workspaceId, email, role, invited_by: invitedBy, created_at: createdAt })
    .onConflict((c) => c.columns(['workspace_id', 'email']).doUpdateSet({ role, invited_by: invitedBy }))
    .execute();
}

export async function listInvitations(db: Db, workspaceId: string): Promise<Invitation[]> {
  const rows = await db
    .selectFrom('invitations')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('created_at')
    .execute();
  return rows.map((row) => ({
    workspaceId,
    email: row.email,
    role: row.role as Role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
  }));
}

/** Whether there was such an invitation. */
export async function deleteInvitation(db: Db, workspaceId: string, email: string): Promise<boolean> {
  const result = await db
    .deleteFrom('invitations')
    .where('workspace_id', '=', workspaceId)
    .where('email', '=', email)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Takes the invitations of an address out of the table. No workspace: the person does not know yet which ask for them. */
export async function takeInvitations(db: Db, email: string): Promise<{ workspaceId: string; role: Role }[]> {
  const rows = await db
    .deleteFrom('invitations')
    .where('email', '=', email)
    .returning(['workspace_id', 'role'])
    .execute();
  return rows.map((row) => ({ workspaceId: row.workspace_id, role: row.role as Role }));
}
