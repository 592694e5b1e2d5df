import { OAuthError } from '../../errors.ts';
import type { Db } from '../../store/db.ts';
import { bytesOfGrant, takeLoginBytes } from '../../store/logins/login-bytes.ts';

/**
 * Counts the bytes of a new login, within the transaction that has stored it.
 * @throws OAuthError temporarily_unavailable for more than is left in this minute
 */
export async function checkLoginBytes(
  db: Db,
  { id, ...at }: { id: string; workspaceId: string; serverId: string },
  now: number,
): Promise<void> {
  if (await takeLoginBytes(db, { ...at, bytes: await bytesOfGrant(db, id) }, now)) return;
  throw new OAuthError(
    'temporarily_unavailable',
    'new logins have stored all the bytes that they may in this minute; try again in a minute',
  );
}
