import { z } from 'zod';
import { readUrl } from '../../domain/http/read-url.ts';
import { newId } from '../../domain/ids.ts';
import { mostWebhooks, noticeEventNames, noticeEvents, noticePath } from '../../domain/notices.ts';
import { AppError, invalid } from '../../errors.ts';
import { type WebhookTarget, webhookSecretPrefix } from '../../outbound/webhook.ts';
import { findNotices } from '../../store/notices.ts';
import { membersAmong } from '../../store/people/members.ts';
import { findUser } from '../../store/people/users.ts';
import { contexts } from '../../store/sealing/sealing.ts';
import {
  insertWebhook,
  removeWebhook,
  saveWebhook,
  setToldOf,
  toldOf,
  type Webhook,
  webhooksOf,
} from '../../store/webhooks.ts';
import { namesFor } from '../names.ts';
import { type Context, operation, servingOf } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { isoTime, isUnchanged, nextCursor, pageFrom, pageInputs, time, unchangedShape } from '../shapes.ts';
import { webhookBody } from './messages.ts';

const eventsInput = z
  .array(z.enum(noticeEventNames))
  .max(noticeEventNames.length)
  .describe(`Of these: ${noticeEventNames.map((name) => `${name} (${noticeEvents[name].label})`).join(', ')}.`);

const webhookRecord = z.object({
  id: z.string(),
  origin: z
    .string()
    .describe('Scheme and host of its address; the rest is shown to nobody, because it may be a secret.'),
  events: z.array(z.enum(noticeEventNames)),
  created_at: time,
  created_by: z.string(),
  paused_at: time.optional().describe('Since when it is told of nothing.'),
  unconfirmed: z
    .literal(true)
    .optional()
    .describe('It is paused because its maker is no longer a member, until a member resumes it in the dashboard.'),
});
nameSchema('Webhook', webhookRecord);

const signingSecret = z.string().describe('whsec_…; it cannot be shown again.');

function toRecord(webhook: Webhook, isUnconfirmed = false): z.input<typeof webhookRecord> {
  const { id, origin, events, createdAt, createdBy, pausedAt } = webhook;
  const paused = pausedAt !== undefined && { paused_at: isoTime(pausedAt) };
  const unconfirmed = isUnconfirmed && { unconfirmed: true as const };
  return { id, origin, events, created_at: isoTime(createdAt), created_by: createdBy, ...paused, ...unconfirmed };
}

/** Ids of the webhooks that are paused until a member confirms them, because their maker is no longer one. */
async function unconfirmedAmong({ db, actor }: Context, webhooks: readonly Webhook[]): Promise<ReadonlySet<string>> {
  const paused = webhooks.filter(({ createdBy, pausedAt }) => pausedAt !== undefined && createdBy.startsWith('usr_'));
  const makers = paused.map(({ createdBy }) => createdBy);
  const members = await membersAmong(db, actor.workspaceId, makers);
  return new Set(paused.filter(({ createdBy }) => !members.has(createdBy)).map(({ id }) => id));
}

const listWebhooks = operation({
  name: 'listWebhooks',
  summary: 'List the webhooks of the workspace',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject({}),
  output: z.object({ webhooks: z.array(webhookRecord).max(mostWebhooks) }),
  async run(context) {
    const webhooks = await webhooksOf(context.db, context.actor.workspaceId);
    const unconfirmed = await unconfirmedAmong(context, webhooks);
    return { webhooks: webhooks.map((webhook) => toRecord(webhook, unconfirmed.has(webhook.id))) };
  },
});

const createWebhook = operation({
  name: 'createWebhook',
  summary: 'Have an address told of events of the workspace; the secret that signs is shown this once',
  description:
    'Each notice is a POST of JSON, signed as Standard Webhooks says. A receiver that does not answer 2xx within ten seconds is tried again for a day.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    url: z.string().min(1).max(2000).describe('Where to send it.'),
    events: eventsInput.min(1),
  }),
  output: webhookRecord.extend({ secret: signingSecret }),
  async run(context, { url, events }) {
    const { db, actor } = context;
    const { workspaceId } = actor;
    const target = checkedUrl(context, url);
    if ((await webhooksOf(db, workspaceId)).length >= mostWebhooks)
      throw new AppError(
        'forbidden',
        `the workspace has ${mostWebhooks} webhooks, which is all that it may have; delete one`,
      );
    const id = newId(context.random, 'whk');
    const secret = newSigningSecret(context);
    const webhook: Webhook = {
      id,
      workspaceId,
      origin: target.origin,
      events: [...new Set(events)],
      sealedTarget: sealed(context, id, { url: target.href, secret }),
      createdBy: actor.id,
      createdAt: context.now(),
      pausedAt: undefined,
    };
    await insertWebhook(db, webhook);
    return { ...toRecord(webhook), secret };
  },
  audit: (_input, { id, origin, events }) => ({ target: id, detail: { origin, events } }),
});

