import { type RawBuilder, sql } from 'kysely';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';

/** Maximum number of rows that one statement changes, so that it blocks the database only briefly. */
export const maxRowsPerStatement = 1000;

/** Splits a list into chunks of at most `maxRows` entries, one for each statement. */
export function toChunks<Entry>(entries: readonly Entry[], maxRows = maxRowsPerStatement): Entry[][] {
  return Array.from({ length: Math.ceil(entries.length / maxRows) }, (_, i) =>
    entries.slice(i * maxRows, (i + 1) * maxRows),
  );
}

/** Waits between two steps. @throws to end the work */
export type Pause = () => Promise<void>;

const noPause: Pause = async () => undefined;

/** Repeats a step until it changes fewer rows than its limit. Returns the total number of changed rows. */
export async function runInSteps(
  step: (maxRows: number) => Promise<number>,
  pause: Pause = noPause,
  maxRows = maxRowsPerStatement,
): Promise<number> {
  for (let total = 0; ; ) {
    const changed = await step(maxRows);
    total += changed;
    await pause();
    if (changed < maxRows) return total;
  }
}

/** Rows to delete. Tables with long rows set a lower `maxRows`, the maximum that one statement deletes. */
type Deletion = { table: keyof Tables; key: readonly string[]; where: RawBuilder<unknown>; maxRows?: number };

/** Deletes the rows of a table that meet a condition, in steps. `key` is the primary key. */
export async function deleteInSteps(db: Db, deletion: Deletion, pause?: Pause): Promise<number> {
  const { table, key, where } = deletion;
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const step = async (maxRows: number) => {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)}
      where (${columns}) in (select ${columns} from ${sql.table(table)} where ${where} limit ${maxRows})`.execute(db);
    return Number(numAffectedRows ?? 0);
  };
  return runInSteps(step, pause, deletion.maxRows);
}
