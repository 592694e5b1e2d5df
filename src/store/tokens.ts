import type { Insertable, Selectable } from 'kysely';
import type { Db } from './database.ts';
import { pruneHandedOutTokens } from './handed-out-tokens.ts';
import type { Tables } from './schema.ts';

/** One of our access or refresh tokens: its hash, and the grant's key as only the token itself can unwrap it. */
export type StoredToken = Selectable<Tables['tokens']>;
export type Code = Selectable<Tables['codes']>;

// No query here names a workspace: whoever presents a token or a code has nothing else, and its grant says the rest.

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

/** Uses a code up; of several redemptions at once exactly one gets true. */
export async function spendCode(db: Db, hash: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('codes')
    .set({ used_at: at })
    .where('hash', '=', hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Tokens of its provider that are remembered of one server. */
const maxHandedOut = 100_000;

/**
 * Forgets what has expired: logins nobody finished, codes and tokens. `keptMs` keeps used codes, to notice a second use.
 * A grant that no code and no token stands for any more has ended, and keeps nothing sealed.
 */
export async function pruneOAuth(db: Db, now: number, keptMs: number): Promise<void> {
  await db.deleteFrom('authorizations').where('expires_at', '<', now).execute();
  await db
    .deleteFrom('codes')
    .where('expires_at', '<', now - keptMs)
    .execute();
  await db
    .deleteFrom('tokens')
    .where('expires_at', '<', now - keptMs)
    .execute();
  await pruneHandedOutTokens(db, now, maxHandedOut);
  await db
    .updateTable('grants')
    .set({ revoked_at: now, sealed_tokens: '' })
    .where('revoked_at', 'is', null)
    .where('created_at', '<', now - keptMs)
    .where('id', 'not in', db.selectFrom('tokens').select('grant_id'))
    .where('id', 'not in', db.selectFrom('codes').select('grant_id'))
    .execute();
}
