import { keyScopes } from '@toolhost/credentials/credential';
import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { maxWebhooks } from '../../notification-events.ts';
import { type ApiKey, findActiveKeysCreatedBy } from '../../store/api-keys.ts';
import {
  deleteModelsCreatedBy,
  findFormerMembers,
  findModelsCreatedBy,
  findSecretsCreatedBy,
  findServersCreatedBy,
  findWebhooksCreatedBy,
} from '../../store/people/member-access.ts';
import { deleteInvitationsSentBy, findInvitedEmails } from '../../store/people/members.ts';
import { findUser } from '../../store/people/users.ts';
import { pauseWebhooksCreatedBy } from '../../store/webhooks.ts';
import { revokeKeys } from '../api-keys.ts';
import { type Context, operation } from '../operation.ts';
import { maxModels } from '../playground/models.ts';
import { lastUse, toIsoTime } from '../shapes.ts';

/** Maximum number of listed entries; the count includes all. */
const maxListed = 100;
const maxFormerMembers = 50;

const keyShape = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(keyScopes)),
  last_used_at: lastUse,
});

/** Access and objects that a person created in a workspace, directly or with one of their API keys. */
export const accessShape = {
  keys: z.array(keyShape).max(maxListed).describe(`Active API keys that they created; at most ${maxListed}.`),
  key_count: z.int().describe('Number of active API keys that they created.'),
  models: z.array(z.string()).max(maxModels).describe('Names of models that they stored and that still exist.'),
  webhooks: z
    .array(z.object({ id: z.string(), origin: z.string() }))
    .max(maxWebhooks)
    .describe(
      'Webhooks that they own. If their access ended, the webhooks are paused until another member confirms them.',
    ),
  servers: z.array(z.string()).max(maxListed).describe(`Slugs of servers that they created; at most ${maxListed}.`),
  server_count: z.int().describe('Number of servers that they created.'),
  secrets: z
    .array(z.object({ server: z.string(), name: z.string() }))
    .max(maxListed)
    .describe(`Secrets whose values they set and may know; at most ${maxListed}.`),
  secret_count: z.int().describe('Number of secrets whose values they set.'),
  invitations: z
    .array(z.string())
    .max(maxListed)
    .describe(`Email addresses that they invited and that have not joined yet; at most ${maxListed}.`),
};
export type MemberAccess = z.input<z.ZodObject<typeof accessShape>>;

/** API keys, models, webhooks, and invitations that were ended. */
export const endedAccessShape = {
  revoked_keys: z.array(z.string()).max(maxListed).describe(`IDs of the revoked API keys; at most ${maxListed}.`),
  revoked_key_count: z.int().describe('Number of revoked API keys.'),
  deleted_models: z.array(z.string()).max(maxModels).describe('Names of the deleted models.'),
  paused_webhooks: z
    .array(z.string())
    .max(maxWebhooks)
    .describe('IDs of the webhooks that are paused until another member confirms them.'),
  revoked_invitations: z
    .array(z.string())
    .max(maxListed)
    .describe(`Email addresses whose invitations were withdrawn; at most ${maxListed}.`),
};
export type EndedAccess = z.input<z.ZodObject<typeof endedAccessShape>>;

export const noEndedAccess: EndedAccess = {
  revoked_keys: [],
  revoked_key_count: 0,
  deleted_models: [],
  paused_webhooks: [],
  revoked_invitations: [],
};

export function hasEndedAccess({ revoked_key_count: keys, ...named }: EndedAccess): boolean {
  const { deleted_models, paused_webhooks, revoked_invitations } = named;
  return keys > 0 || [deleted_models, paused_webhooks, revoked_invitations].some((list) => list.length > 0);
}

function toKeyOutput({ id, name, scopes, lastUsedAt }: ApiKey): z.input<typeof keyShape> {
  return { id, name, scopes, ...(lastUsedAt !== undefined && { last_used_at: toIsoTime(lastUsedAt) }) };
}

export async function findMemberAccess({ db, actor, now }: Context, userId: string): Promise<MemberAccess> {
  const creator = { workspaceId: actor.workspaceId, userId };
  const keys = await findActiveKeysCreatedBy(db, actor.workspaceId, userId, now());
  const servers = await findServersCreatedBy(db, creator, maxListed);
  const secrets = await findSecretsCreatedBy(db, creator, maxListed);
  return {
    keys: keys.slice(0, maxListed).map(toKeyOutput),
    key_count: keys.length,
    models: await findModelsCreatedBy(db, creator),
    webhooks: await findWebhooksCreatedBy(db, creator),
    servers: servers.slugs,
    server_count: servers.count,
    secrets: secrets.secrets,
    secret_count: secrets.count,
    invitations: await findInvitedEmails(db, actor.workspaceId, userId, maxListed),
  };
}

