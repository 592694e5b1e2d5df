import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, inSteps, type Pause } from '../delete-in-steps.ts';
import { endGrants, endServerGrants, isOfDeletedServer } from '../logins/grants.ts';
import { pruneHandedOutTokens } from '../logins/handed-out-tokens.ts';

// No query here names a workspace: expiry is the same in all of them.

/** Most stored tokens of the provider, most live grants, and most ended ones, of one server. */
export const mostOfServer = 100_000;

/**
 * Deletes expired rows: unfinished logins, codes and tokens. Used codes stay for `keptMs`, to notice a second use.
 * A grant without any code or token has ended, and keeps no sealed value. So has one of a deleted server.
 */
export async function pruneOAuth(db: Db, now: number, keptMs: number, pause?: Pause): Promise<void> {
  const expiredBefore = (at: number) => sql`expires_at < ${at}`;
  await deleteInSteps(db, { table: 'authorizations', key: ['id'], where: expiredBefore(now) }, pause);
  await deleteInSteps(db, { table: 'codes', key: ['hash'], where: expiredBefore(now - keptMs) }, pause);
  await deleteInSteps(db, { table: 'tokens', key: ['hash'], where: expiredBefore(now - keptMs) }, pause);
  await pruneHandedOutTokens(db, now, mostOfServer, pause);
  const isLeft = sql`revoked_at is null and created_at < ${now - keptMs}
    and not exists (select 1 from tokens where grant_id = grants.id)
    and not exists (select 1 from codes where grant_id = grants.id)`;
  await endInSteps(db, isLeft, now, pause);
  await endGrantsOfDeleted(db, now, pause);
  await endCrowdedGrants(db, mostOfServer, now, pause);
}

/** Ends the grants for which a condition holds. They are found before they are changed: other writes would wait for a search. */
function endInSteps(db: Db, where: RawBuilder<unknown>, now: number, pause?: Pause): Promise<number> {
  return inSteps(async (most) => {
    const { rows } = await sql<{ id: string }>`select id from grants where ${where} limit ${most}`.execute(db);
    const ids = rows.map(({ id }) => id);
    return endGrants(db, ids, now, most);
  }, pause);
}

/** Ends what deleting a server has left: its grants may be very many. */
async function endGrantsOfDeleted(db: Db, now: number, pause?: Pause): Promise<void> {
  const { rows } = await sql<{ id: string; workspaceId: string }>`
    select server_id as id, workspace_id as "workspaceId"
    from (select distinct workspace_id, server_id, slug from grants where revoked_at is null) as grants
    where ${isOfDeletedServer}`.execute(db);
  for (const server of rows) await inSteps((most) => endServerGrants(db, server, now, most), pause);
}

/** Ends the grants of a server beyond the `most` that were used last. */
export async function endCrowdedGrants(db: Db, most: number, now: number, pause?: Pause): Promise<void> {
  const lastUse = sql`coalesce(last_used_at, created_at)`;
  for (const server of await crowdedServers(db, 'is', most)) {
    const isLive = sql`${isOfServer(server)} and revoked_at is null`;
    const { rows } = await sql<{ at: number; id: string }>`
      select ${lastUse} as at, id from grants where ${isLive} order by at desc, id desc limit 1 offset ${most}`.execute(
      db,
    );
    // Compared with the first one that is too many: PostgreSQL would search a list of those to keep for each row anew.
    const [first] = rows;
    if (first) await endInSteps(db, sql`${isLive} and (${lastUse}, id) <= (${first.at}, ${first.id})`, now, pause);
  }
}

/** A server of a workspace: the logins for managing are all at one server, whose people belong to many workspaces. */
type ServerOfGrants = { workspace_id: string; server_id: string };

const isOfServer = ({ workspace_id, server_id }: ServerOfGrants) =>
  sql`workspace_id = ${workspace_id} and server_id = ${server_id}`;

/** The servers with more than `most` grants that are live, or that have ended. */
function crowdedServers(db: Db, revokedAt: 'is' | 'is not', most: number): Promise<ServerOfGrants[]> {
  return db
    .selectFrom('grants')
    .select(['workspace_id', 'server_id'])
    .where('revoked_at', revokedAt, null)
    .groupBy(['workspace_id', 'server_id'])
    .having(sql`count(*)`, '>', most)
    .execute();
}

/** Deletes grants that ended before `before`, and those of a server beyond the `most` that ended last. */
export async function pruneEndedGrants(db: Db, before: number, most: number, pause?: Pause): Promise<void> {
  const deleteEnded = (isOld: RawBuilder<unknown>) => {
    const where = sql`${isOld} and not exists (select 1 from tokens where grant_id = grants.id)
      and not exists (select 1 from codes where grant_id = grants.id)`;
    return deleteInSteps(db, { table: 'grants', key: ['id'], where }, pause);
  };
  await deleteEnded(sql`revoked_at < ${before}`);
  for (const server of await crowdedServers(db, 'is not', most)) {
    const isEnded = sql`${isOfServer(server)} and revoked_at is not null`;
    const { rows } = await sql<{ at: number; id: string }>`
      select revoked_at as at, id from grants where ${isEnded} order by at desc, id desc limit 1 offset ${most}`.execute(
      db,
    );
    // Read once: within each deletion it would sort all rows again, and other writes would wait for that.
    const [first] = rows;
    if (first) await deleteEnded(sql`${isEnded} and (revoked_at, id) <= (${first.at}, ${first.id})`);
  }
}
