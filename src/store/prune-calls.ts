import type { ExpressionBuilder } from 'kysely';
import { dayMs, hourMs, minuteMs } from './call-counts.ts';
import type { Db } from './database.ts';
import type { Tables } from './schema.ts';

/** How many rows are deleted at once, so that nobody waits long for the database. */
const prunedAtOnce = 1000;

/** Forgets calls of all workspaces there are that started before `before`. Gives how many there were. */
export async function pruneCalls(db: Db, before: number): Promise<number> {
  let pruned = 0;
  for (const { id } of await db.selectFrom('workspaces').select('id').execute()) {
    const old = db
      .selectFrom('calls')
      .select('id')
      .where('workspace_id', '=', id)
      .where('started_at', '<', before)
      .limit(prunedAtOnce);
    for (let deleted = prunedAtOnce; deleted === prunedAtOnce; pruned += deleted) {
      deleted = Number((await db.deleteFrom('calls').where('id', 'in', old).executeTakeFirst()).numDeletedRows);
    }
  }
  return pruned;
}

/** Forgets counts by the minute of before `minutesFrom`, and all counts of before `from`, of all workspaces there are. */
export async function pruneCounts(db: Db, minutesFrom: number, from: number): Promise<void> {
  for (const { id } of await db.selectFrom('workspaces').select('id').execute()) {
    for (const [width, before] of [
      [minuteMs, minutesFrom],
      [hourMs, from],
      [dayMs, from],
    ] as const) {
      while ((await pruneSome(db, { workspaceId: id, width, before })) === prunedAtOnce);
    }
  }
}

async function pruneSome(
  db: Db,
  { workspaceId, width, before }: { workspaceId: string; width: number; before: number },
): Promise<number> {
  const columns = ['at', 'slug', 'tool'] as const;
  const ofWidth = (e: ExpressionBuilder<Tables, 'call_counts'>) =>
    e.and([e('workspace_id', '=', workspaceId), e('width', '=', width)]);
  const old = db.selectFrom('call_counts').select(columns).where(ofWidth).where('at', '<', before).limit(prunedAtOnce);
  const deleted = await db
    .deleteFrom('call_counts')
    .where(ofWidth)
    .where((e) => e(e.refTuple(...columns), 'in', old.$asTuple(...columns)))
    .executeTakeFirst();
  return Number(deleted.numDeletedRows);
}
