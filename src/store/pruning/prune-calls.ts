import { sql } from 'kysely';
import { dayMs, hourMs, minuteMs } from '../calls/call-counts.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

/** Deletes calls of all workspaces that started before `before`. Returns their number. */
export async function pruneCalls(db: Db, before: number, pause?: Pause): Promise<number> {
  let pruned = 0;
  for (const { id } of await db.selectFrom('workspaces').select('id').execute()) {
    const where = sql`workspace_id = ${id} and started_at < ${before}`;
    pruned += await deleteInSteps(db, { table: 'calls', key: ['id'], where }, pause);
  }
  return pruned;
}

/** Deletes counts by the minute from before `minutesFrom`, and all counts from before `from`, of all workspaces. */
export async function pruneCounts(db: Db, minutesFrom: number, from: number, pause?: Pause): Promise<void> {
  const key = ['workspace_id', 'width', 'at', 'slug', 'tool'];
  for (const { id } of await db.selectFrom('workspaces').select('id').execute()) {
    for (const [width, before] of [
      [minuteMs, minutesFrom],
      [hourMs, from],
      [dayMs, from],
    ] as const) {
      const where = sql`workspace_id = ${id} and width = ${width} and at < ${before}`;
      await deleteInSteps(db, { table: 'call_counts', key, where }, pause);
    }
  }
}
