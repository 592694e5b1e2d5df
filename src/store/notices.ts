import { type Selectable, sql } from 'kysely';
import { tenantLength } from '../domain/ids.ts';
import { mostNoticesInDay, type Notice, type NoticeEvent } from '../domain/notices.ts';
import { dayMs, startOf } from './calls/call-writer.ts';
import type { Db } from './db.ts';
import { deleteInSteps, type Pause } from './delete-in-steps.ts';
import { olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** One recipient of a notification: the id of a webhook or a person, and the reason why the last attempt failed. */
export type Delivery = {
  to: 'webhook' | 'mail';
  id: string;
  /** Origin of the webhook URL. */
  origin?: string;
  state: 'waiting' | 'delivered' | 'given_up';
  error?: string;
};

export type StoredNotice = Omit<Notice, 'dedupe'> & {
  id: string;
  workspaceId: string;
  at: number;
  deliveries: Delivery[];
  attempts: number;
};

function toNotice(row: Omit<Selectable<Tables['notices']>, 'dedupe' | 'next_at'>): StoredNotice {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    at: row.at,
    event: row.event as NoticeEvent,
    subject: row.subject,
    text: row.text,
    deliveries: JSON.parse(row.deliveries) as Delivery[],
    attempts: row.attempts,
  };
}

const columns = ['id', 'workspace_id', 'at', 'event', 'subject', 'text', 'deliveries', 'attempts'] as const;

/** Stores a notification, unless it was already sent or the daily maximum is reached. */
export async function insertNotice(db: Db, notice: StoredNotice & Pick<Notice, 'dedupe'>): Promise<void> {
  const { id, workspaceId, at, event, subject, text, dedupe, deliveries, attempts } = notice;
  const { count } = await db
    .selectFrom('notices')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('at', '>=', startOf(at, dayMs))
    .executeTakeFirstOrThrow();
  if (Number(count) >= mostNoticesInDay) return;
  const row = { id, workspace_id: workspaceId, at, event, subject, text, dedupe, attempts, next_at: at };
  await db
    .insertInto('notices')
    .values({ ...row, deliveries: JSON.stringify(deliveries) })
    .onConflict((c) => c.columns(['workspace_id', 'dedupe']).doNothing())
    .execute();
}

/** Lists notifications, newest first. */
export async function findNotices(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: StoredNotice[]; next: string | undefined }> {
  const rows = await db
    .selectFrom('notices')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where(olderThan('at', page.after))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows.map(toNotice), page.limit, ({ at, id }) => ({ at, id }));
}

/**
 * Returns the notification that has been due longest for each tenant. Takes no workspace, because one process notifies
 * all.
 */
export async function findDueNotices(
  db: Db,
  now: number,
  { most, except }: { most: number; except: readonly { id: string }[] },
): Promise<StoredNotice[]> {
  const tenant = sql`substr(workspace_id, 1, ${sql.lit(tenantLength)})`;
  const turn = sql<number>`row_number() over (partition by ${tenant} order by next_at, id)`.as('turn');
  const due = db
    .selectFrom('notices')
    .select(columns)
    .select(['next_at', turn])
    .where('next_at', '<=', now)
    .where('id', 'not in', [...except.map(({ id }) => id), ''])
    .as('due');
  const query = db.selectFrom(due).select(columns).where('turn', '=', 1);
  return (await query.orderBy('next_at').limit(most).execute()).map(toNotice);
}

/** Stores the result of an attempt and the time of the next one. */
export async function saveAttempt(
  db: Db,
  { id, workspaceId, deliveries, attempts }: StoredNotice,
  nextAt: number | undefined,
): Promise<void> {
  const update = db.updateTable('notices').where('workspace_id', '=', workspaceId).where('id', '=', id);
  await update.set({ deliveries: JSON.stringify(deliveries), attempts, next_at: nextAt ?? null }).execute();
}

/** Takes no workspace, because retention is the same for all. */
export async function pruneNotices(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'notices', key: ['id'], where: sql`at < ${before}` }, pause);
}
