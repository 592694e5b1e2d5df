import { z } from 'zod';
import { type Role, roles } from '../../domain/credentials/credential.ts';
import { AppError } from '../../errors.ts';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { revokeGrantsOfPerson } from '../../store/logins/grants.ts';
import { deleteMember, findMember as findMemberById, hasOtherOwner } from '../../store/people/members.ts';
import { deleteSessionsOf, moveSession } from '../../store/people/sessions.ts';
import { saveMember, workspacesOf } from '../../store/people/users.ts';
import { pauseWebhooksOf } from '../../store/webhooks.ts';
import { type Context, operation } from '../operation.ts';
import { isUnchanged, unchangedShape } from '../shapes.ts';
import {
  auditOfRemains,
  type Ended,
  ended,
  endRemainsOf,
  hasEnded,
  nothingEnded,
  type Remains,
  remains,
  remainsOf,
} from './remains.ts';
import { roleInput } from './workspaces.ts';

const endRemainsInput = z
  .boolean()
  .default(false)
  .describe(
    'If true, revokes the API keys that they created, deletes the models that they stored, pauses their webhooks, and withdraws their invitations. If false, keys and models stay, because scripts may depend on them.',
  );

type Settled = Remains & Ended;

/** Ends the access that a person created if requested, and lists what remains. */
async function settle(context: Context, userId: string, isEnding: boolean): Promise<Settled> {
  const done = isEnding ? await endRemainsOf(context, userId) : nothingEnded;
  return { ...(await remainsOf(context, userId)), ...done };
}

/**
 * Ends the sessions of a person in this workspace and the logins of their agents, which have the permissions of the old
 * role.
 */
async function endAccess(context: Context, userId: string): Promise<void> {
  const { actor, db } = context;
  const at = context.now();
  const person = { workspaceId: actor.workspaceId, userId };
  await deleteSessionsOf(db, person, actor.sessionHash);
  if (await revokeGrantsOfPerson(db, person, at)) await recordChange(db, context, 'grant', userId);
}

/** Finds the current member. Refuses to remove the last owner, because no one else could appoint a new one. */
async function findMember({ db, actor }: Context, id: string, isOwnerStill: boolean) {
  const member = await findMemberById(db, actor.workspaceId, id);
  if (!member) throw new AppError('notFound', 'there is no such member in this workspace');
  if (!isOwnerStill && member.role === 'owner' && !(await hasOtherOwner(db, actor.workspaceId, id)))
    throw new AppError('conflict', 'this is the only owner of the workspace; make someone else an owner first');
  return member;
}

/** Returns true if a role has fewer permissions than another. `roles` starts with the most powerful role. */
const isLess = (role: Role, than: Role) => roles.indexOf(role) > roles.indexOf(than);

const changeMember = operation({
  name: 'changeMember',
  summary:
    'Change the role of a member; with a lower role, their other sessions and their agents have to sign in again',
  scope: 'manage:write',
  effect: 'write',
  people: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), role: roleInput, end_remains: endRemainsInput }),
  output: z.object({ id: z.string(), role: z.enum(roles), ...remains, ...ended, unchanged: unchangedShape }),
  async run(context, { id, role, end_remains }) {
    const before = await findMember(context, id, role === 'owner');
    const left = await settle(context, id, end_remains);
    if (role === before.role) return { id, role, ...left, ...(!hasEnded(left) && { unchanged: true as const }) };
    await saveMember(context.db, { workspaceId: context.actor.workspaceId, userId: id, role, at: context.now() });
    if (isLess(role, before.role)) await endAccess(context, id);
    return { id, role, ...left };
  },
  isUnchanged,
  audit(_input, { id, role, ...left }) {
    const { detail, ...entry } = auditOfRemains(left, left);
    return { target: id, ...entry, detail: { role, ...detail } };
  },
});

const removeMember = operation({
  name: 'removeMember',
  summary: 'Remove a member; their sessions in this workspace and the logins of their agents end',
  description:
    'API keys and models belong to the workspace, so those that the member created continue to work unless end_remains is true. The response lists them, with everything else that the member created. Anyone with a copy of a key can still use it. Their webhooks are paused until another member confirms them, their invitations wait until an owner sends them again, and they receive no more mail.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  people: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), end_remains: endRemainsInput }),
  output: z.object({ removed: z.string(), ...remains, ...ended }),
  async run(context, { id, end_remains }) {
    await findMember(context, id, false);
    return { removed: id, ...(await endMembership(context, id, end_remains)) };
  },
  audit: ({ id }, left) => ({ target: id, ...auditOfRemains(left, left) }),
});

const leaveWorkspace = operation({
  name: 'leaveWorkspace',
  summary: 'Leave the current workspace; the session continues in another one of your workspaces',
  description:
    'Your other sessions in the workspace and the logins of your agents end. API keys and models that you created belong to the workspace and continue to work. Your webhooks are paused until a member confirms them. The only owner cannot leave.',
  scope: 'manage:read',
  effect: 'write',
  destructive: true,
  people: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ left: z.string(), ...remains, ...ended }),
  async run(context) {
    const { actor, db } = context;
    await findMember(context, actor.id, false);
    const others = (await workspacesOf(db, actor.id, 2)).filter(({ id }) => id !== actor.workspaceId);
    // Without another workspace, the session ends, and the next sign-in creates one.
    if (others[0]) await moveSession(db, actor.sessionHash ?? '', others[0].id);
    return { left: actor.workspaceId, ...(await endMembership(context, actor.id, false)) };
  },
  audit: (_input, left) => auditOfRemains(left, left),
});

/** Ends a membership, and returns what the person leaves behind. */
async function endMembership(context: Context, userId: string, isEnding: boolean): Promise<Settled> {
  const { db, actor, now } = context;
  const { workspaceId } = actor;
  await deleteMember(db, workspaceId, userId);
  await endAccess(context, userId);
  const paused_webhooks = await pauseWebhooksOf(db, { workspaceId, userId }, now());
  return { ...(await settle(context, userId, isEnding)), paused_webhooks };
}

export const memberOperations = { changeMember, removeMember, leaveWorkspace };