/** @throws AppError invalid */
function checkedUrl({ rules }: Context, text: string): URL {
  const url = readUrl(text);
  const isPlain = url && !url.username && !url.password && /^https?:$/.test(url.protocol);
  const problem = isPlain ? rules.urlProblem(url) : 'is not an address that can be told; allowed: https://host/path';
  if (!url || problem !== undefined) throw invalid([{ path: 'url', message: problem ?? 'is not a URL' }]);
  url.hash = '';
  return url;
}

function newSigningSecret({ random }: Context): string {
  return webhookSecretPrefix + Buffer.from(random(32)).toString('base64');
}

function sealed({ keyring, actor }: Context, id: string, target: WebhookTarget): string {
  return keyring.seal(JSON.stringify(target), contexts.webhook(actor.workspaceId, id));
}

function opened({ keyring, actor }: Context, { id, sealedTarget }: Webhook): WebhookTarget {
  return JSON.parse(keyring.open(sealedTarget, contexts.webhook(actor.workspaceId, id))) as WebhookTarget;
}

const noWebhook = () => new AppError('notFound', 'there is no such webhook in this workspace');

/** @throws AppError notFound */
async function getWebhook({ db, actor }: Context, id: string): Promise<Webhook> {
  const webhook = (await webhooksOf(db, actor.workspaceId)).find((one) => one.id === id);
  if (!webhook) throw noWebhook();
  return webhook;
}

const webhookId = z.string().min(1).max(100).describe('Id of the webhook, whk_…');

const updateWebhook = operation({
  name: 'updateWebhook',
  summary: 'Change the address of a webhook, what it is told of, or pause it',
  description:
    'Omitted fields stay unchanged. An address with another scheme, host, or port gets a new signing secret, because the operator of the previous one knows the old secret. A paused webhook is not told later what happened in the meantime. One whose maker is no longer a member is changed and resumed only by a member in the dashboard, to whom it belongs from then on.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    id: webhookId,
    url: z.string().min(1).max(2000).optional().describe('Where to send it from now on.'),
    events: eventsInput.min(1).optional(),
    paused: z.boolean().optional().describe('Whether it is told of nothing.'),
  }),
  output: webhookRecord.extend({ secret: signingSecret.optional(), unchanged: unchangedShape }),
  async run(context, { id, url, events, paused }) {
    const before = await getWebhook(context, id);
    const target = opened(context, before);
    const next = url === undefined ? undefined : checkedUrl(context, url);
    const isPaused = before.pausedAt !== undefined;
    const isUnconfirmed = (await unconfirmedAmong(context, [before])).has(id);
    if (isUnconfirmed) refusePrograms(context);
    const isConfirming = isUnconfirmed && paused === false;
    const wanted = events ? noticeEventNames.filter((name) => events.includes(name)) : before.events;
    const isSame =
      (next === undefined || next.href === target.url) &&
      wanted.length === before.events.length &&
      wanted.every((name) => before.events.includes(name)) &&
      (paused ?? isPaused) === isPaused;
    if (isSame) return { ...toRecord(before, isUnconfirmed), unchanged: true as const };
    const newSecret = next && next.origin !== before.origin ? newSigningSecret(context) : undefined;
    const secret = newSecret ?? target.secret;
    const webhook: Webhook = {
      ...before,
      ...(next && { origin: next.origin, sealedTarget: sealed(context, id, { url: next.href, secret }) }),
      events: wanted,
      pausedAt: (paused ?? isPaused) ? (before.pausedAt ?? context.now()) : undefined,
      ...(isConfirming && { createdBy: context.actor.id }),
    };
    await saveWebhook(context.db, webhook);
    return {
      ...toRecord(webhook, isUnconfirmed && !isConfirming),
      ...(newSecret !== undefined && { secret: newSecret }),
    };
  },
  isUnchanged,
  audit: ({ id, url, paused }, { origin, events }) => ({
    target: id,
    detail: { ...(url !== undefined && { origin }), events, ...(paused !== undefined && { paused }) },
  }),
});

/** A key that the maker left behind must not change or resume what waits for a member. @throws AppError forbidden */
function refusePrograms({ actor }: Context): void {
  if (actor.role !== undefined) return;
  throw new AppError(
    'forbidden',
    'The person who made this webhook is no longer a member. A member can resume it in the dashboard, on the page Notifications.',
  );
}

const deleteWebhook = operation({
  name: 'deleteWebhook',
  summary: 'Delete a webhook; what it was not told yet is dropped',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: false,
  input: z.strictObject({ id: webhookId }),
  output: z.object({ deleted: z.string() }),
  async run({ db, actor }, { id }) {
    if (!(await removeWebhook(db, actor.workspaceId, id))) throw noWebhook();
    return { deleted: id };
  },
  audit: ({ id }) => ({ target: id }),
});

