import { newId } from '@toolhost/credentials/ids';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { type WebhookTarget, webhookSecretPrefix } from '@toolhost/safe-http/webhook';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { z } from 'zod';
import {
  getNotificationPath,
  maxWebhooks,
  notificationEventNames,
  notificationEvents,
} from '../../notification-events.ts';
import { findKeyOrigins, findKeysById } from '../../store/api-keys.ts';
import { findNotifications } from '../../store/notifications.ts';
import { filterMembers } from '../../store/people/members.ts';
import { findUser } from '../../store/people/users.ts';
import { contexts } from '../../store/sealing/sealing.ts';
import {
  findMailEvents,
  findWebhooks,
  insertWebhook,
  removeWebhook,
  saveWebhook,
  setMailEvents,
  type Webhook,
} from '../../store/webhooks.ts';
import { findActorNames } from '../actor-names.ts';
import { type Context, operation, requireServing } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { isUnchanged, nextCursor, pageInputs, parsePage, time, toIsoTime, unchangedShape } from '../shapes.ts';
import { createWebhookBody } from './messages.ts';

const eventsInput = z
  .array(z.enum(notificationEventNames))
  .max(notificationEventNames.length)
  .describe(
    `Events to notify about: ${notificationEventNames.map((name) => `${name} (${notificationEvents[name].label})`).join(', ')}.`,
  );

const webhookRecord = z.object({
  id: z.string(),
  origin: z
    .string()
    .describe('Scheme and host of the URL. The remainder of the URL is never shown, because it may be a secret.'),
  events: z.array(z.enum(notificationEventNames)),
  created_at: time,
  created_by: z.string(),
  paused_at: time.optional().describe('Time at which the webhook was paused; absent if it is active.'),
  unconfirmed: z
    .literal(true)
    .optional()
    .describe(
      "True if the webhook is paused because its owner's access ended. Another member can resume it in the dashboard.",
    ),
});
nameSchema('Webhook', webhookRecord);

const signingSecret = z.string().describe('Signing secret (whsec_…). It cannot be shown again.');

function toRecord(webhook: Webhook): z.input<typeof webhookRecord> {
  const { id, origin, events, createdAt, createdBy, pausedAt, isUnconfirmed } = webhook;
  const paused = pausedAt !== undefined && { paused_at: toIsoTime(pausedAt) };
  const unconfirmed = isUnconfirmed && { unconfirmed: true as const };
  return { id, origin, events, created_at: toIsoTime(createdAt), created_by: createdBy, ...paused, ...unconfirmed };
}

/**
 * Returns the ID of the actor. For an API key, it is the person who created the key.
 * @throws AppError forbidden for a key whose creator is no longer a member
 */
async function getWebhookOwner({ db, actor }: Context): Promise<string> {
  if (actor.kind !== 'api_key') return actor.id;
  const { workspaceId } = actor;
  const origins = await findKeyOrigins(db, workspaceId, await findKeysById(db, workspaceId, [actor.id]));
  const owner = origins.get(actor.id) ?? actor.id;
  if (!owner.startsWith('usr_') || (await filterMembers(db, workspaceId, [owner])).has(owner)) return owner;
  throw new AppError(
    'forbidden',
    'The person who created this API key left the workspace, so the key cannot change or test webhooks. Use the key of a member.',
  );
}

/** Refuses an unconfirmed webhook, except to another member in the dashboard. @throws AppError forbidden */
function requireConfirmed({ actor }: Context, { isUnconfirmed, createdBy }: Webhook): void {
  if (!isUnconfirmed || (actor.role !== undefined && actor.id !== createdBy)) return;
  throw new AppError(
    'forbidden',
    "This webhook is paused because its owner's access ended. Another member can resume it in the dashboard, on the page Notifications.",
  );
}

const listWebhooks = operation({
  name: 'listWebhooks',
  summary: 'List the webhooks of the workspace',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ webhooks: z.array(webhookRecord).max(maxWebhooks) }),
  async run({ db, actor }) {
    return { webhooks: (await findWebhooks(db, actor.workspaceId)).map(toRecord) };
  },
});

const createWebhook = operation({
  name: 'createWebhook',
  summary: 'Create a webhook for events of the workspace; the signing secret is returned only once',
  description:
    'Each notification is a POST request with a JSON body, signed according to Standard Webhooks. If the receiver does not respond with 2xx within ten seconds, delivery is retried for a day.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    url: z.string().min(1).max(2000).describe('URL to send notifications to.'),
    events: eventsInput.min(1),
  }),
  output: webhookRecord.extend({ secret: signingSecret }),
  async run(context, { url, events }) {
    const { db, actor } = context;
    const { workspaceId } = actor;
    const createdBy = await getWebhookOwner(context);
    const target = parseWebhookUrl(context, url);
    if ((await findWebhooks(db, workspaceId)).length >= maxWebhooks)
      throw new AppError(
        'forbidden',
        `the workspace has ${maxWebhooks} webhooks, which is the maximum; delete one first`,
      );
    const id = newId(context.random, 'whk');
    const secret = newSigningSecret(context);
    const webhook: Webhook = {
      id,
      workspaceId,
      origin: target.origin,
      events: [...new Set(events)],
      sealedTarget: sealTarget(context, id, { url: target.href, secret }),
      createdBy,
      createdAt: context.now(),
      pausedAt: undefined,
      isUnconfirmed: false,
    };
    await insertWebhook(db, webhook);
    return { ...toRecord(webhook), secret };
  },
  audit: (_input, { id, origin, events }) => ({ target: id, detail: { origin, events } }),
});