/** Ends everything that gives access: a person's keys, models, webhooks, and invitations. */
export async function endMemberAccess(context: Context, userId: string): Promise<EndedAccess> {
  const { db, actor } = context;
  const at = context.now();
  const creator = { workspaceId: actor.workspaceId, userId };
  const keys = (await findActiveKeysCreatedBy(db, actor.workspaceId, userId, at)).map(({ id }) => id);
  const models = await findModelsCreatedBy(db, creator);
  await revokeKeys(context, keys, at);
  await deleteModelsCreatedBy(db, creator);
  return {
    revoked_keys: keys.slice(0, maxListed),
    revoked_key_count: keys.length,
    deleted_models: models,
    paused_webhooks: await pauseWebhooksCreatedBy(db, creator, at),
    revoked_invitations: (await deleteInvitationsSentBy(db, actor.workspaceId, userId)).slice(0, maxListed),
  };
}

/** Creates audit details with the IDs and names of what remains and of what was ended. */
export function toAccessAudit(
  { keys, key_count, models, webhooks, invitations }: MemberAccess,
  endedAccess: EndedAccess,
) {
  const { revoked_keys, revoked_key_count, deleted_models, paused_webhooks, revoked_invitations } = endedAccess;
  const detail = {
    ...(key_count > 0 && { working_keys: keys.map(({ id }) => id), key_count }),
    ...(models.length > 0 && { models }),
    ...(webhooks.length > 0 && { webhooks: webhooks.map(({ id }) => id) }),
    ...(revoked_key_count > 0 && { revoked_keys, revoked_key_count }),
    ...(deleted_models.length > 0 && { deleted_models }),
    ...(paused_webhooks.length > 0 && { paused_webhooks }),
  };
  const personalDetail = {
    ...(invitations.length > 0 && { invitations }),
    ...(revoked_invitations.length > 0 && { revoked_invitations }),
  };
  return { detail, ...(Object.keys(personalDetail).length > 0 && { people: personalDetail }) };
}

const memberId = z.string().max(100).describe('ID of the person (usr_…).');

const listMemberAccess = operation({
  name: 'listMemberAccess',
  summary: 'List the access and objects that people created in the workspace',
  description:
    'Without an id, returns all former members who still have an API key, a model, a webhook, or an invitation.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ id: memberId.optional() }),
  output: z.object({
    people: z
      .array(z.object({ id: z.string(), name: z.string().optional(), email: z.string().optional(), ...accessShape }))
      .max(maxFormerMembers),
  }),
  async run(context, { id }) {
    const { db, actor, now } = context;
    const ids = id === undefined ? await findFormerMembers(db, actor.workspaceId, now(), maxFormerMembers) : [id];
    const formerMembers = [];
    for (const personId of ids) {
      // An ID from the request may be that of a person who never was in the workspace.
      const user = id === undefined ? await findUser(db, personId) : undefined;
      const { name, email } = { ...user };
      formerMembers.push({
        id: personId,
        ...(name && { name }),
        ...(email && { email }),
        ...(await findMemberAccess(context, personId)),
      });
    }
    return { people: formerMembers };
  },
});

const revokeMemberAccess = operation({
  name: 'revokeMemberAccess',
  summary:
    'Revoke the API keys that a person created, delete their models, pause their webhooks, and withdraw their invitations',
  description:
    'Also works for former members. Their servers and secrets stay, and another member can confirm a webhook.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  dashboardRole: 'owner',
  isTool: false,
  input: z.strictObject({ id: memberId }),
  output: z.object({ id: z.string(), ...endedAccessShape }),
  async run(context, { id }) {
    const endedAccess = await endMemberAccess(context, id);
    if (!hasEndedAccess(endedAccess))
      throw new AppError(
        'notFound',
        'This person has no working API key, model, active webhook, or invitation in this workspace.',
      );
    return { id, ...endedAccess };
  },
  audit: (_input, { id, revoked_invitations, ...detail }) => ({
    target: id,
    detail,
    ...(revoked_invitations.length > 0 && { people: { revoked_invitations } }),
  }),
});

export const memberAccessOperations = { listMemberAccess, revokeMemberAccess };
