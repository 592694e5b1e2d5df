import type { Role } from '@toolhost/credentials/credential';
import { type Selectable, sql } from 'kysely';
import { isPostgres } from '../changes/follow-changes.ts';
import type { Db } from '../db.ts';
import { type Cursor, isInWorkspace, isNewerThan, type Page, toPageWithCursor, toSqlList } from '../page.ts';
import type { Tables } from '../schema.ts';
import { deleteMemberSessions } from './sessions.ts';

/** Person in a workspace. */
export type Member = {
  userId: string;
  email: string | null;
  name: string | null;
  role: Role;
  /** Group that the role comes from; null if a member gave it. */
  roleGroup: string | null;
  createdAt: number;
};

/** Person who was invited and has not signed in since. */
export type Invitation = {
  workspaceId: string;
  email: string;
  role: Role;
  invitedBy: string;
  createdAt: number;
  /** True if the sender is no longer an owner. The invitation then waits until an owner sends it again. */
  isUnconfirmed: boolean;
};

/** Lists members, oldest first. */
export async function listMembers(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: Member[]; next: Cursor | undefined }> {
  const rows = await selectMembers(db, workspaceId)
    .where(isNewerThan('members.created_at', 'members.user_id', page.after))
    .orderBy('members.created_at')
    .orderBy('members.user_id')
    .limit(page.limit + 1)
    .execute();
  return toPageWithCursor(rows.map(toMember), page.limit, ({ createdAt, userId }) => ({ at: createdAt, id: userId }));
}

export async function findMember(db: Db, workspaceId: string, userId: string): Promise<Member | undefined> {
  const row = await selectMembers(db, workspaceId).where('members.user_id', '=', userId).executeTakeFirst();
  return row && toMember(row);
}

/** Returns true if a person with this case-folded email address is a member. */
export async function isMemberAddress(db: Db, workspaceId: string, address: string): Promise<boolean> {
  // With this collation, PostgreSQL folds only ASCII letters, as SQLite always does.
  const email = isPostgres(db) ? sql`users.email collate "C"` : sql`users.email`;
  const matching = selectMembers(db, workspaceId).where(sql`lower(${email})`, '=', address).limit(1);
  return (await matching.executeTakeFirst()) !== undefined;
}

/** Returns true if a workspace has another owner than this person. */
export async function hasOtherOwner(db: Db, workspaceId: string, userId: string): Promise<boolean> {
  const otherOwners = selectMembers(db, workspaceId)
    .where('members.role', '=', 'owner')
    .where('members.user_id', '<>', userId);
  return (await otherOwners.limit(1).executeTakeFirst()) !== undefined;
}

/** Returns the ids among `ids` that belong to members. */
export async function filterMembers(db: Db, workspaceId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('members')
    .select('user_id')
    .where(isInWorkspace(workspaceId))
    .where('user_id', 'in', toSqlList(ids))
    .execute();
  return new Set(rows.map((row) => row.user_id));
}

function selectMembers(db: Db, workspaceId: string) {
  return db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select([
      'members.user_id',
      'users.email',
      'users.name',
      'members.role',
      'members.role_group',
      'members.created_at',
    ])
    .where('members.workspace_id', '=', workspaceId);
}

type MemberRow = {
  user_id: string;
  email: string | null;
  name: string | null;
  role: string;
  role_group: string | null;
  created_at: number;
};

function toMember({ user_id, email, name, role, role_group, created_at }: MemberRow): Member {
  return { userId: user_id, email, name, role: role as Role, roleGroup: role_group, createdAt: created_at };
}

/** Removes a member, with the sessions that show the workspace. Returns false if the member does not exist. */
export async function deleteMember(db: Db, workspaceId: string, userId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('members')
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  await deleteMemberSessions(db, { workspaceId, userId });
  return result.numDeletedRows > 0n;
}

export async function saveInvitation(db: Db, invitation: Omit<Invitation, 'isUnconfirmed'>): Promise<void> {
  const { workspaceId, email, role, invitedBy, createdAt } = invitation;
  await db
    .insertInto('invitations')
    .values({ workspace_id: workspaceId, email, role, invited_by: invitedBy, created_at: createdAt })
    .onConflict((c) =>
      c.columns(['workspace_id', 'email']).doUpdateSet({ role, invited_by: invitedBy, created_at: createdAt }),
    )
    .execute();
}

/**
 * Condition that the sender of an invitation is currently an owner. With `exists`, PostgreSQL would read the owners
 * of all workspaces.
 */
const isSenderOwner = sql<boolean>`(select role from members where members.workspace_id = invitations.workspace_id
  and members.user_id = invitations.invited_by) = 'owner'`;

