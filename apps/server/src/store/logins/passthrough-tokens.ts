import { type Insertable, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';

/** Provider token that an agent holds. `agreement` is the person's agreement when it was issued. */
type PassthroughToken = Insertable<Tables['passthrough_tokens']>;

// No query here takes a workspace, because the server's id implies it, and an agent that presents a token knows only
// the token.

/** Stores an issued token. The same token may be issued again, after the person has accepted a new agreement. */
export async function savePassthroughToken(db: Db, token: PassthroughToken): Promise<void> {
  const { agreement, expires_at } = token;
  await db
    .insertInto('passthrough_tokens')
    .values(token)
    .onConflict((c) => c.columns(['server_id', 'hash']).doUpdateSet({ agreement, expires_at }))
    .execute();
}

/**
 * Returns true if a token of a server was issued under another agreement, or, without an agreement, if any token was
 * issued.
 */
export async function hasOtherAgreement(db: Db, serverId: string, agreement: string | undefined): Promise<boolean> {
  const tokens = db.selectFrom('passthrough_tokens').select('agreement').where('server_id', '=', serverId).limit(1);
  if (agreement === undefined) return (await tokens.executeTakeFirst()) !== undefined;
  // Reads two ranges of the index, because <> would read every row of the server.
  for (const comparison of ['<', '>'] as const) {
    if (await tokens.where('agreement', comparison, agreement).executeTakeFirst()) return true;
  }
  return false;
}

/** Returns the agreement under which a token was issued; undefined for an unknown token. */
export async function findPassthroughAgreement(db: Db, serverId: string, hash: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('passthrough_tokens')
    .select('agreement')
    .where('server_id', '=', serverId)
    .where('hash', '=', hash)
    .executeTakeFirst();
  return row?.agreement;
}

/**
 * Deletes expired tokens. In a workspace with more than `limit` tokens, also deletes those that expire first, at the
 * servers with the most tokens.
 */
export async function prunePassthroughTokens(db: Db, before: number, limit: number, pause?: Pause): Promise<void> {
  const table = { table: 'passthrough_tokens', key: ['server_id', 'hash'] } as const;
  await deleteInSteps(db, { ...table, where: sql`expires_at < ${before}` }, pause);
  const { rows } = await sql<{ serverId: string; workspaceId: string; tokens: number }>`
    select server_id as "serverId", coalesce(workspace_id, server_id) as "workspaceId", tokens
    from (select server_id, count(*) as tokens from passthrough_tokens group by server_id) as counts
    left join servers on servers.id = server_id`.execute(db);
  for (const servers of Map.groupBy(rows, ({ workspaceId }) => workspaceId).values()) {
    const counts = servers.map(({ tokens }) => Number(tokens));
    const share = computeFairShare(limit, counts);
    for (const { serverId } of servers.filter(({ tokens }) => Number(tokens) > share)) {
      const firstOverLimit = await db
        .selectFrom('passthrough_tokens')
        .select(['expires_at', 'hash'])
        .where('server_id', '=', serverId)
        .orderBy('expires_at', 'desc')
        .orderBy('hash', 'desc')
        .offset(share)
        .limit(1)
        .executeTakeFirst();
      if (!firstOverLimit) continue;
      // Compared with the first token over the limit, because PostgreSQL would search a list of retained tokens for
      // each row.
      const isOverLimit = sql`server_id = ${serverId} and (expires_at, hash) <= (${firstOverLimit.expires_at}, ${firstOverLimit.hash})`;
      await deleteInSteps(db, { ...table, where: isOverLimit }, pause);
    }
  }
}

/** Returns the largest equal share so that the sum of all capped values is at most `limit`. */
export function computeFairShare(limit: number, values: readonly number[]): number {
  let remaining = limit;
  const ordered = values.toSorted((a, b) => a - b);
  const index = ordered.findIndex((value, index) => {
    if (value * (ordered.length - index) > remaining) return true;
    remaining -= value;
    return false;
  });
  return index < 0 ? limit : Math.floor(remaining / (ordered.length - index));
}
