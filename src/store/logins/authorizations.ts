import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../schema.ts';

/** One login in flight. `id` is the hash of the state that the provider sends back. */
export type Authorization = Selectable<Tables['authorizations']>;

/** False, and nothing stored, when the consent was used before. */
export async function insertAuthorization(db: Db, row: Insertable<Tables['authorizations']>): Promise<boolean> {
  const result = await db
    .insertInto('authorizations')
    .values(row)
    .onConflict((c) => c.column('consent_id').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** No hash: a login that was taken. Its row stays until it expires, because its consent form counts once. */
const taken = '';

/**
 * Takes a login: only one callback can have it, only in the browser that consented, only at the server it began at.
 * No workspace: the state is the only thing that a provider sends back.
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

/** Whether a login waits under this state, in whatever browser it began. No workspace, as above. */
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
