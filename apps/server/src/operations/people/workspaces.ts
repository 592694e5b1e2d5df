import { roles } from '@toolhost/credentials/credential';
import { AppError } from '@toolhost/errors/errors';
import { singleLineText } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { foldAddressCase, maxAddressLength } from '../../email-address.ts';
import { encodeCursor } from '../../store/page.ts';
import {
  deleteInvitation,
  findInvitation,
  invitationLifetimeMs,
  isMemberAddress,
  listPeople,
  saveInvitation,
} from '../../store/people/members.ts';
import { moveSession } from '../../store/people/sessions.ts';
import {
  chooseWorkspace,
  findJoinedWorkspace,
  findJoinedWorkspaces,
  findUser,
  type JoinedWorkspace,
} from '../../store/people/users.ts';
import { findWorkspace, renameWorkspace } from '../../store/workspaces.ts';
import { type Context, operation } from '../operation.ts';
import { checkMemberQuota } from '../quotas/quotas.ts';
import { nameSchema } from '../schema-names.ts';
import { isUnchanged, nextCursor, pageInputs, parsePage, time, toIsoTime, unchangedShape } from '../shapes.ts';

export const roleInput = z
  .enum(roles)
  .describe('Role of the member: owner (full access), editor (everything except members), or viewer (read only).');
/** Maximum number of a person's workspaces that are listed. */
export const maxWorkspaces = 100;
const workspaceRecord = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(roles),
  own: z.boolean().describe('True if this person created the workspace; false if they were invited to it.'),
  chosen: z.boolean().describe('True if this person has ever switched to the workspace.'),
});
nameSchema('Workspace', workspaceRecord);
const sessionRecord = z.object({
  user: z.object({ id: z.string(), name: z.string().optional(), email: z.string().optional() }),
  workspace: workspaceRecord,
  workspaces: z
    .array(workspaceRecord)
    .max(maxWorkspaces)
    .describe('Workspaces that the person created, then those that they joined; at most 100.'),
  base_url: z.string(),
  management_url: z.string(),
  call_retention_days: z.int().describe('Number of days that call records are retained.'),
  audit_retention_days: z.int().describe('Number of days that audit events are retained.'),
});
nameSchema('Session', sessionRecord);
const memberRecord = z.object({
  id: z.string(),
  name: z.string().optional(),
  email: z.string().optional(),
  role: z.enum(roles),
  role_group: z
    .string()
    .optional()
    .describe('Group of the identity provider that the role comes from; absent if a member gave the role.'),
  created_at: time,
});
nameSchema('Member', memberRecord);
const invitationRecord = z.object({
  email: z.string(),
  role: z.enum(roles),
  created_at: time,
  unconfirmed: z
    .literal(true)
    .optional()
    .describe(
      'True if the sender is no longer an owner. No one can join with the invitation until an owner invites the address again.',
    ),
});
nameSchema('Invitation', invitationRecord);

function toWorkspaceOutput({ id, name, role, isOwn, isChosen }: JoinedWorkspace): z.input<typeof workspaceRecord> {
  return { id, name, role, own: isOwn, chosen: isChosen };
}

async function describeSession(context: Context, workspaceId: string): Promise<z.input<typeof sessionRecord>> {
  const { actor, db } = context;
  const user = await findUser(db, actor.id);
  const workspaces = await findJoinedWorkspaces(db, actor.id, maxWorkspaces);
  const workspace = await findJoinedWorkspace(db, actor.id, workspaceId);
  if (!user || !workspace) throw new AppError('notFound', 'this workspace is not one of yours');
  return {
    user: {
      id: user.id,
      ...(user.name !== null && { name: user.name }),
      ...(user.email !== null && { email: user.email }),
    },
    workspace: toWorkspaceOutput(workspace),
    workspaces: workspaces.map(toWorkspaceOutput),
    base_url: context.baseUrl,
    management_url: context.serverUrl(context.rules.managementSlug),
    call_retention_days: context.callRetentionDays,
    audit_retention_days: context.auditRetentionDays,
  };
}

const getSession = operation({
  name: 'getSession',
  summary: 'Get the signed-in person and their current workspace',
  scope: 'manage:read',
  effect: 'read',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: sessionRecord,
  run: (context) => describeSession(context, context.actor.workspaceId),
});

