import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';

/** A provider's token that an agent holds; `agreement` is what the person had agreed to when it was issued. */
type HandedOutToken = Tables['handed_out_tokens'];

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

/** Most tokens of a server, and of all servers of a workspace. */
type MostTokens = { ofServer: number; ofWorkspace: number };

/**
 * Deletes expired tokens. A server with more tokens than it may have also loses those that expire first. In a workspace with
 * too many, each of the servers that have any keeps an equal share at most.
 */
export async function pruneHandedOutTokens(db: Db, before: number, most: MostTokens, pause?: Pause): Promise<void> {
  const table = { table: 'handed_out_tokens', key: ['server_id', 'hash'] } as const;
  await deleteInSteps(db, { ...table, where: sql`expires_at < ${before}` }, pause);
  for (const { server_id, most: kept } of await crowdedServers(db, most)) {
    const first = await db
      .selectFrom('handed_out_tokens')
      .select(['expires_at', 'hash'])
      .where('server_id', '=', server_id)
      .orderBy('expires_at', 'desc')
      .orderBy('hash', 'desc')
      .offset(Number(kept))
      .limit(1)
      .executeTakeFirst();
    if (!first) continue;
    // Compared with the first one that is too many: PostgreSQL would search a list of those to keep for each row anew.
    const isCrowded = sql`server_id = ${server_id} and (expires_at, hash) <= (${first.expires_at}, ${first.hash})`;
    await deleteInSteps(db, { ...table, where: isCrowded }, pause);
  }
}

/** The servers with more tokens than they may have, and how many each may have. */
async function crowdedServers(db: Db, most: MostTokens): Promise<{ server_id: string; most: number }[]> {
  const [ofServer, ofWorkspace] = [sql.lit(most.ofServer), sql.lit(most.ofWorkspace)];
  const { rows } = await sql<{ server_id: string; most: number }>`
    with counts as (select server_id, count(*) as tokens from handed_out_tokens group by server_id),
    owned as (
      select server_id, tokens, coalesce(workspace_id, server_id) as workspace_id
      from counts left join servers on servers.id = server_id
    ),
    sums as (select workspace_id, sum(tokens) as tokens, count(*) as servers from owned group by workspace_id),
    shares as (
      select workspace_id, case when tokens > ${ofWorkspace} then ${ofWorkspace} / servers else ${ofServer} end as share
      from sums
    ),
    bounds as (select workspace_id, case when share < ${ofServer} then share else ${ofServer} end as most from shares)
    select server_id, most from owned join bounds on bounds.workspace_id = owned.workspace_id
    where tokens > most`.execute(db);
  return rows;
}
