import { z } from 'zod';
import { keyScopes, type Role, roles } from '../../domain/credentials/credential.ts';
import { AppError } from '../../errors.ts';
import { type ApiKey, workingKeysMadeBy } from '../../store/api-keys.ts';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { revokeGrantsOfPerson } from '../../store/logins/grants.ts';
import { deleteMember, findMember as findMemberById, hasOtherOwner, invitedBy } from '../../store/people/members.ts';
import { deleteSessionsOf, moveSession } from '../../store/people/sessions.ts';
import { saveMember, workspacesOf } from '../../store/people/users.ts';
import { revokeKeys } from '../api-keys.ts';
import { type Context, operation } from '../operation.ts';
import { isoTime, isUnchanged, time, unchangedShape } from '../shapes.ts';
import { roleInput } from './workspaces.ts';

/** Number of keys and addresses that are listed; `key_count` counts all. */
const maxNamed = 100;

const keyLeft = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(keyScopes)),
  last_used_at: time.optional(),
});

/** Keys made by a member, which keep working without them. */
const remains = {
  keys: z
    .array(keyLeft)
    .max(maxNamed)
    .describe(`API keys that they made, themselves or with a key of theirs, and that still work; at most ${maxNamed}.`),
  key_count: z.int().describe('How many such keys there are.'),
  revoked_keys: z.array(z.string()).max(maxNamed).describe(`Ids of keys that were revoked; at most ${maxNamed}.`),
  revoked_key_count: z.int(),
};
const invited = {
  invitations: z
    .array(z.string())
    .max(maxNamed)
    .describe(`Addresses that they invited and that have not joined yet; at most ${maxNamed}.`),
};
const revokeKeysInput = z
  .boolean()
  .default(false)
  .describe('true revokes the API keys that they made; false leaves them, as scripts may depend on them.');

type Remains = z.input<z.ZodObject<typeof remains>>;

function shownKey({ id, name, scopes, lastUsedAt }: ApiKey): z.input<typeof keyLeft> {
  return { id, name, scopes, ...(lastUsedAt !== undefined && { last_used_at: isoTime(lastUsedAt) }) };
}

/** Revokes the keys that a person made, or lists them. */
async function settleKeys(context: Context, userId: string, isRevoking: boolean): Promise<Remains> {
  const { actor, db } = context;
  const at = context.now();
  const keys = await workingKeysMadeBy(db, actor.workspaceId, userId, at);
  const named = keys.slice(0, maxNamed);
  if (!isRevoking) return { keys: named.map(shownKey), key_count: keys.length, revoked_keys: [], revoked_key_count: 0 };
  await revokeKeys(
    context,
    keys.map(({ id }) => id),
    at,
  );
  return { keys: [], key_count: 0, revoked_keys: named.map(({ id }) => id), revoked_key_count: keys.length };
}

/** Ends the sessions of a person in this workspace and the logins of their agents, which have the rights of the old role. */
async function endAccess(context: Context, userId: string): Promise<void> {
  const { actor, db } = context;
  const at = context.now();
  const person = { workspaceId: actor.workspaceId, userId };
  await deleteSessionsOf(db, person, actor.sessionHash);
  if (await revokeGrantsOfPerson(db, person, at)) await recordChange(db, context, 'grant', userId);
}

/** The present member. Refuses to remove the last owner, because no one else could appoint a new one. */
async function findMember({ db, actor }: Context, id: string, isOwnerStill: boolean) {
  const member = await findMemberById(db, actor.workspaceId, id);
  if (!member) throw new AppError('notFound', 'there is no such member');
  if (!isOwnerStill && member.role === 'owner' && !(await hasOtherOwner(db, actor.workspaceId, id)))
    throw new AppError('conflict', 'this is the only owner of the workspace; make somebody else an owner first');
  return member;
}