function selectInvitations(db: Db, workspaceId: string) {
  const unconfirmed = sql<number>`case when ${isSenderOwner} then 0 else 1 end`.as('unconfirmed');
  return db.selectFrom('invitations').selectAll().select(unconfirmed).where('workspace_id', '=', workspaceId);
}

/** Lists invitations, oldest first. */
export async function listInvitations(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: Invitation[]; next: Cursor | undefined }> {
  const rows = await selectInvitations(db, workspaceId)
    .where(isNewerThan('created_at', 'email', page.after))
    .orderBy('created_at')
    .orderBy('email')
    .limit(page.limit + 1)
    .execute();
  return toPageWithCursor(rows.map(toInvitation), page.limit, ({ createdAt, email }) => ({ at: createdAt, id: email }));
}

export async function findInvitation(db: Db, workspaceId: string, email: string): Promise<Invitation | undefined> {
  const row = await selectInvitations(db, workspaceId).where('email', '=', email).executeTakeFirst();
  return row && toInvitation(row);
}

/** Returns email addresses that a person invited, at most `limit`. */
export async function findInvitedEmails(db: Db, workspaceId: string, userId: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('invitations')
    .select('email')
    .where('workspace_id', '=', workspaceId)
    .where('invited_by', '=', userId)
    .orderBy('created_at')
    .limit(limit)
    .execute();
  return rows.map(({ email }) => email);
}

function toInvitation(row: Selectable<Tables['invitations']> & { unconfirmed: number }): Invitation {
  return {
    workspaceId: row.workspace_id,
    email: row.email,
    role: row.role as Role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    isUnconfirmed: Number(row.unconfirmed) === 1,
  };
}

/** Withdraws all invitations that a person sent. Returns their email addresses. */
export async function deleteInvitationsSentBy(db: Db, workspaceId: string, userId: string): Promise<string[]> {
  const deletion = db.deleteFrom('invitations').where('workspace_id', '=', workspaceId);
  const rows = await deletion.where('invited_by', '=', userId).returning('email').execute();
  return rows.map(({ email }) => email);
}

/** Returns false if the invitation did not exist. */
export async function deleteInvitation(db: Db, workspaceId: string, email: string): Promise<boolean> {
  const result = await db
    .deleteFrom('invitations')
    .where('workspace_id', '=', workspaceId)
    .where('email', '=', email)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Maximum number of invitations that one sign-in accepts. The next sign-in accepts the others. */
const maxAcceptedPerSignIn = 100;

/** Lifetime of an invitation. */
export const invitationLifetimeMs = 90 * 24 * 60 * 60_000;

/**
 * Removes and returns the invitations of an email address since `since` that were sent by current owners. Takes no
 * workspace, because any workspace may have invited the person.
 */
export async function consumeInvitations(
  db: Db,
  email: string,
  since: number,
): Promise<{ workspaceId: string; role: Role }[]> {
  const oldest = db
    .selectFrom('invitations')
    .select('workspace_id')
    .where('email', '=', email)
    .where('created_at', '>=', since)
    .where(isSenderOwner)
    .orderBy('created_at');
  const rows = await db
    .deleteFrom('invitations')
    .where('email', '=', email)
    .where('created_at', '>=', since)
    .where('workspace_id', 'in', oldest.limit(maxAcceptedPerSignIn))
    .returning(['workspace_id', 'role'])
    .execute();
  return rows.map((row) => ({ workspaceId: row.workspace_id, role: row.role as Role }));
}

type PeoplePage = { members: Member[]; invitations: Invitation[]; next: Cursor | undefined };

/** Prefixes of a cursor's id: the list that continues after it. */
const [membersPrefix, invitationsPrefix] = ['m', 'i'];

/** Lists members, then invitations, in shared pages. */
export async function listPeople(db: Db, workspaceId: string, { limit, after }: Page): Promise<PeoplePage> {
  const position = after && { at: after.at, id: after.id.slice(1) };
  if (after?.id[0] === invitationsPrefix) return appendInvitations(db, workspaceId, [], { limit, after: position });
  const { rows: members, next } = await listMembers(db, workspaceId, { limit, after: position });
  if (next) return { members, invitations: [], next: { at: next.at, id: `${membersPrefix}${next.id}` } };
  return appendInvitations(db, workspaceId, members, { limit: limit - members.length, after: undefined });
}

async function appendInvitations(db: Db, workspaceId: string, members: Member[], page: Page): Promise<PeoplePage> {
  // The cursor is before the first invitation: the page is full, but there may be some.
  if (page.limit === 0) return { members, invitations: [], next: { at: 0, id: invitationsPrefix as string } };
  const { rows: invitations, next } = await listInvitations(db, workspaceId, page);
  return { members, invitations, next: next && { at: next.at, id: `${invitationsPrefix}${next.id}` } };
}
