import { type RawBuilder, sql } from 'kysely';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';

/** Maximum number of rows that one statement changes, so that it blocks the database only briefly. */
export const rowsAtOnce = 1000;

/** Splits a list into chunks of at most `most` entries, one for each statement. */
export function inPieces<Entry>(all: readonly Entry[], most = rowsAtOnce): Entry[][] {
  return Array.from({ length: Math.ceil(all.length / most) }, (_, i) => all.slice(i * most, (i + 1) * most));
}

/** Waits between two steps. @throws to end the work */
export type Pause = () => Promise<void>;

const noPause: Pause = async () => undefined;

/** Repeats a step until it changes fewer rows than its limit. Returns the total number of changed rows. */
export async function inSteps(
  step: (most: number) => Promise<number>,
  pause: Pause = noPause,
  most = rowsAtOnce,
): Promise<number> {
  for (let all = 0; ; ) {
    const changed = await step(most);
    all += changed;
    await pause();
    if (changed < most) return all;
  }
}

/** Rows to delete. Tables with long rows set a lower `most`: the maximum number of rows that one statement deletes. */
type Deletion = { table: keyof Tables; key: readonly string[]; where: RawBuilder<unknown>; most?: number };

/** Deletes the rows of a table that meet a condition, in steps. `key` is the primary key. */
export async function deleteInSteps(db: Db, deletion: Deletion, pause?: Pause): Promise<number> {
  const { table, key, where } = deletion;
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const step = async (most: number) => {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)}
      where (${columns}) in (select ${columns} from ${sql.table(table)} where ${where} limit ${most})`.execute(db);
    return Number(numAffectedRows ?? 0);
  };
  return inSteps(step, pause, deletion.most);
}
