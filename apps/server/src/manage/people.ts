import { getRoleScopes, hasScope, type Scope } from '@toolhost/credentials/credential';
import { newId, type Random } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { foldAddressCase } from '../email-address.ts';
import type { Actor } from '../operations/operation.ts';
import { addWorkspace } from '../operations/people/add-workspace.ts';
import { insertAuditEvent } from '../store/audit-events.ts';
import type { Db } from '../store/db.ts';
import { consumeInvitations, invitationLifetimeMs } from '../store/people/members.ts';
import { applyGroups } from '../store/people/role-groups.ts';
import {
  findJoinedWorkspaces,
  findLastChosenWorkspace,
  findRole,
  joinWorkspace,
  saveMember,
  saveUser,
} from '../store/people/users.ts';
import { countWorkspacesCreatedBy } from '../store/workspaces.ts';
import type { Identity } from './identity.ts';

type PeopleDeps = {
  db: Db;
  random: Random;
  now: () => number;
  /** Workspace that all people join in local mode; undefined if each person gets their own workspace. */
  commonWorkspace: string | undefined;
};

/**
 * Stores a person who signed in, accepts the invitations to their email address, and returns the workspace where the
 * sign-in starts: the workspace that they switched to last, or otherwise their own. Anyone can invite a person, so an
 * invitation neither replaces the person's own workspace nor decides where the sign-in starts.
 */
export async function signInPerson(
  identity: Identity,
  deps: PeopleDeps,
): Promise<{ userId: string; workspaceId: string }> {
  const { db } = deps;
  const at = deps.now();
  const userId = await savePerson(identity, deps);
  const homeId = (await findHomeWorkspace(userId, deps)) ?? (await createHomeWorkspace(userId, at, deps));
  await applyGroupRoles({ userId, groups: identity.groups }, deps);
  const lastChosen = await findLastChosenWorkspace(db, userId);
  return { userId, workspaceId: lastChosen?.id ?? homeId };
}

/** Stores a person, and accepts the invitations to their email address. Returns their id. */
export async function savePerson(
  { issuer, subject, email, name }: Identity,
  { db, random, now }: Pick<PeopleDeps, 'db' | 'random' | 'now'>,
): Promise<string> {
  const at = now();
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
    : await consumeInvitations(db, foldAddressCase(email), at - invitationLifetimeMs)) {
    await joinWorkspace(db, { ...invitation, userId: user.id, at });
  }
  return user.id;
}

/**
 * Gives a person the roles of their groups in all their workspaces, and takes back those of groups that they left. Call
 * it in a transaction, whenever the identity provider has stated the groups. The roles apply from the next request.
 */
export async function applyGroupRoles(
  person: { userId: string; groups: readonly string[] },
  { db, random, now }: Pick<PeopleDeps, 'db' | 'random' | 'now'>,
): Promise<void> {
  const { userId } = person;
  for (const { workspaceId, role, group } of await applyGroups(db, person))
    await insertAuditEvent(db, {
      id: newId(random, 'aud'),
      workspace_id: workspaceId,
      at: now(),
      actor_kind: 'user',
      actor_id: userId,
      operation: 'groupRole',
      target: userId,
      detail: JSON.stringify({ role, ...(group !== undefined && { group }) }),
      request_id: '',
    });
}

/**
 * Finds a workspace that the person created. If they no longer have one, or in local mode, finds the first workspace
 * that they are in.
 */
async function findHomeWorkspace(userId: string, { db, commonWorkspace }: PeopleDeps): Promise<string | undefined> {
  const [firstWorkspace] = await findJoinedWorkspaces(db, userId, 1);
  if (!firstWorkspace || firstWorkspace.isOwn || commonWorkspace !== undefined) return firstWorkspace?.id;
  return (await countWorkspacesCreatedBy(db, userId)).all > 0 ? firstWorkspace.id : undefined;
}

async function createHomeWorkspace(userId: string, at: number, deps: PeopleDeps): Promise<string> {
  const { db, commonWorkspace: id } = deps;
  if (id === undefined) return addWorkspace(deps, { userId, at });
  await saveMember(db, { workspaceId: id, userId, role: 'owner', at });
  return id;
}

/**
 * Creates an actor for a person, with the scopes that both their role and their consent allow.
 * @throws AppError forbidden if they are no longer a member
 */
export async function createPersonActor(
  db: Db,
  person: { userId: string; workspaceId: string; grantId: string; grantedScopes: readonly Scope[] },
): Promise<Actor> {
  const role = await findRole(db, person.userId, person.workspaceId);
  if (!role)
    throw new AppError(
      'forbidden',
      'this person is no longer a member of the workspace; ask an owner for an invitation',
    );
  const roleScopes = getRoleScopes(role);
  const scopes = person.grantedScopes.filter((scope) => hasScope(roleScopes, scope));
  // People who may change a server may also try its tools.
  if (scopes.includes('manage:write')) scopes.push('call');
  const { userId: id, workspaceId, grantId } = person;
  return { kind: 'user', id, workspaceId, grantId, scopes, servers: undefined };
}
