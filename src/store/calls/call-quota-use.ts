import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

/**
 * One minute or day (UTC) of the quota of a server, a workspace, a key, or the strangers (unauthenticated callers) of a server;
 * or of the events of the logins at a server, of the bytes of the new logins of a workspace or a server, or of the details in its
 * audit. `startsAt` is in epoch ms.
 */
export type QuotaPeriod = { kind: string; ref: string; span: 'minute' | 'day'; startsAt: number };

/** Calls that a process requests from a quota. */
export type QuotaWish = QuotaPeriod & { quota: number; calls: number };
/** Number of calls granted, and the total that all processes have taken, these included. */
export type QuotaGrant = { granted: number; taken: number };

/** Minutes are kept until their day is over by every clock. */
const keptMs = { minute: 3_600_000, day: 2 * 86_400_000 };

// No query here names a workspace: the ids come from calls that were just admitted.

/** Takes calls from quotas, fewer where fewer are left; results in the order of the list. All processes together never exceed a quota. */
export async function takeOfQuotas(db: Db, wishes: readonly QuotaWish[]): Promise<QuotaGrant[]> {
  const rows = await db
    .insertInto('call_quota_use')
    .values(
      inOrder(wishes).map((wish) => {
        const calls = Math.min(wish.calls, wish.quota);
        return { ...columnsOf(wish), quota: wish.quota, calls, granted: calls };
      }),
    )
    .onConflict((conflict) =>
      conflict.columns(['kind', 'ref', 'span', 'starts_at']).doUpdateSet({
        quota: sql<number>`excluded.quota`,
        calls: sql<number>`call_quota_use.calls + ${granted}`,
        granted,
      }),
    )
    .returning(['kind', 'ref', 'span', 'starts_at', 'calls', 'granted'])
    .execute();
  const grants = new Map(
    rows.map((row) => [
      keyOf({ ...row, startsAt: Number(row.starts_at) }),
      { granted: Number(row.granted), taken: Number(row.calls) },
    ]),
  );
  return wishes.map((wish) => grants.get(keyOf(wish)) ?? { granted: 0, taken: wish.quota });
}

/** The rest of a quota, when less is left than requested. */
const granted = sql<number>`case
  when call_quota_use.calls + excluded.granted <= excluded.quota then excluded.granted
  when call_quota_use.calls >= excluded.quota then 0
  else excluded.quota - call_quota_use.calls
end`;

/** Adds calls that were made while the database did not answer, or gives back (below 0) those that were taken and not made. */
export async function settleQuotas(db: Db, uses: readonly (QuotaPeriod & { calls: number })[]): Promise<void> {
  await db
    .insertInto('call_quota_use')
    .values(
      inOrder(uses).map((use) => ({ ...columnsOf(use), quota: 0, calls: Math.max(0, use.calls), granted: use.calls })),
    )
    .onConflict((conflict) =>
      conflict.columns(['kind', 'ref', 'span', 'starts_at']).doUpdateSet({
        calls: sql<number>`call_quota_use.calls + excluded.granted`,
      }),
    )
    .execute();
}

function columnsOf({ kind, ref, span, startsAt }: QuotaPeriod) {
  return { kind, ref, span, starts_at: startsAt };
}

/** Sorted by key, so that two writers cannot deadlock. */
function inOrder<Period extends QuotaPeriod>(periods: readonly Period[]): Period[] {
  return periods.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function keyOf({ kind, ref, span, startsAt }: QuotaPeriod): string {
  return `${kind} ${ref} ${span} ${startsAt}`;
}

/** Deletes minutes and days that are over. */
export async function pruneQuotaUse(db: Db, now: number, pause?: Pause): Promise<void> {
  const key = ['kind', 'ref', 'span', 'starts_at'];
  for (const span of ['minute', 'day'] as const) {
    const where = sql`span = ${span} and starts_at < ${now - keptMs[span]}`;
    await deleteInSteps(db, { table: 'call_quota_use', key, where }, pause);
  }
}
