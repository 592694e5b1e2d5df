import { type Selectable, sql } from 'kysely';
import type { NotificationEvent } from '../notification-events.ts';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';

/** Webhook that is notified of events. `sealedTarget` contains its URL and secret. */
export type Webhook = {
  id: string;
  workspaceId: string;
  origin: string;
  events: NotificationEvent[];
  sealedTarget: string;
  /** User who set the URL; for an API key, the person who owns the key. */
  createdBy: string;
  createdAt: number;
  /** Time since which the webhook receives no events. */
  pausedAt: number | undefined;
  /** True if the webhook waits for confirmation by a member, because the access of its creator ended. */
  isUnconfirmed: boolean;
};

function toWebhook(row: Selectable<Tables['webhooks']>): Webhook {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    origin: row.origin,
    events: JSON.parse(row.events) as NotificationEvent[],
    sealedTarget: row.sealed_target,
    createdBy: row.created_by,
    createdAt: row.created_at,
    pausedAt: row.paused_at ?? undefined,
    isUnconfirmed: row.unconfirmed === 1,
  };
}

/** Lists all webhooks of a workspace, oldest first. A workspace has only a few. */
export async function findWebhooks(db: Db, workspaceId: string): Promise<Webhook[]> {
  const query = db.selectFrom('webhooks').selectAll().where('workspace_id', '=', workspaceId);
  return (await query.orderBy('created_at').orderBy('id').execute()).map(toWebhook);
}

export async function insertWebhook(db: Db, webhook: Webhook): Promise<void> {
  const { id, workspaceId, origin, events, sealedTarget, createdBy, createdAt } = webhook;
  await db
    .insertInto('webhooks')
    .values({
      id,
      workspace_id: workspaceId,
      origin,
      events: JSON.stringify(events),
      sealed_target: sealedTarget,
      created_by: createdBy,
      created_at: createdAt,
      paused_at: null,
      unconfirmed: 0,
    })
    .execute();
}

/** Updates the changeable fields of a webhook. */
export async function saveWebhook(db: Db, webhook: Webhook): Promise<void> {
  const { id, workspaceId, origin, sealedTarget, createdBy, pausedAt = null } = webhook;
  const events = JSON.stringify(webhook.events);
  const unconfirmed = webhook.isUnconfirmed ? 1 : 0;
  const values = { origin, events, sealed_target: sealedTarget, created_by: createdBy, paused_at: pausedAt };
  await db
    .updateTable('webhooks')
    .set({ ...values, unconfirmed })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute();
}

/** Pauses the webhooks of a person until another member confirms them. Returns the IDs of those that were confirmed. */
export async function pauseWebhooksCreatedBy(
  db: Db,
  { workspaceId, userId }: { workspaceId: string; userId: string },
  pausedAt: number,
): Promise<string[]> {
  const rows = await db
    .updateTable('webhooks')
    .set({ paused_at: sql<number>`coalesce(paused_at, ${pausedAt})`, unconfirmed: 1 })
    .where('workspace_id', '=', workspaceId)
    .where('created_by', '=', userId)
    .where('unconfirmed', '=', 0)
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** Returns false if the webhook does not exist. */
export async function removeWebhook(db: Db, workspaceId: string, id: string): Promise<boolean> {
  const deletion = db.deleteFrom('webhooks').where('workspace_id', '=', workspaceId).where('id', '=', id);
  return (await deletion.executeTakeFirst()).numDeletedRows > 0n;
}

/** Returns the events that a member is notified of by email. */
export async function findMailEvents(db: Db, workspaceId: string, userId: string): Promise<NotificationEvent[]> {
  const query = db.selectFrom('members').select('mail_events').where('workspace_id', '=', workspaceId);
  const row = await query.where('user_id', '=', userId).executeTakeFirst();
  return row?.mail_events ? (JSON.parse(row.mail_events) as NotificationEvent[]) : [];
}

export async function setMailEvents(
  db: Db,
  { workspaceId, userId }: { workspaceId: string; userId: string },
  events: readonly NotificationEvent[],
): Promise<void> {
  const mailEvents = events.length > 0 ? JSON.stringify(events) : null;
  const update = db.updateTable('members').set({ mail_events: mailEvents }).where('workspace_id', '=', workspaceId);
  await update.where('user_id', '=', userId).execute();
}

export type MailSubscriber = { userId: string; email: string; events: NotificationEvent[] };

/** Lists members who are notified by email, at most `limit`, in the order in which they joined. */
export async function findMailSubscribers(db: Db, workspaceId: string, limit: number): Promise<MailSubscriber[]> {
  const rows = await db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select(['members.user_id', 'users.email', 'members.mail_events'])
    .where('members.workspace_id', '=', workspaceId)
    .where('members.mail_events', 'is not', null)
    .where('users.email', 'is not', null)
    .orderBy('members.created_at')
    .orderBy('members.user_id')
    .limit(limit)
    .execute();
  return rows.map(({ user_id: userId, email, mail_events: mailEvents }) => ({
    userId,
    email: email ?? '',
    events: JSON.parse(mailEvents ?? '[]') as NotificationEvent[],
  }));
}

/**
 * Lists workspaces with at least one subscriber, ordered by id. Takes no workspace, because one process notifies all.
 */
export async function findSubscribedWorkspaces(db: Db, after: string, limit: number): Promise<string[]> {
  const members = db.selectFrom('members').select('workspace_id').where('mail_events', 'is not', null);
  const webhooks = db.selectFrom('webhooks').select('workspace_id').where('paused_at', 'is', null);
  const subscribed = webhooks.union(members).as('listening');
  const query = db.selectFrom(subscribed).select('workspace_id').where('workspace_id', '>', after);
  const rows = await query.orderBy('workspace_id').limit(limit).execute();
  return rows.map((row) => row.workspace_id);
}
