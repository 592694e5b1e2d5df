import { type RawBuilder, sql } from 'kysely';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';

/** Most rows that one statement changes, so that it blocks the database only briefly. */
export const rowsAtOnce = 1000;

/** Waits between two steps. @throws to end the work */
export type Pause = () => Promise<void>;

export const noPause: Pause = async () => undefined;

/** Repeats a step until it changes fewer rows than it may. Returns the total number of changed rows. */
export async function inSteps(step: (most: number) => Promise<number>, pause: Pause = noPause): Promise<number> {
  for (let all = 0; ; ) {
    const changed = await step(rowsAtOnce);
    all += changed;
    await pause();
    if (changed < rowsAtOnce) return all;
  }
}

export type Deletion = { table: keyof Tables; key: readonly string[]; where: RawBuilder<unknown> };

/** Deletes the rows of a table for which a condition holds, in steps. `key` is its primary key. */
export async function deleteInSteps(db: Db, { table, key, where }: Deletion, pause?: Pause): Promise<number> {
  const columns = sql.join(key.map((column) => sql.ref(column)));
  return inSteps(async (most) => {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)}
      where (${columns}) in (select ${columns} from ${sql.table(table)} where ${where} limit ${most})`.execute(db);
    return Number(numAffectedRows ?? 0);
  }, pause);
}