const switchWorkspace = operation({
  name: 'switchWorkspace',
  summary: 'Switch the session to another workspace, in which later sign-ins and agent logins also start',
  scope: 'manage:read',
  effect: 'write',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ workspace_id: z.string().max(100) }),
  output: sessionRecord.extend({ unchanged: unchangedShape }),
  async run(context, { workspace_id }) {
    const { actor, db } = context;
    const session = await describeSession(context, workspace_id);
    if (workspace_id === actor.workspaceId) return { ...session, unchanged: true as const };
    await moveSession(db, actor.sessionHash ?? '', workspace_id);
    await chooseWorkspace(db, { workspaceId: workspace_id, userId: actor.id, at: context.now() });
    return describeSession(context, workspace_id);
  },
  isUnchanged,
});

export const workspaceName = singleLineText(100);

const renameWorkspaceOperation = operation({
  name: 'renameWorkspace',
  summary: 'Rename the workspace; people see its name on the consent page of its servers',
  scope: 'manage:write',
  effect: 'write',
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({
    name: workspaceName,
  }),
  output: z.object({ name: z.string(), unchanged: unchangedShape }),
  async run(context, { name }) {
    if ((await findWorkspace(context.db, context.actor.workspaceId))?.name === name)
      return { name, unchanged: true as const };
    await renameWorkspace(context.db, context.actor.workspaceId, name);
    return { name };
  },
  isUnchanged,
  audit: (_input, { name }) => ({ detail: { name } }),
});

const listMembers = operation({
  name: 'listMembers',
  summary: 'List the members of the workspace and the pending invitations',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ ...pageInputs, limit: pageInputs.limit.default(200) }),
  output: z.object({
    members: z.array(memberRecord),
    invitations: z.array(invitationRecord),
    next_cursor: nextCursor,
  }),
  async run({ db, actor }, input) {
    const { members, invitations, next } = await listPeople(db, actor.workspaceId, parsePage(input));
    return {
      members: members.map(({ userId, name, email, role, roleGroup, createdAt }) => ({
        id: userId,
        ...(name !== null && { name }),
        ...(email !== null && { email }),
        role,
        ...(roleGroup !== null && { role_group: roleGroup }),
        created_at: toIsoTime(createdAt),
      })),
      invitations: invitations.map(({ email, role, createdAt, isUnconfirmed }) => ({
        email,
        role,
        created_at: toIsoTime(createdAt),
        ...(isUnconfirmed && { unconfirmed: true as const }),
      })),
      ...(next && { next_cursor: encodeCursor(next) }),
    };
  },
});

const inviteMember = operation({
  name: 'inviteMember',
  summary: 'Invite a person, who joins when they sign in with the invited address',
  description:
    'An invitation from someone who is no longer an owner cannot be used until an owner invites the address again.',
  scope: 'manage:write',
  effect: 'write',
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({
    email: z
      .email('allowed: one email address, such as anna@example.com')
      .max(maxAddressLength)
      .describe('Email address of the person at their identity provider.'),
    role: roleInput,
  }),
  output: z.object({ email: z.string(), role: z.enum(roles), unchanged: unchangedShape }),
  async run(context, { email, role }) {
    const { actor, db } = context;
    const address = foldAddressCase(email);
    if (await isMemberAddress(db, actor.workspaceId, address)) {
      throw new AppError('conflict', `${address} is already a member`);
    }
    const { workspaceId } = actor;
    const existing = await findInvitation(db, workspaceId, address);
    // An old invitation is replaced, so that it does not expire soon.
    const isRecent = existing && context.now() - existing.createdAt < invitationLifetimeMs / 2;
    if (isRecent && !existing.isUnconfirmed && existing.role === role)
      return { email: address, role, unchanged: true as const };
    await saveInvitation(db, { workspaceId, email: address, role, invitedBy: actor.id, createdAt: context.now() });
    if (!existing) await checkMemberQuota(context);
    return { email: address, role };
  },
  isUnchanged,
  audit: (_input, { email, role }) => ({ detail: { role }, people: { email } }),
});

const revokeInvitation = operation({
  name: 'revokeInvitation',
  summary: 'Withdraw an invitation',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ email: z.string().max(maxAddressLength) }),
  output: z.object({ withdrawn: z.string() }),
  async run({ db, actor }, { email }) {
    if (!(await deleteInvitation(db, actor.workspaceId, foldAddressCase(email)))) {
      throw new AppError('notFound', 'there is no such invitation in this workspace');
    }
    return { withdrawn: email };
  },
  audit: ({ email }) => ({ people: { email } }),
});

export const peopleOperations = {
  getSession,
  switchWorkspace,
  renameWorkspace: renameWorkspaceOperation,
  listMembers,
  inviteMember,
  revokeInvitation,
};
