import { z } from 'zod';
import { keyScopes } from '../../domain/credentials/credential.ts';
import { mostWebhooks } from '../../domain/notices.ts';
import { AppError } from '../../errors.ts';
import { type ApiKey, workingKeysMadeBy } from '../../store/api-keys.ts';
import { deleteInvitationsBy, invitedBy } from '../../store/people/members.ts';
import {
  deleteModelsMadeBy,
  modelsMadeBy,
  peopleWhoLeft,
  secretsMadeBy,
  serversMadeBy,
  webhooksMadeBy,
} from '../../store/people/remains.ts';
import { findUser } from '../../store/people/users.ts';
import { pauseWebhooksOf } from '../../store/webhooks.ts';
import { revokeKeys } from '../api-keys.ts';
import { type Context, operation } from '../operation.ts';
import { mostModels } from '../playground/models.ts';
import { isoTime, time } from '../shapes.ts';

/** Maximum number of listed entries; the count includes all. */
const maxNamed = 100;
/** Maximum number of former members that are listed. */
const maxPeople = 50;

const keyLeft = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(keyScopes)),
  last_used_at: time.optional(),
});

/** Access and objects that a person created in a workspace, directly or with one of their API keys. */
export const remains = {
  keys: z.array(keyLeft).max(maxNamed).describe(`Active API keys that they created; at most ${maxNamed}.`),
  key_count: z.int().describe('Number of active API keys that they created.'),
  models: z.array(z.string()).max(mostModels).describe('Names of models that they stored and that still exist.'),
  webhooks: z
    .array(z.object({ id: z.string(), origin: z.string() }))
    .max(mostWebhooks)
    .describe(
      'Webhooks that they own. If their access ended, the webhooks are paused until another member confirms them.',
    ),
  servers: z.array(z.string()).max(maxNamed).describe(`Slugs of servers that they created; at most ${maxNamed}.`),
  server_count: z.int().describe('Number of servers that they created.'),
  secrets: z
    .array(z.object({ server: z.string(), name: z.string() }))
    .max(maxNamed)
    .describe(`Secrets whose values they set and may know; at most ${maxNamed}.`),
  secret_count: z.int().describe('Number of secrets whose values they set.'),
  invitations: z
    .array(z.string())
    .max(maxNamed)
    .describe(`Email addresses that they invited and that have not joined yet; at most ${maxNamed}.`),
};
export type Remains = z.input<z.ZodObject<typeof remains>>;

/** API keys, models, webhooks, and invitations that were ended. */
export const ended = {
  revoked_keys: z.array(z.string()).max(maxNamed).describe(`IDs of the revoked API keys; at most ${maxNamed}.`),
  revoked_key_count: z.int().describe('Number of revoked API keys.'),
  deleted_models: z.array(z.string()).max(mostModels).describe('Names of the deleted models.'),
  paused_webhooks: z
    .array(z.string())
    .max(mostWebhooks)
    .describe('IDs of the webhooks that are paused until another member confirms them.'),
  withdrawn_invitations: z
    .array(z.string())
    .max(maxNamed)
    .describe(`Email addresses whose invitations were withdrawn; at most ${maxNamed}.`),
};
export type Ended = z.input<z.ZodObject<typeof ended>>;

export const nothingEnded: Ended = {
  revoked_keys: [],
  revoked_key_count: 0,
  deleted_models: [],
  paused_webhooks: [],
  withdrawn_invitations: [],
};

export function hasEnded({ revoked_key_count: keys, ...named }: Ended): boolean {
  const { deleted_models, paused_webhooks, withdrawn_invitations } = named;
  return keys > 0 || [deleted_models, paused_webhooks, withdrawn_invitations].some((list) => list.length > 0);
}

function shownKey({ id, name, scopes, lastUsedAt }: ApiKey): z.input<typeof keyLeft> {
  return { id, name, scopes, ...(lastUsedAt !== undefined && { last_used_at: isoTime(lastUsedAt) }) };
}

