import { OAuthError } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { takeLoginBytes } from '../store/logins/login-bytes.ts';

/**
 * Counts the bytes of a new login, within the transaction that has stored it.
 * @throws OAuthError temporarily_unavailable for more than is left in this minute
 */
export async function checkLoginGrowth(
  db: Db,
  login: { workspaceId: string; serverId: string; bytes: number },
  now: number,
): Promise<void> {
  if (await takeLoginBytes(db, login, now)) return;
  throw new OAuthError(
    'temporarily_unavailable',
    'the logins of this minute have taken what they may store; try again in a minute',
  );
}
