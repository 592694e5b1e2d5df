import { randomBytes } from 'node:crypto';
import { newId } from '../../domain/ids.ts';
import { type AuditEvent, insertAuditEvent } from '../audit-events.ts';
import { dayMs, startOf } from '../calls/call-counts.ts';
import { takeOfQuotas } from '../calls/call-quota-use.ts';
import type { Db } from '../db.ts';

/**
 * Most events of the logins at one server that a day (UTC) keeps one by one. No quota of the workspace counts them, and
 * strangers may begin and refuse as many logins as they like.
 */
const mostInDay = { login: 10_000, loginRevoked: 10_000, loginFailed: 500 } as const;

/** An event of a login in the workspace that it belongs to. */
export type LoginEventRow = AuditEvent & { operation: keyof typeof mostInDay };

/** Writes an event down, in the transaction of what it is about. Those above the most of the day are one row, with their number. */
export async function insertLoginEvent(db: Db, serverId: string, event: LoginEventRow): Promise<void> {
  const { workspace_id: workspaceId, operation } = event;
  const startsAt = startOf(event.at, dayMs);
  const ref = `${workspaceId} ${serverId}`;
  const quota = mostInDay[operation];
  const [use] = await takeOfQuotas(db, [{ kind: operation, ref, span: 'day', startsAt, quota, calls: 1 }]);
  if (use?.granted === 1) return insertAuditEvent(db, event);
  await countFurther(db, { ...event, id: `aud_${operation}_${workspaceId}_${serverId}_${startsAt / dayMs}` });
}

/** Nobody else counts meanwhile: the row of the quota is locked until the end of the transaction. */
async function countFurther(db: Db, event: AuditEvent): Promise<void> {
  const known = await db
    .selectFrom('audit_events')
    .select('detail')
    .where('workspace_id', '=', event.workspace_id)
    .where('id', '=', event.id)
    .executeTakeFirst();
  const { further = 0 } = JSON.parse(known?.detail ?? '{}') as { further?: number };
  const detail = JSON.stringify({ further: further + 1 });
  await db
    .insertInto('audit_events')
    .values({ ...event, detail })
    .onConflict((c) => c.column('id').doUpdateSet({ detail }))
    .execute();
}

/** How many logins of a workspace at one server upkeep has ended, and why. */
export type EndedLogins = { workspaceId: string; slug: string; logins: number; reason: string };

/** Tells a workspace that upkeep has ended logins at a server. */
export function insertEndedLogins(db: Db, { workspaceId, slug, ...detail }: EndedLogins, at: number): Promise<void> {
  return insertAuditEvent(db, {
    id: newId(randomBytes, 'aud'),
    workspace_id: workspaceId,
    at,
    actor_kind: 'service',
    actor_id: 'upkeep',
    operation: 'loginsEnded',
    target: slug,
    detail: JSON.stringify(detail),
    request_id: 'upkeep',
  });
}