export async function remainsOf({ db, actor, now }: Context, userId: string): Promise<Remains> {
  const maker = { workspaceId: actor.workspaceId, userId };
  const keys = await workingKeysMadeBy(db, actor.workspaceId, userId, now());
  const servers = await serversMadeBy(db, maker, maxNamed);
  const secrets = await secretsMadeBy(db, maker, maxNamed);
  return {
    keys: keys.slice(0, maxNamed).map(shownKey),
    key_count: keys.length,
    models: await modelsMadeBy(db, maker),
    webhooks: await webhooksMadeBy(db, maker),
    servers: servers.slugs,
    server_count: servers.count,
    secrets: secrets.secrets,
    secret_count: secrets.count,
    invitations: await invitedBy(db, actor.workspaceId, userId, maxNamed),
  };
}

/** Ends everything that gives access: a person's keys, models, webhooks, and invitations. */
export async function endRemainsOf(context: Context, userId: string): Promise<Ended> {
  const { db, actor } = context;
  const at = context.now();
  const maker = { workspaceId: actor.workspaceId, userId };
  const keys = (await workingKeysMadeBy(db, actor.workspaceId, userId, at)).map(({ id }) => id);
  const models = await modelsMadeBy(db, maker);
  await revokeKeys(context, keys, at);
  await deleteModelsMadeBy(db, maker);
  return {
    revoked_keys: keys.slice(0, maxNamed),
    revoked_key_count: keys.length,
    deleted_models: models,
    paused_webhooks: await pauseWebhooksOf(db, maker, at),
    withdrawn_invitations: (await deleteInvitationsBy(db, actor.workspaceId, userId)).slice(0, maxNamed),
  };
}

/** Creates audit details with the IDs and names of what remains and of what was ended. */
export function auditOfRemains({ keys, key_count, models, webhooks, invitations }: Remains, done: Ended) {
  const { revoked_keys, revoked_key_count, deleted_models, paused_webhooks, withdrawn_invitations } = done;
  const detail = {
    ...(key_count > 0 && { working_keys: keys.map(({ id }) => id), key_count }),
    ...(models.length > 0 && { models }),
    ...(webhooks.length > 0 && { webhooks: webhooks.map(({ id }) => id) }),
    ...(revoked_key_count > 0 && { revoked_keys, revoked_key_count }),
    ...(deleted_models.length > 0 && { deleted_models }),
    ...(paused_webhooks.length > 0 && { paused_webhooks }),
  };
  const people = {
    ...(invitations.length > 0 && { invitations }),
    ...(withdrawn_invitations.length > 0 && { withdrawn_invitations }),
  };
  return { detail, ...(Object.keys(people).length > 0 && { people }) };
}

const memberId = z.string().max(100).describe('ID of the person (usr_…).');

const listRemains = operation({
  name: 'listRemains',
  summary: 'List the access and objects that people created in the workspace',
  description:
    'Without an id, returns all former members who still have an API key, a model, a webhook, or an invitation.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  people: 'any',
  isTool: false,
  input: z.strictObject({ id: memberId.optional() }),
  output: z.object({
    people: z
      .array(z.object({ id: z.string(), name: z.string().optional(), email: z.string().optional(), ...remains }))
      .max(maxPeople),
  }),
  async run(context, { id }) {
    const { db, actor, now } = context;
    const ids = id === undefined ? await peopleWhoLeft(db, actor.workspaceId, now(), maxPeople) : [id];
    const people = [];
    for (const one of ids) {
      // An ID from the request may be that of a person who never was in the workspace.
      const user = id === undefined ? await findUser(db, one) : undefined;
      const { name, email } = { ...user };
      people.push({ id: one, ...(name && { name }), ...(email && { email }), ...(await remainsOf(context, one)) });
    }
    return { people };
  },
});

const endRemains = operation({
  name: 'endRemains',
  summary:
    'Revoke the API keys that a person created, delete their models, pause their webhooks, and withdraw their invitations',
  description:
    'Also works for former members. Their servers and secrets stay, and another member can confirm a webhook.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  people: 'owner',
  isTool: false,
  input: z.strictObject({ id: memberId }),
  output: z.object({ id: z.string(), ...ended }),
  async run(context, { id }) {
    const done = await endRemainsOf(context, id);
    if (!hasEnded(done))
      throw new AppError(
        'notFound',
        'This person has no working API key, model, active webhook, or invitation in this workspace.',
      );
    return { id, ...done };
  },
  audit: (_input, { id, withdrawn_invitations, ...detail }) => ({
    target: id,
    detail,
    ...(withdrawn_invitations.length > 0 && { people: { withdrawn_invitations } }),
  }),
});

export const remainsOperations = { listRemains, endRemains };
