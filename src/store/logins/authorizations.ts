import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../schema.ts';

/** One login in flight. `id` is the hash of the state that the provider sends back. */
export type Authorization = Selectable<Tables['authorizations']>;

/** Expired logins that each new one removes, so that those which strangers begin do not wait for upkeep. */
const removedAtOnce = 2;

/** False, and nothing stored, when the consent was used before. */
export async function insertAuthorization(db: Db, row: Insertable<Tables['authorizations']>): Promise<boolean> {
  const expired = db
    .selectFrom('authorizations')
    .select('id')
    .where('expires_at', '<', row.created_at)
    .orderBy('expires_at')
    .limit(removedAtOnce);
  await db.deleteFrom('authorizations').where('id', 'in', expired).execute();
  const result = await db
    .insertInto('authorizations')
    .values(row)
    .onConflict((c) => c.column('consent_id').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** A login without a hash was taken. Its row stays until it expires, because a consent form may be used only once. */
const taken = '';

/**
 * Takes a login: only one callback gets it, only in the browser that consented, only at the server where it began.
 * No workspace: the provider sends back only the state.
 */
export async function takeAuthorization(
  db: Db,
  match: { id: string; serverId: string; bindingHash: string; now: number },
): Promise<Authorization | undefined> {
  return db
    .updateTable('authorizations')
    .set({ binding_hash: taken })
    .where('id', '=', match.id)
    .where('server_id', '=', match.serverId)
    .where('binding_hash', '=', match.bindingHash)
    .where('expires_at', '>', match.now)
    .returningAll()
    .executeTakeFirst();
}

/** Whether a login with this state is pending, in any browser. No workspace, as above. */
export async function isAuthorizationWaiting(
  db: Db,
  match: { id: string; serverId: string; now: number },
): Promise<boolean> {
  const row = await db
    .selectFrom('authorizations')
    .select('id')
    .where('id', '=', match.id)
    .where('server_id', '=', match.serverId)
    .where('binding_hash', '!=', taken)
    .where('expires_at', '>', match.now)
    .executeTakeFirst();
  return row !== undefined;
}
