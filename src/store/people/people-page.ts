import type { Db } from '../db.ts';
import type { Cursor, Page } from '../page.ts';
import { type Invitation, listInvitations, listMembers, type Member } from './members.ts';

export type PeoplePage = { members: Member[]; invitations: Invitation[]; next: Cursor | undefined };

/** Prefix of a cursor's id: the list that continues after it. */
const [inMembers, inInvitations] = ['m', 'i'];

/** Members, then invitations, in shared pages. */
export async function pageOfPeople(db: Db, workspaceId: string, { limit, after }: Page): Promise<PeoplePage> {
  const position = after && { at: after.at, id: after.id.slice(1) };
  if (after?.id[0] === inInvitations) return withInvitations(db, workspaceId, [], { limit, after: position });
  const { rows: members, next } = await listMembers(db, workspaceId, { limit, after: position });
  if (next) return { members, invitations: [], next: { at: next.at, id: `${inMembers}${next.id}` } };
  return withInvitations(db, workspaceId, members, { limit: limit - members.length, after: undefined });
}

async function withInvitations(db: Db, workspaceId: string, members: Member[], page: Page): Promise<PeoplePage> {
  // Before the first invitation: the page is full, but there may be some.
  if (page.limit === 0) return { members, invitations: [], next: { at: 0, id: inInvitations as string } };
  const { rows: invitations, next } = await listInvitations(db, workspaceId, page);
  return { members, invitations, next: next && { at: next.at, id: `${inInvitations}${next.id}` } };
}
