import { type Role, roles } from '@toolhost/credentials/credential';
import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { revokeLoginsOfPerson, revokePersonGrants } from '../../store/logins/grants.ts';
import { deleteValuesInWorkspace } from '../../store/logins/person-values.ts';
import { deleteMember, findMember as findMemberById, hasOtherOwner } from '../../store/people/members.ts';
import { deleteMemberSessions, moveSession } from '../../store/people/sessions.ts';
import { findJoinedWorkspaces, saveMember } from '../../store/people/users.ts';
import { pauseWebhooksCreatedBy } from '../../store/webhooks.ts';
import { type Context, operation } from '../operation.ts';
import { isUnchanged, unchangedShape } from '../shapes.ts';
import {
  accessShape,
  type EndedAccess,
  endedAccessShape,
  endMemberAccess,
  findMemberAccess,
  hasEndedAccess,
  type MemberAccess,
  noEndedAccess,
  toAccessAudit,
} from './member-access.ts';
import { roleInput } from './workspaces.ts';

const endAccessInput = z
  .boolean()
  .default(false)
  .describe(
    'If true, revokes the API keys that they created, deletes the models that they stored, pauses their webhooks, and withdraws their invitations. If false, keys and models stay, because scripts may depend on them.',
  );

type MemberAccessResult = MemberAccess & EndedAccess;

/** Ends the access that a person created if requested, and lists what remains. */
async function settleMemberAccess(context: Context, userId: string, shouldEnd: boolean): Promise<MemberAccessResult> {
  const endedAccess = shouldEnd ? await endMemberAccess(context, userId) : noEndedAccess;
  return { ...(await findMemberAccess(context, userId)), ...endedAccess };
}

/** Ends the sessions of a person in this workspace and the logins of their agents, which still have the old role. */
async function endSessions(context: Context, userId: string): Promise<void> {
  const { actor, db } = context;
  const at = context.now();
  const member = { workspaceId: actor.workspaceId, userId };
  await deleteMemberSessions(db, member, actor.sessionHash);
  if (await revokePersonGrants(db, member, at)) await recordChange(db, context, 'grant', userId);
}

/** Ends the logins of a person at the hosted servers of this workspace, and deletes the values that they brought. */
async function endLoginsOfPerson(context: Context, userId: string): Promise<void> {
  const { actor, db } = context;
  const person = { workspaceId: actor.workspaceId, userId };
  await revokeLoginsOfPerson(db, person, context.now());
  await deleteValuesInWorkspace(db, actor.workspaceId, userId);
  await recordChange(db, context, 'grant', userId);
}

/** Finds the current member. Refuses to remove the last owner, because no one else could appoint a new one. */
async function findMember({ db, actor }: Context, id: string, willBeOwner: boolean) {
  const member = await findMemberById(db, actor.workspaceId, id);
  if (!member) throw new AppError('notFound', 'there is no such member in this workspace');
  if (!willBeOwner && member.role === 'owner' && !(await hasOtherOwner(db, actor.workspaceId, id)))
    throw new AppError('conflict', 'this is the only owner of the workspace; make someone else an owner first');
  return member;
}

/** Returns true if a role has fewer permissions than another. `roles` starts with the most powerful role. */
const hasFewerPermissions = (role: Role, otherRole: Role) => roles.indexOf(role) > roles.indexOf(otherRole);

const updateMember = operation({
  name: 'updateMember',
  summary:
    'Change the role of a member; with a lower role, their other sessions and their agents have to sign in again',
  scope: 'manage:write',
  effect: 'write',
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), role: roleInput, revoke_access: endAccessInput }),
  output: z.object({
    id: z.string(),
    role: z.enum(roles),
    ...accessShape,
    ...endedAccessShape,
    unchanged: unchangedShape,
  }),
  async run(context, { id, role, revoke_access }) {
    const before = await findMember(context, id, role === 'owner');
    if (role !== before.role && before.roleGroup !== null)
      throw new AppError(
        'conflict',
        "this role comes from the member's group at the identity provider; change the roles by group, or remove the member",
      );
    const accessResult = await settleMemberAccess(context, id, revoke_access);
    if (role === before.role)
      return { id, role, ...accessResult, ...(!hasEndedAccess(accessResult) && { unchanged: true as const }) };
    await saveMember(context.db, { workspaceId: context.actor.workspaceId, userId: id, role, at: context.now() });
    if (hasFewerPermissions(role, before.role)) await endSessions(context, id);
    return { id, role, ...accessResult };
  },
  isUnchanged,
  audit(_input, { id, role, ...accessResult }) {
    const { detail, ...entry } = toAccessAudit(accessResult, accessResult);
    return { target: id, ...entry, detail: { role, ...detail } };
  },
});

const removeMember = operation({
  name: 'removeMember',
  summary: 'Remove a member; their sessions in this workspace and the logins of their agents end',
  description:
    'API keys and models belong to the workspace, so those that the member created continue to work unless revoke_access is true. The response lists them, with everything else that the member created. Anyone with a copy of a key can still use it. Their webhooks are paused until another member confirms them, their invitations wait until an owner sends them again, and they receive no more mail.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), revoke_access: endAccessInput }),
  output: z.object({ removed: z.string(), ...accessShape, ...endedAccessShape }),
  async run(context, { id, revoke_access }) {
    await findMember(context, id, false);
    return { removed: id, ...(await endMembership(context, id, revoke_access)) };
  },
  audit: ({ id }, accessResult) => ({ target: id, ...toAccessAudit(accessResult, accessResult) }),
});

const leaveWorkspace = operation({
  name: 'leaveWorkspace',
  summary: 'Leave the current workspace; the session continues in another one of your workspaces',
  description:
    'Your other sessions in the workspace and the logins of your agents end. API keys and models that you created belong to the workspace and continue to work. Your webhooks are paused until a member confirms them. The only owner cannot leave.',
  scope: 'manage:read',
  effect: 'write',
  destructive: true,
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ left: z.string(), ...accessShape, ...endedAccessShape }),
  async run(context) {
    const { actor, db } = context;
    await findMember(context, actor.id, false);
    const otherWorkspaces = (await findJoinedWorkspaces(db, actor.id, 2)).filter(({ id }) => id !== actor.workspaceId);
    // Without another workspace, the session ends, and the next sign-in creates one.
    if (otherWorkspaces[0]) await moveSession(db, actor.sessionHash ?? '', otherWorkspaces[0].id);
    return { left: actor.workspaceId, ...(await endMembership(context, actor.id, false)) };
  },
  audit: (_input, accessResult) => toAccessAudit(accessResult, accessResult),
});

/** Ends a membership, and returns what the person leaves behind. */
async function endMembership(context: Context, userId: string, shouldEnd: boolean): Promise<MemberAccessResult> {
  const { db, actor, now } = context;
  const { workspaceId } = actor;
  await deleteMember(db, workspaceId, userId);
  await endSessions(context, userId);
  await endLoginsOfPerson(context, userId);
  const paused_webhooks = await pauseWebhooksCreatedBy(db, { workspaceId, userId }, now());
  return { ...(await settleMemberAccess(context, userId, shouldEnd)), paused_webhooks };
}

export const memberOperations = { updateMember, removeMember, leaveWorkspace };
