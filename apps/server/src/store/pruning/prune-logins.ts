import { type RawBuilder, sql } from 'kysely';
import { type EndedLogins, insertLoginsEndedEvent } from '../audit-events.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause, runInSteps } from '../delete-in-steps.ts';
import { endGrants, endServerGrants, isServerPurged } from '../logins/grants.ts';
import { computeFairShare, prunePassthroughTokens } from '../logins/passthrough-tokens.ts';

// No query here takes a workspace, because expiry is the same in all of them.

/** Maximum number of stored provider tokens per workspace. A row with its indexes takes about 500 bytes. */
export const maxPassthroughTokens = 1_000_000;

/** Maximum number of bytes of the active logins at the servers of one workspace, and of all its ended logins. */
export const maxLoginBytesPerWorkspace = 500_000_000;
/** Maximum number of logins that one statement ends. With tokens of maximum length, they take 9 MB. */
const loginsPerStatement = 100;

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
const isActiveLogin: RawBuilder<unknown> = sql`revoked_at is null and coalesce(user_id, '') = ''`;

/**
 * Finds the workspaces whose grants with a condition have more than `maxBytes`. Without a row condition or an order
 * that another index has, SQLite reads the index of the bytes and no rows.
 */
function selectWorkspacesOver(condition: RawBuilder<unknown>, maxBytes: number): RawBuilder<{ id: string }> {
  return sql`select workspace_id || '' as id from grants group by workspace_id || ''
    having sum(case when ${condition} then ${grantBytes} else 0 end) > ${maxBytes}`;
}

/**
 * Context for ending logins that exceed a limit. Their workspace finds the ended logins in its audit log; `onEnded`
 * informs the operator.
 */
export type LoginEndingOptions = { now: number; pause?: Pause | undefined; onEnded(ended: EndedLogins): void };

/**
 * Deletes expired rows: unfinished logins, codes, and tokens. Used codes are retained for `retentionMs`, to detect a
 * second use. A grant without any code or token has ended, and retains no sealed value. The same applies to a grant
 * of a permanently deleted server.
 */
export async function pruneOAuth(db: Db, retentionMs: number, options: LoginEndingOptions): Promise<void> {
  const { now, pause } = options;
  const expiredBefore = (at: number) => sql`expires_at < ${at}`;
  await deleteInSteps(db, { table: 'authorizations', key: ['id'], where: expiredBefore(now) }, pause);
  await deleteInSteps(db, { table: 'codes', key: ['hash'], where: expiredBefore(now - retentionMs) }, pause);
  await deleteInSteps(db, { table: 'tokens', key: ['hash'], where: expiredBefore(now - retentionMs) }, pause);
  await prunePassthroughTokens(db, now, maxPassthroughTokens, pause);
  const isAbandoned = sql`revoked_at is null and created_at < ${now - retentionMs}
    and not exists (select 1 from tokens where grant_id = grants.id)
    and not exists (select 1 from codes where grant_id = grants.id)`;
  await endGrantsInSteps(db, isAbandoned, { now, pause });
  await endPurgedServerGrants(db, now, pause);
  await endGrantsOverByteLimit(db, maxLoginBytesPerWorkspace, options);
}

/**
 * Ends the grants that meet a condition. They are selected before they are changed, because other writes would wait
 * for a search.
 */
async function endGrantsInSteps(
  db: Db,
  where: RawBuilder<unknown>,
  { now, pause, onStep }: Pick<LoginEndingOptions, 'now' | 'pause'> & { onStep?(ended: number): void },
): Promise<void> {
  await runInSteps(async (maxRows) => {
    const { rows } = await sql<{
      id: string;
    }>`select id from grants where ${where} limit ${loginsPerStatement}`.execute(db);
    const ids = rows.map(({ id }) => id);
    const ended = await endGrants(db, ids, now, maxRows);
    // With very many tokens, a step ends only some of them, and no login yet.
    if (ended < maxRows) onStep?.(ended);
    return rows.length < loginsPerStatement ? ended : maxRows;
  }, pause);
}

/** Ends the remaining grants of permanently deleted servers, which may be very many. */
async function endPurgedServerGrants(db: Db, now: number, pause?: Pause): Promise<void> {
  const { rows } = await sql<{ id: string; workspaceId: string }>`
    select server_id as id, workspace_id as "workspaceId"
    from (select distinct workspace_id, server_id, slug from grants where revoked_at is null) as grants
    where ${isServerPurged}`.execute(db);
  for (const server of rows) await runInSteps((maxRows) => endServerGrants(db, server, now, maxRows), pause);
}

