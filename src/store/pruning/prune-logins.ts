import { type RawBuilder, sql } from 'kysely';
import { type EndedLogins, insertEndedLogins } from '../audit-events.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, inSteps, type Pause } from '../delete-in-steps.ts';
import { endGrants, endServerGrants, isOfGoneServer } from '../logins/grants.ts';
import { pruneHandedOutTokens, shareWithin } from '../logins/handed-out-tokens.ts';

// No query here names a workspace: expiry is the same in all of them.

/** Most stored tokens of providers of a workspace. A row with its indexes takes about 500 bytes. */
export const mostHandedOutTokens = 1_000_000;

/** Most bytes of the live logins at the servers of one workspace, and of all its ended ones. */
export const mostBytesOfWorkspace = 500_000_000;
/** Most logins that one statement ends: with tokens as long as they may be they take 9 MB. */
const loginsAtOnce = 100;

/**
 * About how many bytes a login takes: its tokens, the id of its client, which its code repeats, its scopes, and the rest.
 * The providers of tenants choose the length of the tokens. An index has the same expression.
 */
const grantBytes: RawBuilder<number> = sql`
  (octet_length(sealed_tokens) + 2 * octet_length(client_id) + octet_length(scope) + 500)`;

/**
 * Grants that have not ended, but for those for managing. An expression, so that SQLite does not look for grants without a
 * person in the index of people: nearly all have none.
 */
const isOfLiveLogin: RawBuilder<unknown> = sql`revoked_at is null and coalesce(user_id, '') = ''`;

/**
 * Finds the workspaces whose grants with a condition have more than `most` bytes. With neither a condition for rows nor an
 * order that another index has, SQLite reads the index of the bytes and no row.
 */
function workspacesAbove(condition: RawBuilder<unknown>, most: number): RawBuilder<{ id: string }> {
  return sql`select workspace_id || '' as id from grants group by workspace_id || ''
    having sum(case when ${condition} then ${grantBytes} else 0 end) > ${most}`;
}

/** How logins beyond a limit are ended. Their workspace finds in its audit that they were; `onEnded` is for the operator. */
export type LoginEnding = { now: number; pause?: Pause | undefined; onEnded(ended: EndedLogins): void };

/**
 * Deletes expired rows: unfinished logins, codes and tokens. Used codes stay for `keptMs`, to notice a second use.
 * A grant without any code or token has ended, and keeps no sealed value. So has one of a server that is gone.
 */
export async function pruneOAuth(db: Db, keptMs: number, ending: LoginEnding): Promise<void> {
  const { now, pause } = ending;
  const expiredBefore = (at: number) => sql`expires_at < ${at}`;
  await deleteInSteps(db, { table: 'authorizations', key: ['id'], where: expiredBefore(now) }, pause);
  await deleteInSteps(db, { table: 'codes', key: ['hash'], where: expiredBefore(now - keptMs) }, pause);
  await deleteInSteps(db, { table: 'tokens', key: ['hash'], where: expiredBefore(now - keptMs) }, pause);
  await pruneHandedOutTokens(db, now, mostHandedOutTokens, pause);
  const isLeft = sql`revoked_at is null and created_at < ${now - keptMs}
    and not exists (select 1 from tokens where grant_id = grants.id)
    and not exists (select 1 from codes where grant_id = grants.id)`;
  await endInSteps(db, isLeft, { now, pause });
  await endGrantsOfGone(db, now, pause);
  await endLargeGrants(db, mostBytesOfWorkspace, ending);
}

/** Ends the grants for which a condition holds. They are found before they are changed: other writes would wait for a search. */
async function endInSteps(
  db: Db,
  where: RawBuilder<unknown>,
  { now, pause, onStep }: Pick<LoginEnding, 'now' | 'pause'> & { onStep?(ended: number): void },
): Promise<void> {
  await inSteps(async (most) => {
    const { rows } = await sql<{ id: string }>`select id from grants where ${where} limit ${loginsAtOnce}`.execute(db);
    const ids = rows.map(({ id }) => id);
    const ended = await endGrants(db, ids, now, most);
    // With very many tokens a step ends only some of those, and no login yet.
    if (ended < most) onStep?.(ended);
    return rows.length < loginsAtOnce ? ended : most;
  }, pause);
}

