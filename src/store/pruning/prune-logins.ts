import { type RawBuilder, sql } from 'kysely';
import { type EndedLogins, insertEndedLogins } from '../audit-events.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, inSteps, type Pause } from '../delete-in-steps.ts';
import { endGrants, endServerGrants, isOfGoneServer } from '../logins/grants.ts';
import { pruneHandedOutTokens, shareWithin } from '../logins/handed-out-tokens.ts';

// No query here takes a workspace, because expiry is the same in all of them.

/** Maximum number of stored provider tokens per workspace. A row with its indexes takes about 500 bytes. */
export const mostHandedOutTokens = 1_000_000;

/** Maximum number of bytes of the active logins at the servers of one workspace, and of all its ended logins. */
export const mostBytesOfWorkspace = 500_000_000;
/** Maximum number of logins that one statement ends. With tokens of maximum length, they take 9 MB. */
const loginsAtOnce = 100;

/**
 * Approximate number of bytes of a login: its tokens, the id of its client, which its code repeats, its scopes, and
 * the other columns. The providers of tenants choose the length of the tokens. An index has the same expression.
 */
const grantBytes: RawBuilder<number> = sql`
  (octet_length(sealed_tokens) + 2 * octet_length(client_id) + octet_length(scope) + 500)`;

/**
 * Condition that a grant has not ended and is not for management. An expression, so that SQLite does not search the
 * index of people for grants without a person: nearly all have none.
 */
const isOfLiveLogin: RawBuilder<unknown> = sql`revoked_at is null and coalesce(user_id, '') = ''`;

/**
 * Finds the workspaces whose grants with a condition have more than `most` bytes. Without a row condition or an order
 * that another index has, SQLite reads the index of the bytes and no rows.
 */
function workspacesAbove(condition: RawBuilder<unknown>, most: number): RawBuilder<{ id: string }> {
  return sql`select workspace_id || '' as id from grants group by workspace_id || ''
    having sum(case when ${condition} then ${grantBytes} else 0 end) > ${most}`;
}

/**
 * Context for ending logins that exceed a limit. Their workspace finds the ended logins in its audit log; `onEnded`
 * informs the operator.
 */
export type LoginEnding = { now: number; pause?: Pause | undefined; onEnded(ended: EndedLogins): void };

/**
 * Deletes expired rows: unfinished logins, codes, and tokens. Used codes are retained for `keptMs`, to detect a
 * second use. A grant without any code or token has ended, and retains no sealed value. The same applies to a grant
 * of a permanently deleted server.
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

/**
 * Ends the grants that meet a condition. They are selected before they are changed, because other writes would wait
 * for a search.
 */
async function endInSteps(
  db: Db,
  where: RawBuilder<unknown>,
  { now, pause, onStep }: Pick<LoginEnding, 'now' | 'pause'> & { onStep?(ended: number): void },
): Promise<void> {
  await inSteps(async (most) => {
    const { rows } = await sql<{ id: string }>`select id from grants where ${where} limit ${loginsAtOnce}`.execute(db);
    const ids = rows.map(({ id }) => id);
    const ended = await endGrants(db, ids, now, most);
    // With very many tokens, a step ends only some of them, and no login yet.
    if (ended < most) onStep?.(ended);
    return rows.length < loginsAtOnce ? ended : most;
  }, pause);
}

/** Ends the remaining grants of permanently deleted servers, which may be very many. */
async function endGrantsOfGone(db: Db, now: number, pause?: Pause): Promise<void> {
  const { rows } = await sql<{ id: string; workspaceId: string }>`
    select server_id as id, workspace_id as "workspaceId"
    from (select distinct workspace_id, server_id, slug from grants where revoked_at is null) as grants
    where ${isOfGoneServer}`.execute(db);
  for (const server of rows) await inSteps((most) => endServerGrants(db, server, now, most), pause);
}

const lastUse = sql`coalesce(last_used_at, created_at)`;

/**
 * Ends grants of workspaces whose grants have more than `most` bytes together. Starts at the servers with the most
 * bytes, with the least recently used grants, so that many logins at one server end none at another. Excludes grants
 * for management: they contain no provider token, and their number per person is limited separately.
 */
export async function endLargeGrants(db: Db, most: number, ending: LoginEnding): Promise<void> {
  const reason = `the workspace's logins exceeded ${most} bytes, so the least recently used logins at this server were ended`;
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

/** Ends grants and reports how many ended, even if interrupted, because the next run finds only the remaining ones. */
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

/**
 * Returns the first grant over the limit, among the grants with a condition, if the latest by `at` are retained up to
 * `most` bytes.
 */
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

/** Deletes grants that ended before `before`, and, per workspace, the earliest ended grants above `most` bytes. */
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
    // Read only once. Within each deletion, it would sort all rows, and other writes would wait for that.
    if (first) await deleteEnded(sql`${isEnded} and (revoked_at, id) <= (${first.at}, ${first.id})`);
  }
}
