import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';

/** A provider's token that an agent holds; `agreement` is what the person had agreed to when it was issued. */
export type HandedOutToken = Tables['handed_out_tokens'];

// No query here names a workspace: the server's id implies it, and an agent that presents a token knows nothing else.

/** The same token may be issued again, after the person has agreed to something new. */
export async function saveHandedOutToken(db: Db, token: HandedOutToken): Promise<void> {
  const { agreement, expires_at } = token;
  await db
    .insertInto('handed_out_tokens')
    .values(token)
    .onConflict((c) => c.columns(['server_id', 'hash']).doUpdateSet({ agreement, expires_at }))
    .execute();
}

/** Whether a token of a server was issued under another agreement; without an agreement, whether any was issued. */
export async function hasOtherAgreement(db: Db, serverId: string, agreement: string | undefined): Promise<boolean> {
  const tokens = db.selectFrom('handed_out_tokens').select('agreement').where('server_id', '=', serverId).limit(1);
  if (agreement === undefined) return (await tokens.executeTakeFirst()) !== undefined;
  // Two ranges of the index, because <> would read every row of the server.
  for (const comparison of ['<', '>'] as const) {
    if (await tokens.where('agreement', comparison, agreement).executeTakeFirst()) return true;
  }
  return false;
}

/** The agreement under which a token was issued; undefined for an unknown token. */
export async function findHandedOutAgreement(db: Db, serverId: string, hash: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('handed_out_tokens')
    .select('agreement')
    .where('server_id', '=', serverId)
    .where('hash', '=', hash)
    .executeTakeFirst();
  return row?.agreement;
}

/** Deletes expired tokens. A server with more than `most` tokens also loses those that expire first. */
export async function pruneHandedOutTokens(db: Db, before: number, most: number, pause?: Pause): Promise<void> {
  const table = { table: 'handed_out_tokens', key: ['server_id', 'hash'] } as const;
  await deleteInSteps(db, { ...table, where: sql`expires_at < ${before}` }, pause);
  const crowded = await db
    .selectFrom('handed_out_tokens')
    .select('server_id')
    .groupBy('server_id')
    .having(sql`count(*)`, '>', most)
    .execute();
  for (const { server_id } of crowded) {
    const first = await db
      .selectFrom('handed_out_tokens')
      .select(['expires_at', 'hash'])
      .where('server_id', '=', server_id)
      .orderBy('expires_at', 'desc')
      .orderBy('hash', 'desc')
      .offset(most)
      .limit(1)
      .executeTakeFirst();
    if (!first) continue;
    // Compared with the first one that is too many: PostgreSQL would search a list of those to keep for each row anew.
    const isCrowded = sql`server_id = ${server_id} and (expires_at, hash) <= (${first.expires_at}, ${first.hash})`;
    await deleteInSteps(db, { ...table, where: isCrowded }, pause);
  }
}
