import { type RawBuilder, sql } from 'kysely';
import { minuteMs, startOf } from '../calls/call-counts.ts';
import { takeOfQuotas } from '../calls/call-quota-use.ts';
import type { Db } from '../db.ts';

/**
 * About how many bytes a login takes: its tokens, the id of its client, which its code repeats, its scopes, and the rest.
 * The providers of tenants choose the length of the tokens. An index has the same expression.
 */
export const grantBytes: RawBuilder<number> = sql`
  (octet_length(sealed_tokens) + 2 * octet_length(client_id) + octet_length(scope) + 500)`;

/**
 * Grants that have not ended, but for those for managing. An expression, so that SQLite does not look for grants without a
 * person in the index of people: nearly all have none.
 */
export const isOfLiveLogin: RawBuilder<unknown> = sql`revoked_at is null and coalesce(user_id, '') = ''`;

/**
 * Finds the workspaces whose grants with a condition have more than `most` bytes. With neither a condition for rows nor an
 * order that another index has, SQLite reads the index of the bytes and no row.
 */
export function workspacesAbove(condition: RawBuilder<unknown>, most: number): RawBuilder<{ id: string }> {
  return sql`select workspace_id || '' as id from grants group by workspace_id || ''
    having sum(case when ${condition} then ${grantBytes} else 0 end) > ${most}`;
}

/**
 * Most bytes that new logins at the servers of a workspace add in a minute, in all processes together, and most by which
 * refreshed tokens are longer than those before. Upkeep looks at the sum only once an hour. It suffices for 5,000 logins
 * with tokens of 2,000 characters.
 */
export const mostGrowthInMinute = 20_000_000;

/**
 * New logins and refreshed tokens do not count together: strangers who log in must not cost others their refreshed tokens.
 */
export type Growth = 'loginBytes' | 'refreshBytes';

/** Counts a growth in this minute. False, and the growth must not be stored, where it is more than is left. */
export async function takeGrowth(
  db: Db,
  { kind, workspaceId, bytes }: { kind: Growth; workspaceId: string; bytes: number },
  now: number,
): Promise<boolean> {
  if (bytes <= 0) return true;
  const period = { kind, ref: workspaceId, span: 'minute', startsAt: startOf(now, minuteMs) } as const;
  const [use] = await takeOfQuotas(db, [{ ...period, quota: mostGrowthInMinute, calls: bytes }]);
  return use?.granted === bytes;
}

/** The bytes of a login; 0 for an unknown one. No workspace: a token or code names it. */
export async function bytesOfGrant(db: Db, id: string): Promise<number> {
  const row = await db.selectFrom('grants').select(grantBytes.as('bytes')).where('id', '=', id).executeTakeFirst();
  return Number(row?.bytes ?? 0);
}
