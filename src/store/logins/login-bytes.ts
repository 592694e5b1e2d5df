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
 * Most bytes that new logins add in a minute, in all processes together, because upkeep bounds the sum only once an hour.
 * It suffices for 5,000 logins with tokens of 2,000 characters. A server has half of its workspace's, so that a crowd at
 * one leaves room for the others. Refreshed tokens do not count: a provider may have ended those before, and so they must
 * be stored.
 */
export const mostInMinute = { ofWorkspace: 20_000_000, ofServer: 10_000_000 };

/** Counts a new login in this minute. False, and it must not be stored, where it is more than is left. */
export async function takeLoginBytes(
  db: Db,
  { workspaceId, serverId, bytes }: { workspaceId: string; serverId: string; bytes: number },
  now: number,
): Promise<boolean> {
  const period = { kind: 'loginBytes', span: 'minute', startsAt: startOf(now, minuteMs), calls: bytes } as const;
  const uses = await takeOfQuotas(db, [
    { ...period, ref: workspaceId, quota: mostInMinute.ofWorkspace },
    { ...period, ref: serverId, quota: mostInMinute.ofServer },
  ]);
  return uses.every(({ granted }) => granted === bytes);
}

/** The bytes of a login; 0 for an unknown one. No workspace: a token or code names it. */
export async function bytesOfGrant(db: Db, id: string): Promise<number> {
  const row = await db.selectFrom('grants').select(grantBytes.as('bytes')).where('id', '=', id).executeTakeFirst();
  return Number(row?.bytes ?? 0);
}
