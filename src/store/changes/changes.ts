import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import { newId, type Random } from '../../domain/ids.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

export type Change = { id: string; kind: 'server' | 'key' | 'grant' | 'workspace'; ref: string };

/** Written in the transaction of the change itself. No workspace: replicas follow all of them. `at` decides how long the row is kept. */
export async function recordChange(db: Db, source: Source, kind: Change['kind'], ref: string): Promise<void> {
  await recordChanges(db, source, kind, [ref]);
}

/** The same for many, in one statement. */
export async function recordChanges(
  db: Db,
  { random, now }: Source,
  kind: Change['kind'],
  refs: readonly string[],
): Promise<void> {
  if (refs.length === 0) return;
  const at = now();
  const position = nextPosition(db);
  await db
    .insertInto('changes')
    .values(refs.map((ref) => ({ id: newId(random, 'chg'), at, kind, ref, position })))
    .execute();
}

/** Randomness for the id, and the time in epoch ms. */
type Source = { random: Random; now: () => number };

/**
 * The position of a change that is written now; `follow-changes.ts` explains why none is missed.
 * PostgreSQL: the id of the transaction. SQLite has one writer at a time, which sees every earlier position.
 */
export function nextPosition(db: Db): RawBuilder<number> {
  return isPostgres(db)
    ? sql<number>`txid_current()`
    : sql<number>`(select coalesce(max(position), 0) + 1 from changes)`;
}

export function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Longer than any process can go on without its database. */
export const changesKeptMs = 24 * 60 * 60_000;

/** Deletes old changes except the last one: SQLite continues from its position. */
export async function pruneChanges(db: Db, before: number, pause?: Pause): Promise<void> {
  const where = sql`at < ${before} and position < (select max(position) from changes)`;
  await deleteInSteps(db, { table: 'changes', key: ['id'], where }, pause);
}
