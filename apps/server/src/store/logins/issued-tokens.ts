import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../db.ts';
import { maxRowsPerStatement } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';

/** Issued access or refresh token: its hash, and the grant's key, which only the token itself can unwrap. */
export type StoredToken = Selectable<Tables['tokens']>;
export type Code = Selectable<Tables['codes']>;

// No query here takes a workspace, because a token or code arrives without one, and its grant names it.

export async function insertTokens(db: Db, rows: readonly Insertable<Tables['tokens']>[]): Promise<void> {
  await db
    .insertInto('tokens')
    .values([...rows])
    .execute();
}

export async function findToken(db: Db, hash: string): Promise<StoredToken | undefined> {
  return db.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst();
}

export async function insertCode(db: Db, code: Insertable<Tables['codes']>): Promise<void> {
  await db.insertInto('codes').values(code).execute();
}

export async function findCode(db: Db, hash: string): Promise<Code | undefined> {
  return db.selectFrom('codes').selectAll().where('hash', '=', hash).executeTakeFirst();
}

/** Marks a code as used. Returns true for exactly one of several concurrent redemptions. */
export async function markCodeUsed(db: Db, hash: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('codes')
    .set({ used_at: at })
    .where('hash', '=', hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Deletes the tokens of a grant that are older than its rotation number `generation`. */
export async function deleteOldTokens(db: Db, grantId: string, generation: number): Promise<void> {
  await db.deleteFrom('tokens').where('grant_id', '=', grantId).where('generation', '<', generation).execute();
}

/**
 * Deletes all but the `limit` newest tokens of each kind of a grant. For a moment, one refresh token may be used
 * repeatedly, and each use issues new tokens.
 */
export async function deleteTokensOverLimit(db: Db, grantId: string, limit: number): Promise<void> {
  for (const kind of ['access', 'refresh'] as const) {
    const overLimit = db
      .selectFrom('tokens')
      .select('hash')
      .where('grant_id', '=', grantId)
      .where('kind', '=', kind)
      .orderBy('generation', 'desc')
      .orderBy('expires_at', 'desc')
      .limit(maxRowsPerStatement)
      .offset(limit);
    await db.deleteFrom('tokens').where('hash', 'in', overLimit).execute();
  }
}