const lastUsedSql = sql`coalesce(last_used_at, created_at)`;

/**
 * Ends grants of workspaces whose grants have more than `maxBytes` together. Starts at the servers with the most
 * bytes, with the least recently used grants, so that many logins at one server end none at another. Excludes grants
 * for management: they contain no provider token, and their number per person is limited separately.
 */
export async function endGrantsOverByteLimit(db: Db, maxBytes: number, options: LoginEndingOptions): Promise<void> {
  const reason = `the workspace's logins exceeded ${maxBytes} bytes, so the least recently used logins at this server were ended`;
  for (const { id } of (await selectWorkspacesOver(isActiveLogin, maxBytes).execute(db)).rows) {
    const { rows } = await sql<{ server: string; slug: string; bytes: number }>`
      select server_id as server, max(slug) as slug, sum(${grantBytes}) as bytes from grants
      where workspace_id = ${id} and ${isActiveLogin} group by server_id`.execute(db);
    const serverBytes = rows.map(({ bytes }) => Number(bytes));
    const share = computeFairShare(maxBytes, serverBytes);
    for (const { server, slug } of rows.filter(({ bytes }) => Number(bytes) > share)) {
      const isActive = sql`workspace_id = ${id} and server_id = ${server} and ${isActiveLogin}`;
      const firstOver = await findFirstOver(db, isActive, lastUsedSql, share);
      if (!firstOver) continue;
      const where = sql`${isActive} and (${lastUsedSql}, id) <= (${firstOver.at}, ${firstOver.id})`;
      await endAndReport(db, { where, workspaceId: id, slug, reason }, options);
    }
  }
}

type OverLimit = { where: RawBuilder<unknown> } & Omit<EndedLogins, 'logins'>;

/** Ends grants and reports how many ended, even if interrupted, because the next run finds only the remaining ones. */
async function endAndReport(
  db: Db,
  { where, ...target }: OverLimit,
  { now, pause, onEnded }: LoginEndingOptions,
): Promise<void> {
  let logins = 0;
  const onStep = (ended: number) => {
    logins += ended;
  };
  try {
    await endGrantsInSteps(db, where, { now, pause, onStep });
  } finally {
    if (logins > 0) {
      onEnded({ ...target, logins });
      await insertLoginsEndedEvent(db, { ...target, logins }, now);
    }
  }
}

type GrantPosition = { at: number; id: string };

/**
 * Returns the first grant over the limit, among the grants with a condition, if the latest by `at` are retained up to
 * `maxBytes`.
 */
async function findFirstOver(
  db: Db,
  condition: RawBuilder<unknown>,
  at: RawBuilder<unknown>,
  maxBytes: number,
): Promise<GrantPosition | undefined> {
  const { rows } = await sql<GrantPosition>`
    select at, id from (
      select ${at} as at, id, sum(${grantBytes}) over (order by ${at} desc, id desc) as bytes from grants where ${condition}
    ) as sums where bytes > ${maxBytes} order by at desc, id desc limit 1`.execute(db);
  return rows[0];
}

/** Deletes grants that ended before `before`, and, per workspace, the earliest ended grants above `maxBytes`. */
export async function pruneEndedGrants(db: Db, before: number, maxBytes: number, pause?: Pause): Promise<void> {
  const deleteEnded = (condition: RawBuilder<unknown>) => {
    const where = sql`${condition} and not exists (select 1 from tokens where grant_id = grants.id)
      and not exists (select 1 from codes where grant_id = grants.id)`;
    return deleteInSteps(db, { table: 'grants', key: ['id'], where }, pause);
  };
  await deleteEnded(sql`revoked_at < ${before}`);
  for (const { id } of (await selectWorkspacesOver(sql`revoked_at is not null`, maxBytes).execute(db)).rows) {
    const isEnded = sql`workspace_id = ${id} and revoked_at is not null`;
    const firstOver = await findFirstOver(db, isEnded, sql`revoked_at`, maxBytes);
    // Read only once. Within each deletion, it would sort all rows, and other writes would wait for that.
    if (firstOver) await deleteEnded(sql`${isEnded} and (revoked_at, id) <= (${firstOver.at}, ${firstOver.id})`);
  }
}