/** @throws AppError invalid */
function parseWebhookUrl({ rules }: Context, urlText: string): URL {
  const url = parseUrl(urlText);
  const isAllowedForm = url && !url.username && !url.password && /^https?:$/.test(url.protocol);
  const problem = isAllowedForm ? rules.urlProblem(url) : 'is not a valid webhook URL; allowed: https://host/path';
  if (!url || problem !== undefined) throw invalidInputError([{ path: 'url', message: problem ?? 'is not a URL' }]);
  url.hash = '';
  return url;
}

function newSigningSecret({ random }: Context): string {
  return webhookSecretPrefix + Buffer.from(random(32)).toString('base64');
}

function sealTarget({ keyring, actor }: Context, id: string, target: WebhookTarget): string {
  return keyring.seal(JSON.stringify(target), contexts.webhook(actor.workspaceId, id));
}

function openTarget({ keyring, actor }: Context, { id, sealedTarget }: Webhook): WebhookTarget {
  return JSON.parse(keyring.open(sealedTarget, contexts.webhook(actor.workspaceId, id))) as WebhookTarget;
}

const createNoWebhookError = () => new AppError('notFound', 'there is no such webhook in this workspace');

/** @throws AppError notFound */
async function getWebhook({ db, actor }: Context, id: string): Promise<Webhook> {
  const webhook = (await findWebhooks(db, actor.workspaceId)).find((candidate) => candidate.id === id);
  if (!webhook) throw createNoWebhookError();
  return webhook;
}

const webhookId = z.string().min(1).max(100).describe('ID of the webhook (whk_…).');

const updateWebhook = operation({
  name: 'updateWebhook',
  summary: 'Change the URL or the events of a webhook, or pause it',
  description:
    'Omitted fields stay unchanged. A URL with another scheme, host, or port gets a new signing secret, because the operator of the previous one knows the old secret. Events that occur while a webhook is paused are not sent later. A webhook belongs to the person who last set its URL. If that person left, only another member can change or resume it, in the dashboard, and then owns it.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    id: webhookId,
    url: z.string().min(1).max(2000).optional().describe('New URL to send notifications to.'),
    events: eventsInput.min(1).optional(),
    paused: z.boolean().optional().describe('If true, pauses the webhook; if false, resumes it.'),
  }),
  output: webhookRecord.extend({ secret: signingSecret.optional(), unchanged: unchangedShape }),
  async run(context, { id, url, events, paused }) {
    const owner = await getWebhookOwner(context);
    const before = await getWebhook(context, id);
    requireConfirmed(context, before);
    const target = openTarget(context, before);
    const newUrl = url === undefined ? undefined : parseWebhookUrl(context, url);
    const isPaused = before.pausedAt !== undefined;
    const isMoved = newUrl !== undefined && newUrl.href !== target.url;
    const shouldChangeOwner = isMoved || (before.isUnconfirmed && paused === false);
    const newEvents = events ? notificationEventNames.filter((name) => events.includes(name)) : before.events;
    const hasNoChanges =
      !isMoved &&
      newEvents.length === before.events.length &&
      newEvents.every((name) => before.events.includes(name)) &&
      (paused ?? isPaused) === isPaused;
    if (hasNoChanges) return { ...toRecord(before), unchanged: true as const };
    const newSecret = newUrl && newUrl.origin !== before.origin ? newSigningSecret(context) : undefined;
    const secret = newSecret ?? target.secret;
    const webhook: Webhook = {
      ...before,
      ...(newUrl && { origin: newUrl.origin, sealedTarget: sealTarget(context, id, { url: newUrl.href, secret }) }),
      events: newEvents,
      pausedAt: (paused ?? isPaused) ? (before.pausedAt ?? context.now()) : undefined,
      ...(shouldChangeOwner && { createdBy: owner, isUnconfirmed: false }),
    };
    await saveWebhook(context.db, webhook);
    return { ...toRecord(webhook), ...(newSecret !== undefined && { secret: newSecret }) };
  },
  isUnchanged,
  audit: ({ id, url, paused }, { origin, events }) => ({
    target: id,
    detail: { ...(url !== undefined && { origin }), events, ...(paused !== undefined && { paused }) },
  }),
});

const deleteWebhook = operation({
  name: 'deleteWebhook',
  summary: 'Delete a webhook and its pending notifications',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: false,
  input: z.strictObject({ id: webhookId }),
  output: z.object({ deleted: z.string() }),
  async run(context, { id }) {
    await getWebhookOwner(context);
    if (!(await removeWebhook(context.db, context.actor.workspaceId, id))) throw createNoWebhookError();
    return { deleted: id };
  },
  audit: ({ id }) => ({ target: id }),
});