/** Whether a role has fewer rights than another. `roles` starts with the one that has most. */
const isLess = (role: Role, than: Role) => roles.indexOf(role) > roles.indexOf(than);

const changeMember = operation({
  name: 'changeMember',
  summary:
    'Give a member another role; with less of a role their other sessions and their agents have to sign in again',
  scope: 'manage:write',
  effect: 'write',
  people: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), role: roleInput, revoke_keys: revokeKeysInput }),
  output: z.object({ id: z.string(), role: z.enum(roles), ...remains, unchanged: unchangedShape }),
  async run(context, { id, role, revoke_keys }) {
    const before = await findMember(context, id, role === 'owner');
    const keys = await settleKeys(context, id, revoke_keys);
    if (role === before.role)
      return { id, role, ...keys, ...(keys.revoked_key_count === 0 && { unchanged: true as const }) };
    await saveMember(context.db, { workspaceId: context.actor.workspaceId, userId: id, role, at: context.now() });
    if (isLess(role, before.role)) await endAccess(context, id);
    return { id, role, ...keys };
  },
  isUnchanged,
  audit: (_input, { id, role, unchanged: _, ...left }) => ({ target: id, detail: { role, ...auditOf(left) } }),
});

const removeMember = operation({
  name: 'removeMember',
  summary: 'Remove a member; their sessions in this workspace and the logins of their agents end',
  description:
    'API keys belong to the workspace, so those that the member made go on working unless they are revoked; the answer names them. Whoever kept a copy of one can still use it.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  people: 'owner',
  isTool: false,
  input: z.strictObject({ id: z.string().max(100), revoke_keys: revokeKeysInput }),
  output: z.object({ removed: z.string(), ...remains, ...invited }),
  async run(context, { id, revoke_keys }) {
    await findMember(context, id, false);
    return { removed: id, ...(await endMembership(context, id, revoke_keys)) };
  },
  audit: ({ id }, left) => ({ target: id, ...auditOfEnd(left) }),
});

const leaveWorkspace = operation({
  name: 'leaveWorkspace',
  summary: 'Leave the workspace that this session shows; the session goes on in another one of yours',
  description:
    'Your other sessions in the workspace and the logins of your agents end. API keys that you made belong to the workspace and go on working. The only owner cannot leave.',
  scope: 'manage:read',
  effect: 'write',
  destructive: true,
  people: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ left: z.string(), ...remains, ...invited }),
  async run(context) {
    const { actor, db } = context;
    await findMember(context, actor.id, false);
    const others = (await workspacesOf(db, actor.id, 2)).filter(({ id }) => id !== actor.workspaceId);
    // Without another one the session ends, and the next sign-in makes one.
    if (others[0]) await moveSession(db, actor.sessionHash ?? '', others[0].id);
    return { left: actor.workspaceId, ...(await endMembership(context, actor.id, false)) };
  },
  audit: (_input, left) => auditOfEnd(left),
});

type Left = Remains & { invitations: string[] };

/** Ends a membership, and says what the person leaves behind. */
async function endMembership(context: Context, userId: string, isRevoking: boolean): Promise<Left> {
  const { workspaceId } = context.actor;
  await deleteMember(context.db, workspaceId, userId);
  await endAccess(context, userId);
  const invitations = await invitedBy(context.db, workspaceId, userId, maxNamed);
  return { ...(await settleKeys(context, userId, isRevoking)), invitations };
}

function auditOfEnd({ invitations, ...left }: Left) {
  return { detail: auditOf(left), ...(invitations.length > 0 && { people: { invitations } }) };
}

function auditOf({ keys, revoked_keys, key_count, revoked_key_count }: Remains): { [key: string]: unknown } {
  return {
    ...(key_count > 0 && { working_keys: keys.map(({ id }) => id), key_count }),
    ...(revoked_key_count > 0 && { revoked_keys, revoked_key_count }),
  };
}

export const memberOperations = { changeMember, removeMember, leaveWorkspace };
