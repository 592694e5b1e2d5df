import { OAuthError } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { mostGrowthInMinute, takeGrowth } from '../store/logins/login-bytes.ts';

/**
 * Counts bytes that a login at a server of a workspace adds, within the transaction that has stored them.
 * @throws OAuthError temporarily_unavailable for more than is left in this minute
 */
export async function checkLoginGrowth(db: Db, workspaceId: string, bytes: number, now: number): Promise<void> {
  if (await takeGrowth(db, workspaceId, bytes, now)) return;
  throw new OAuthError(
    'temporarily_unavailable',
    `the logins at the servers of this workspace have grown by ${mostGrowthInMinute / 1_000_000} MB in this minute, which is the most; try again in a minute`,
  );
}