const testWebhook = operation({
  name: 'testWebhook',
  summary: 'Send a test notification to a webhook once, and report the response',
  scope: 'manage:write',
  effect: 'call',
  isTool: false,
  input: z.strictObject({ id: webhookId }),
  output: z.object({
    delivered: z.boolean(),
    error: z.string().optional().describe('Reason why the notification was not delivered.'),
  }),
  async run(context, { id }) {
    const { now, baseUrl } = context;
    const { workspaceId } = context.actor;
    await getWebhookOwner(context);
    const webhook = await getWebhook(context, id);
    requireConfirmed(context, webhook);
    const target = openTarget(context, webhook);
    const notification = { event: 'test' as const, subject: id, text: 'This webhook works.', at: now() };
    const body = createWebhookBody(notification, { workspaceId, baseUrl });
    const message = { workspaceId, id: newId(context.random, 'ntc'), at: now(), body };
    const error = await requireServing(context).notifier.sendWebhook(target, message);
    return { delivered: error === undefined, ...(error !== undefined && { error }) };
  },
});

const deliveryRecord = z.object({
  to: z.enum(['webhook', 'mail']),
  name: z
    .string()
    .describe('Origin of the webhook, or name of the person who gets the email. Programs get the ID of the person.'),
  state: z
    .enum(['waiting', 'delivered', 'failed'])
    .describe('State of the delivery. With failed, delivery failed for a day and is no longer retried.'),
  error: z.string().optional().describe('Reason why the last attempt failed.'),
});
nameSchema('Delivery', deliveryRecord);

const listNotifications = operation({
  name: 'listNotifications',
  summary: 'List the notifications of the last 30 days and their deliveries, newest first',
  description: 'Only events with a subscribed webhook or person are detected.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ ...pageInputs }),
  output: z.object({
    notifications: z.array(
      z.object({
        id: z.string(),
        at: time,
        event: z.enum(notificationEventNames),
        text: z.string(),
        page: z.string().describe('Path of the dashboard page for the event.'),
        deliveries: z.array(deliveryRecord).max(100),
        attempts: z.int(),
      }),
    ),
    next_cursor: nextCursor,
  }),
  async run(context, input) {
    const { rows, next } = await findNotifications(context.db, context.actor.workspaceId, parsePage(input));
    const personIds = rows.flatMap(({ deliveries }) =>
      deliveries.filter(({ to }) => to === 'mail').map(({ id }) => id),
    );
    const names = await findActorNames(context, personIds);
    return {
      notifications: rows.map((notification) => ({
        id: notification.id,
        at: toIsoTime(notification.at),
        event: notification.event,
        text: notification.text,
        page: getNotificationPath(notification),
        deliveries: notification.deliveries.map(({ to, id, origin, state, error }) => ({
          to,
          name: origin ?? names.get(id) ?? id,
          state,
          ...(error !== undefined && { error }),
        })),
        attempts: notification.attempts,
      })),
      next_cursor: next,
    };
  },
});

const notificationSettings = z.object({
  events: z.array(z.enum(notificationEventNames)),
  email: z.string().optional().describe('Email address from the identity provider, which notifications are sent to.'),
  mail_available: z.boolean().describe('True if the operator of the service has configured email.'),
});
nameSchema('Notifications', notificationSettings);

async function getSettings({ db, actor, serving }: Context): Promise<z.input<typeof notificationSettings>> {
  const user = await findUser(db, actor.id);
  return {
    events: await findMailEvents(db, actor.workspaceId, actor.id),
    ...(user?.email && { email: user.email }),
    mail_available: serving?.notifier.sendMail !== undefined,
  };
}

const getNotificationSettings = operation({
  name: 'getNotificationSettings',
  summary: 'Get the events that the signed-in person is notified about by email in this workspace',
  scope: 'manage:read',
  effect: 'read',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: notificationSettings,
  run: getSettings,
});

const setNotificationSettings = operation({
  name: 'setNotificationSettings',
  summary: 'Choose the events that the signed-in person is notified about by email in this workspace',
  scope: 'manage:read',
  effect: 'write',
  dashboardRole: 'any',
  isTool: false,
  input: z.strictObject({ events: eventsInput }),
  output: notificationSettings.extend({ unchanged: unchangedShape }),
  async run(context, { events }) {
    const before = await getSettings(context);
    const newEvents = notificationEventNames.filter((name) => events.includes(name));
    if (newEvents.join() === before.events.join()) return { ...before, unchanged: true as const };
    await setMailEvents(context.db, { workspaceId: context.actor.workspaceId, userId: context.actor.id }, newEvents);
    return { ...before, events: newEvents };
  },
  isUnchanged,
  audit: ({ events }) => ({ detail: { events } }),
});

export const notificationOperations = {
  listWebhooks,
  createWebhook,
  updateWebhook,
  deleteWebhook,
  testWebhook,
  listNotifications,
  getNotificationSettings,
  setNotificationSettings,
};
