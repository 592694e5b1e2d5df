import { OAuthError } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { type Growth, mostGrowthInMinute, takeGrowth } from '../store/logins/login-bytes.ts';

/**
 * Counts bytes that a login at a server of a workspace adds, within the transaction that has stored them.
 * @throws OAuthError temporarily_unavailable for more than is left in this minute
 */
export async function checkLoginGrowth(
  db: Db,
  growth: { kind: Growth; workspaceId: string; bytes: number },
  now: number,
): Promise<void> {
  if (await takeGrowth(db, growth, now)) return;
  throw new OAuthError(
    'temporarily_unavailable',
    `the logins at the servers of this workspace have grown by ${mostGrowthInMinute / 1_000_000} MB in this minute, which is the most; try again in a minute`,
  );
}