const testWebhook = operation({
  name: 'testWebhook',
  summary: 'Send a webhook a notice of the type test, once, and say how it was answered',
  scope: 'manage:write',
  effect: 'call',
  isTool: false,
  input: z.strictObject({ id: webhookId }),
  output: z.object({ delivered: z.boolean(), error: z.string().optional().describe('Why it was not delivered.') }),
  async run(context, { id }) {
    const { now, baseUrl } = context;
    const { workspaceId } = context.actor;
    const target = opened(context, await getWebhook(context, id));
    const told = { event: 'test' as const, subject: id, text: 'This webhook works.', at: now() };
    const body = webhookBody(told, { workspaceId, baseUrl });
    const message = { workspaceId, id: newId(context.random, 'ntc'), at: now(), body };
    const error = await servingOf(context).telling.webhook(target, message);
    return { delivered: error === undefined, ...(error !== undefined && { error }) };
  },
});

const deliveryRecord = z.object({
  to: z.enum(['webhook', 'mail']),
  name: z.string().describe('Origin of the webhook, or the person who is mailed; programs get the id of the person.'),
  state: z.enum(['waiting', 'delivered', 'given_up']).describe('given_up: it was tried for a day.'),
  error: z.string().optional().describe('Why the last attempt failed.'),
});
nameSchema('Delivery', deliveryRecord);

const listNotices = operation({
  name: 'listNotices',
  summary: 'List what the workspace was told of in the last 30 days, newest first, and who was told',
  description: 'Only what a webhook or a person wants to be told of is noticed at all.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ ...pageInputs }),
  output: z.object({
    notices: z.array(
      z.object({
        id: z.string(),
        at: time,
        event: z.enum(noticeEventNames),
        text: z.string(),
        page: z.string().describe('Path of the page of the dashboard that it is about.'),
        deliveries: z.array(deliveryRecord).max(100),
        attempts: z.int(),
      }),
    ),
    next_cursor: nextCursor,
  }),
  async run(context, input) {
    const { rows, next } = await findNotices(context.db, context.actor.workspaceId, pageFrom(input));
    const people = rows.flatMap(({ deliveries }) => deliveries.filter(({ to }) => to === 'mail').map(({ id }) => id));
    const names = await namesFor(context, people);
    return {
      notices: rows.map((notice) => ({
        id: notice.id,
        at: isoTime(notice.at),
        event: notice.event,
        text: notice.text,
        page: noticePath(notice),
        deliveries: notice.deliveries.map(({ to, id, origin, state, error }) => ({
          to,
          name: origin ?? names.get(id) ?? id,
          state,
          ...(error !== undefined && { error }),
        })),
        attempts: notice.attempts,
      })),
      next_cursor: next,
    };
  },
});

const ownNotifications = z.object({
  events: z.array(z.enum(noticeEventNames)),
  email: z.string().optional().describe('Where mail goes: the address that the identity provider knows.'),
  mail_available: z.boolean().describe('Whether the operator of the service has set up mail.'),
});
nameSchema('Notifications', ownNotifications);

async function shown({ db, actor, serving }: Context): Promise<z.input<typeof ownNotifications>> {
  const user = await findUser(db, actor.id);
  return {
    events: await toldOf(db, actor.workspaceId, actor.id),
    ...(user?.email && { email: user.email }),
    mail_available: serving?.telling.mail !== undefined,
  };
}

const getNotifications = operation({
  name: 'getNotifications',
  summary: 'What the signed-in person is told of by mail in this workspace',
  scope: 'manage:read',
  effect: 'read',
  people: 'any',
  isTool: false,
  input: z.strictObject({}),
  output: ownNotifications,
  run: shown,
});

const setNotifications = operation({
  name: 'setNotifications',
  summary: 'Choose what the signed-in person is told of by mail in this workspace',
  scope: 'manage:read',
  effect: 'write',
  people: 'any',
  isTool: false,
  input: z.strictObject({ events: eventsInput }),
  output: ownNotifications.extend({ unchanged: unchangedShape }),
  async run(context, { events }) {
    const before = await shown(context);
    const wanted = noticeEventNames.filter((name) => events.includes(name));
    if (wanted.join() === before.events.join()) return { ...before, unchanged: true as const };
    await setToldOf(context.db, { workspaceId: context.actor.workspaceId, userId: context.actor.id }, wanted);
    return { ...before, events: wanted };
  },
  isUnchanged,
  audit: ({ events }) => ({ detail: { events } }),
});

export const noticeOperations = {
  listWebhooks,
  createWebhook,
  updateWebhook,
  deleteWebhook,
  testWebhook,
  listNotices,
  getNotifications,
  setNotifications,
};