/** Ends what the end of a server has left: its grants may be very many. */
async function endGrantsOfGone(db: Db, now: number, pause?: Pause): Promise<void> {
  const { rows } = await sql<{ id: string; workspaceId: string }>`
    select server_id as id, workspace_id as "workspaceId"
    from (select distinct workspace_id, server_id, slug from grants where revoked_at is null) as grants
    where ${isOfGoneServer}`.execute(db);
  for (const server of rows) await inSteps((most) => endServerGrants(db, server, now, most), pause);
}

const lastUse = sql`coalesce(last_used_at, created_at)`;

/**
 * Ends grants of workspaces that have more than `most` bytes together: at the servers with most of them, those that were
 * used longest ago, so that a crowd at one server ends no login at another. Not those for managing: they hold no token of
 * a provider, and people have a bound of their own.
 */
export async function endLargeGrants(db: Db, most: number, ending: LoginEnding): Promise<void> {
  const reason = `the logins of the workspace took more than ${most} bytes; those used longest ago at this server ended`;
  for (const { id } of (await workspacesAbove(isOfLiveLogin, most).execute(db)).rows) {
    const { rows } = await sql<{ server: string; slug: string; bytes: number }>`
      select server_id as server, max(slug) as slug, sum(${grantBytes}) as bytes from grants
      where workspace_id = ${id} and ${isOfLiveLogin} group by server_id`.execute(db);
    const sums = rows.map(({ bytes }) => Number(bytes));
    const share = shareWithin(most, sums);
    for (const { server, slug } of rows.filter(({ bytes }) => Number(bytes) > share)) {
      const isLive = sql`workspace_id = ${id} and server_id = ${server} and ${isOfLiveLogin}`;
      const first = await firstBeyond(db, isLive, lastUse, share);
      if (!first) continue;
      const where = sql`${isLive} and (${lastUse}, id) <= (${first.at}, ${first.id})`;
      await endAndTell(db, { where, workspaceId: id, slug, reason }, ending);
    }
  }
}

type Beyond = { where: RawBuilder<unknown> } & Omit<EndedLogins, 'logins'>;

/** Ends grants, and tells how many ended. Also where it is cut off: the next round finds only the others. */
async function endAndTell(db: Db, { where, ...of }: Beyond, { now, pause, onEnded }: LoginEnding): Promise<void> {
  let logins = 0;
  const onStep = (ended: number) => {
    logins += ended;
  };
  try {
    await endInSteps(db, where, { now, pause, onStep });
  } finally {
    if (logins > 0) {
      onEnded({ ...of, logins });
      await insertEndedLogins(db, { ...of, logins }, now);
    }
  }
}

type First = { at: number; id: string };

/** Of the grants with a condition the first that is too many, when the latest by `at` with `most` bytes are kept. */
async function firstBeyond(
  db: Db,
  condition: RawBuilder<unknown>,
  at: RawBuilder<unknown>,
  most: number,
): Promise<First | undefined> {
  const { rows } = await sql<First>`
    select at, id from (
      select ${at} as at, id, sum(${grantBytes}) over (order by ${at} desc, id desc) as bytes from grants where ${condition}
    ) as sums where bytes > ${most} order by at desc, id desc limit 1`.execute(db);
  return rows[0];
}

/** Deletes grants that ended before `before`, and of a workspace those beyond the `most` bytes that ended last. */
export async function pruneEndedGrants(db: Db, before: number, most: number, pause?: Pause): Promise<void> {
  const deleteEnded = (isOld: RawBuilder<unknown>) => {
    const where = sql`${isOld} and not exists (select 1 from tokens where grant_id = grants.id)
      and not exists (select 1 from codes where grant_id = grants.id)`;
    return deleteInSteps(db, { table: 'grants', key: ['id'], where }, pause);
  };
  await deleteEnded(sql`revoked_at < ${before}`);
  for (const { id } of (await workspacesAbove(sql`revoked_at is not null`, most).execute(db)).rows) {
    const isEnded = sql`workspace_id = ${id} and revoked_at is not null`;
    const first = await firstBeyond(db, isEnded, sql`revoked_at`, most);
    // Read once: within each deletion it would sort all rows again, and other writes would wait for that.
    if (first) await deleteEnded(sql`${isEnded} and (revoked_at, id) <= (${first.at}, ${first.id})`);
  }
}
