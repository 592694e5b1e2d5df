import { covers, type Scope, scopesOf } from '../domain/credentials/credential.ts';
import { foldedAddress } from '../domain/email-address.ts';
import { newId, type Random } from '../domain/ids.ts';
import { AppError } from '../errors.ts';
import type { Actor } from '../operations/operation.ts';
import { addWorkspace } from '../operations/people/add-workspace.ts';
import type { Db } from '../store/db.ts';
import { invitationsKeptMs, takeInvitations } from '../store/people/members.ts';
import {
  findRole,
  joinWorkspace,
  lastChosenWorkspace,
  saveMember,
  saveUser,
  workspacesOf,
} from '../store/people/users.ts';
import { countCreatedBy } from '../store/workspaces.ts';
import type { Identity } from './identity.ts';

type PeopleParts = {
  db: Db;
  random: Random;
  now: () => number;
  /** Workspace that all people join in local mode; undefined if each person gets their own workspace. */
  commonWorkspace: string | undefined;
};

/**
 * Stores a person who signed in, accepts the invitations to their email address, and returns the workspace where the
 * sign-in starts: the workspace that they switched to last, or otherwise their own. Others choose whom they invite and
 * how their workspace is named, so an invitation neither replaces a person's own workspace nor decides where they work.
 */
export async function welcome(
  identity: Identity,
  parts: PeopleParts,
): Promise<{ userId: string; workspaceId: string }> {
  const { db, random } = parts;
  const at = parts.now();
  const { issuer, subject, email, name } = identity;
  const user = await saveUser(db, {
    id: newId(random, 'usr'),
    issuer,
    subject,
    email: email ?? null,
    name: name ?? null,
    at,
  });
  for (const invitation of email === undefined
    ? []
    : await takeInvitations(db, foldedAddress(email), at - invitationsKeptMs)) {
    await joinWorkspace(db, { ...invitation, userId: user.id, at });
  }
  const home = (await findHome(user.id, parts)) ?? (await makeHome(user.id, at, parts));
  const chosen = await lastChosenWorkspace(db, user.id);
  return { userId: user.id, workspaceId: chosen?.id ?? home };
}

/**
 * Finds a workspace that the person created. If they no longer have one, or in local mode, finds the first workspace
 * that they are in.
 */
async function findHome(userId: string, { db, commonWorkspace }: PeopleParts): Promise<string | undefined> {
  const [first] = await workspacesOf(db, userId, 1);
  if (!first || first.isOwn || commonWorkspace !== undefined) return first?.id;
  return (await countCreatedBy(db, userId)).all > 0 ? first.id : undefined;
}

async function makeHome(userId: string, at: number, parts: PeopleParts): Promise<string> {
  const { db, commonWorkspace: id } = parts;
  if (id === undefined) return addWorkspace(parts, { userId, at });
  await saveMember(db, { workspaceId: id, userId, role: 'owner', at });
  return id;
}

/**
 * Creates an actor for a person, with the scopes that both their role and their consent allow.
 * @throws AppError forbidden if they are no longer a member
 */
export async function actorOfPerson(
  db: Db,
  person: { userId: string; workspaceId: string; grantId: string; granted: readonly Scope[] },
): Promise<Actor> {
  const role = await findRole(db, person.userId, person.workspaceId);
  if (!role)
    throw new AppError(
      'forbidden',
      'this person is no longer a member of the workspace; ask an owner for an invitation',
    );
  const own = scopesOf(role);
  const scopes = person.granted.filter((scope) => covers(own, scope));
  // People who may change a server may also try its tools.
  if (scopes.includes('manage:write')) scopes.push('call');
  const { userId: id, workspaceId, grantId } = person;
  return { kind: 'user', id, workspaceId, grantId, scopes, servers: undefined };
}
