import { sql } from 'kysely';
import { dayMs, minuteMs } from '../calls/call-counts.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

// No query here names a workspace: one that had no calls for long costs nothing.

/** Deletes calls that started before `before`. Returns their number. */
export async function pruneCalls(db: Db, before: number, pause?: Pause): Promise<number> {
  return deleteInSteps(db, { table: 'calls', key: ['id'], where: sql`started_at < ${before}` }, pause);
}

/** Deletes counts by the minute from before `minutesFrom`, and all counts from before `from`. */
export async function pruneCounts(db: Db, minutesFrom: number, from: number, pause?: Pause): Promise<void> {
  const key = ['workspace_id', 'width', 'slug', 'tool', 'at'];
  for (const [width, before] of [
    [minuteMs, minutesFrom],
    [dayMs, from],
  ] as const) {
    const where = sql`width = ${width} and at < ${before}`;
    await deleteInSteps(db, { table: 'call_counts', key, where }, pause);
  }
}
