import { tenantIdLength } from '@toolhost/credentials/ids';
import { type Selectable, sql } from 'kysely';
import { maxNotificationsPerDay, type NotificationEvent, type WorkspaceNotification } from '../notification-events.ts';
import { dayMs, startOfPeriod } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { isOlderThan, type Page, toPage } from './page.ts';
import type { Tables } from './schema.ts';

/** One recipient of a notification: the id of a webhook or a person, and the reason why the last attempt failed. */
export type Delivery = {
  to: 'webhook' | 'mail';
  id: string;
  /** Origin of the webhook URL. */
  origin?: string;
  state: 'waiting' | 'delivered' | 'failed';
  error?: string;
};

export type StoredNotification = Omit<WorkspaceNotification, 'dedupe'> & {
  id: string;
  workspaceId: string;
  at: number;
  deliveries: Delivery[];
  attempts: number;
};

function toNotification(row: Omit<Selectable<Tables['notifications']>, 'dedupe' | 'next_at'>): StoredNotification {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    at: row.at,
    event: row.event as NotificationEvent,
    subject: row.subject,
    text: row.text,
    deliveries: JSON.parse(row.deliveries) as Delivery[],
    attempts: row.attempts,
  };
}

const columns = ['id', 'workspace_id', 'at', 'event', 'subject', 'text', 'deliveries', 'attempts'] as const;

/** Stores a notification, unless it was already sent or the daily maximum is reached. */
export async function insertNotification(
  db: Db,
  notification: StoredNotification & Pick<WorkspaceNotification, 'dedupe'>,
): Promise<void> {
  const { id, workspaceId, at, event, subject, text, dedupe, deliveries, attempts } = notification;
  const { count } = await db
    .selectFrom('notifications')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('at', '>=', startOfPeriod(at, dayMs))
    .executeTakeFirstOrThrow();
  if (Number(count) >= maxNotificationsPerDay) return;
  const row = { id, workspace_id: workspaceId, at, event, subject, text, dedupe, attempts, next_at: at };
  await db
    .insertInto('notifications')
    .values({ ...row, deliveries: JSON.stringify(deliveries) })
    .onConflict((c) => c.columns(['workspace_id', 'dedupe']).doNothing())
    .execute();
}

/** Lists notifications, newest first. */
export async function findNotifications(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: StoredNotification[]; next: string | undefined }> {
  const rows = await db
    .selectFrom('notifications')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where(isOlderThan('at', page.after))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return toPage(rows.map(toNotification), page.limit, ({ at, id }) => ({ at, id }));
}

/** Returns the longest due notification of each tenant. Takes no workspace, because one process notifies all. */
export async function findDueNotifications(
  db: Db,
  now: number,
  { limit, excluded }: { limit: number; excluded: readonly { id: string }[] },
): Promise<StoredNotification[]> {
  const tenant = sql`substr(workspace_id, 1, ${sql.lit(tenantIdLength)})`;
  const rank = sql<number>`row_number() over (partition by ${tenant} order by next_at, id)`.as('turn');
  const due = db
    .selectFrom('notifications')
    .select(columns)
    .select(['next_at', rank])
    .where('next_at', '<=', now)
    .where('id', 'not in', [...excluded.map(({ id }) => id), ''])
    .as('due');
  const query = db.selectFrom(due).select(columns).where('turn', '=', 1);
  return (await query.orderBy('next_at').limit(limit).execute()).map(toNotification);
}

/** Stores the result of an attempt and the time of the next one. */
export async function saveAttempt(
  db: Db,
  { id, workspaceId, deliveries, attempts }: StoredNotification,
  nextAt: number | undefined,
): Promise<void> {
  const update = db.updateTable('notifications').where('workspace_id', '=', workspaceId).where('id', '=', id);
  await update.set({ deliveries: JSON.stringify(deliveries), attempts, next_at: nextAt ?? null }).execute();
}

/** Takes no workspace, because retention is the same for all. */
export async function pruneNotifications(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'notifications', key: ['id'], where: sql`at < ${before}` }, pause);
}
