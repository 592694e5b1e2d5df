import { getTenantId } from '@toolhost/credentials/ids';
import { type Insertable, type Selectable, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { Db } from '../db.ts';
import { maxRowsPerStatement } from '../delete-in-steps.ts';
import { isInWorkspace, isOlderThan, type Page, toPage, toSqlList } from '../page.ts';
import type { Tables } from '../schema.ts';
import { getQuotaPeriod, takeFromQuotas } from '../workspaces.ts';

/** Login in progress. `id` is the hash of the state that the provider returns. */
export type Authorization = Selectable<Tables['authorizations']>;

/**
 * Number of expired logins that each new login deletes, so that logins started by unverified callers do not wait for
 * maintenance.
 */
const expiredPerInsert = 2;

/** Returns false and stores nothing if the consent was already used. */
export async function insertAuthorization(db: Db, row: Insertable<Tables['authorizations']>): Promise<boolean> {
  const expired = db
    .selectFrom('authorizations')
    .select('id')
    .where('expires_at', '<', row.created_at)
    .orderBy('expires_at')
    .limit(expiredPerInsert);
  await db.deleteFrom('authorizations').where('id', 'in', expired).execute();
  const result = await db
    .insertInto('authorizations')
    .values(row)
    .onConflict((c) => c.column('consent_id').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Hash of a login that was taken. Its row remains until it expires, because a consent form may be used only once. */
const takenMark = '';

/**
 * Takes a login. Only one callback receives it, only in the browser that consented, only at the server where it
 * started. Takes no workspace, because the provider returns only the state.
 */
export async function consumeAuthorization(
  db: Db,
  match: { id: string; serverId: string; bindingHash: string; now: number },
): Promise<Authorization | undefined> {
  return db
    .updateTable('authorizations')
    .set({ binding_hash: takenMark })
    .where('id', '=', match.id)
    .where('server_id', '=', match.serverId)
    .where('binding_hash', '=', match.bindingHash)
    .where('expires_at', '>', match.now)
    .returningAll()
    .executeTakeFirst();
}

/**
 * Returns true if a login with this state is pending, in any browser. Takes no workspace, because the provider
 * returns only the state.
 */
export async function isAuthorizationPending(
  db: Db,
  match: { id: string; serverId: string; now: number },
): Promise<boolean> {
  const row = await db
    .selectFrom('authorizations')
    .select('id')
    .where('id', '=', match.id)
    .where('server_id', '=', match.serverId)
    .where('binding_hash', '!=', takenMark)
    .where('expires_at', '>', match.now)
    .executeTakeFirst();
  return row !== undefined;
}

/** Stored result of a finished login. */
export type Grant = Selectable<Tables['grants']>;

export async function insertGrant(db: Db, grant: Insertable<Tables['grants']>): Promise<void> {
  await db.insertInto('grants').values(grant).execute();
}

/** Takes no workspace, because an issued token names its grant, and the caller compares the server. */
export async function findGrant(db: Db, id: string): Promise<Grant | undefined> {
  return db.selectFrom('grants').selectAll().where('id', '=', id).executeTakeFirst();
}

/**
 * Returns true if a client with a metadata document ever finished a login at a server. Takes no workspace, because
 * the server's id implies it. The condition on the length matches the index.
 */
export async function hasClientGrant(db: Db, serverId: string, clientId: string): Promise<boolean> {
  const row = await db
    .selectFrom('grants')
    .select('id')
    .where('server_id', '=', serverId)
    .where('client_id', '=', clientId)
    .where(sql<SqlBool>`length(client_id) <= 1000`)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Columns for lists. Excludes the tokens, which are long. */
const listedColumns = [
  'id',
  'server_id',
  'slug',
  'client_name',
  'person',
  'person_id',
  'scope',
  'agreement',
  'created_at',
  'last_used_at',
  'broken_at',
  'revoked_at',
] as const;
export type ListedGrant = Pick<Grant, (typeof listedColumns)[number]> & {
  /** 1 if its server was deleted. The grant is useless then, unless the server is restored. */
  is_of_deleted: number;
};

/**
 * Condition that the server of a grant was deleted: it has a row, unlike the management server, but no active server has
 * its slug. It reads two indexes, because the row of a server is long.
 */
const isServerDeleted = sql<SqlBool>`(exists (select 1 from servers where servers.id = grants.server_id)
  and not exists (select 1 from servers where servers.workspace_id = grants.workspace_id
    and servers.slug = grants.slug and servers.deleted_at is null))`;

/** Condition that the server of a grant was purged: only purged servers, which cannot be restored, have no summary. */
export const isServerPurged = sql<SqlBool>`(exists (select 1 from servers where servers.id = grants.server_id)
  and not exists (select 1 from servers where servers.workspace_id = grants.workspace_id
    and servers.slug = grants.slug and servers.summary is not null))`;

export async function findGrants(
  db: Db,
  workspaceId: string,
  filter: { slug: string | undefined; slugs: readonly string[] | undefined },
  page: Page,
): Promise<{ rows: ListedGrant[]; next: string | undefined }> {
  const { slug, slugs } = filter;
  if (slug !== undefined && slugs && !slugs.includes(slug)) return { rows: [], next: undefined };
  const ids = slug === undefined && slugs ? await findServerGrantIds(db, workspaceId, slugs, page) : undefined;
  const isDeletedColumn = sql<number>`case when ${isServerDeleted} then 1 else 0 end`.as('is_of_deleted');
  let query = db.selectFrom('grants').select([...listedColumns, isDeletedColumn]);
  query = ids
    ? query.where('id', 'in', toSqlList(ids)).where(isInWorkspace(workspaceId))
    : query.where('workspace_id', '=', workspaceId);
  if (slug !== undefined) query = query.where('slug', '=', slug);
  const rows = await query
    .where(isOlderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return toPage(rows, page.limit, (row) => ({ at: row.created_at, id: row.id }));
}

/**
 * Returns the ids of the newest grants of some servers, read from an index that covers the query. `+ 0` keeps the
 * planner from using the index of all grants by time, which it would read to the end for servers without grants.
 */
async function findServerGrantIds(
  db: Db,
  workspaceId: string,
  slugs: readonly string[],
  page: Page,
): Promise<string[]> {
  const at = sql<number>`created_at + 0`;
  let query = db
    .selectFrom('grants')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('slug', 'in', toSqlList(slugs));
  if (page.after) query = query.where(sql<SqlBool>`(${at}, id) < (${page.after.at}, ${page.after.id})`);
  const rows = await query
    .orderBy(at, 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return rows.map(({ id }) => id);
}

/** Increments the generation of an issued refresh token. Returns false if another redemption was first. */
export async function rotateGrant(db: Db, id: string, generation: number, at: number): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    .set({ generation: generation + 1, rotated_at: at, last_used_at: at })
    .where('id', '=', id)
    .where('generation', '=', generation)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Claims the right to refresh at the provider until `until`, which also identifies the claim. Only one of several
 * concurrent callers receives it.
 */
export async function claimRefresh(
  db: Db,
  { id, tokens_version }: Pick<Grant, 'id' | 'tokens_version'>,
  now: number,
  until: number,
): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    .set({ refreshing_until: until })
    .where('id', '=', id)
    .where('tokens_version', '=', tokens_version)
    .where('revoked_at', 'is', null)
    .where((e) => e.or([e('refreshing_until', 'is', null), e('refreshing_until', '<', now)]))
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Stores the provider's new tokens and ends the claim. Returns false if the grant ended or was refreshed by another
 * process in the meantime.
 */
export async function saveRefreshedTokens(
  db: Db,
  id: string,
  sealedTokens: string,
  tokensVersion: number,
): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    // Another process may have marked the login as broken after it used the tokens that these tokens replace.
    .set({ sealed_tokens: sealedTokens, tokens_version: tokensVersion, refreshing_until: null, broken_at: null })
    .where('id', '=', id)
    .where('tokens_version', '=', tokensVersion - 1)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Releases a claim without new tokens, so that the next call may retry. */
export async function releaseRefresh(db: Db, id: string, until: number): Promise<void> {
  await db
    .updateTable('grants')
    .set({ refreshing_until: null })
    .where('id', '=', id)
    .where('refreshing_until', '=', until)
    .execute();
}

/**
 * Marks the tokens of this version as rejected by the provider. The next request makes the grant's agent log in
 * again. Returns false if newer tokens are already stored.
 */
export async function breakGrant(db: Db, id: string, tokensVersion: number, at: number): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    .set({ broken_at: at, refreshing_until: null })
    .where('id', '=', id)
    .where('tokens_version', '=', tokensVersion)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Ends a grant with its tokens and codes. Returns false if it did not exist or had already ended. */
export async function revokeGrant(db: Db, id: string, at: number): Promise<boolean> {
  return revokeAll(db, db.selectFrom('grants').select('id').where('id', '=', id), at);
}

/**
 * Ends as many grants as one short statement can. Returns the number of rows that this took, less than `limit` when
 * all grants have ended.
 */
export async function endGrants(db: Db, ids: readonly string[], at: number, limit: number): Promise<number> {
  if (ids.length === 0) return 0;
  for (const table of ['tokens', 'codes'] as const) {
    const batch = db
      .selectFrom(table)
      .select('hash')
      .where('grant_id', 'in', [...ids])
      .limit(limit);
    const { numDeletedRows } = await db.deleteFrom(table).where('hash', 'in', batch).executeTakeFirst();
    // A grant ends after its last token, so that the next step finds the grant again.
    if (Number(numDeletedRows) >= limit) return limit;
  }
  await db
    .updateTable('grants')
    .set({ revoked_at: at, sealed_tokens: '', person: null })
    .where('id', 'in', [...ids])
    .where('revoked_at', 'is', null)
    .execute();
  return ids.length;
}

/**
 * Ends at most `limit` grants of a server. Returns less than `limit` when all have ended. A permanently deleted server
 * has no usable grants, so maintenance may end the others later.
 */
export async function endServerGrants(
  db: Db,
  { workspaceId, id }: { workspaceId: string; id: string },
  at: number,
  limit: number,
): Promise<number> {
  const active = await db
    .selectFrom('grants')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', id)
    .where('revoked_at', 'is', null)
    .limit(limit)
    .execute();
  const ids = active.map((grant) => grant.id);
  return endGrants(db, ids, at, limit);
}

/** Maximum number of agents that one person has signed in to the management server, per workspace. */
export const maxAgentsPerPerson = 100;

/** Ends the least recently used grants of a person in a workspace above the maximum, except one. Returns their ids. */
export async function endGrantsOverLimit(
  db: Db,
  { workspaceId, userId, retainedId }: { workspaceId: string; userId: string; retainedId: string },
  at: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('grants')
    .select('id')
    .where('user_id', '=', userId)
    .where(isInWorkspace(workspaceId))
    .where('revoked_at', 'is', null)
    .where('id', '!=', retainedId)
    .orderBy(sql`coalesce(last_used_at, created_at)`, 'desc')
    .orderBy('id', 'desc')
    .limit(maxAgentsPerPerson)
    .offset(maxAgentsPerPerson - 1)
    .execute();
  const ids = rows.map(({ id }) => id);
  await endGrants(db, ids, at, maxRowsPerStatement);
  return ids;
}

/**
 * Ends the grants of a person in a workspace, which belong to agents that the person signed in to the management
 * server. Returns false if none was active. A change of kind `grant` with the person's id drops them from the caches.
 */
export async function revokePersonGrants(db: Db, { workspaceId, userId }: Person, at: number): Promise<boolean> {
  const grants = selectActive(db).where('user_id', '=', userId).where(isInWorkspace(workspaceId));
  return revokeAll(db, grants, at);
}

type Person = { workspaceId: string; userId: string };

function selectActive(db: Db) {
  return db.selectFrom('grants').select('id').where('revoked_at', 'is', null);
}

/**
 * Ends the logins of a person at the hosted servers of a workspace. Returns false if none was active. A change of kind
 * `grant` with the person's id drops them from the caches.
 */
export async function revokeLoginsOfPerson(db: Db, { workspaceId, userId }: Person, at: number): Promise<boolean> {
  const grants = selectActive(db).where('person_id', '=', userId).where(isInWorkspace(workspaceId));
  return revokeAll(db, grants, at);
}

/** Ends the logins of a person at one server. Takes no workspace, because the server's id implies it. */
export async function revokeLoginsAtServer(
  db: Db,
  { serverId, userId }: { serverId: string; userId: string },
  at: number,
): Promise<void> {
  await revokeAll(db, selectActive(db).where('person_id', '=', userId).where('server_id', '=', serverId), at);
}

/** Uses the same few statements for one grant and for many, because many statements would delay other writes. */
async function revokeAll(
  db: Db,
  grants: SelectQueryBuilder<Tables, 'grants', { id: string }>,
  at: number,
): Promise<boolean> {
  await db.deleteFrom('tokens').where('grant_id', 'in', grants).execute();
  await db.deleteFrom('codes').where('grant_id', 'in', grants).execute();
  const result = await db
    .updateTable('grants')
    .set({ revoked_at: at, sealed_tokens: '', person: null })
    .where('id', 'in', grants)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Returns the agreement of a person at a login: the hash of the server's agreement, followed by the view that the
 * login is limited to. A hash has no slash.
 */
export function formatAgreement(hash: string, view: string | undefined): string {
  return view === undefined ? hash : `${hash}/${view}`;
}

/** Returns the view that an agreement is limited to; undefined if it covers the whole server. */
export function getAgreedView(agreement: string): string | undefined {
  const slash = agreement.indexOf('/');
  return slash < 0 ? undefined : agreement.slice(slash + 1);
}

/** Returns true if an agreement is valid at a server or a view. An agreement to the whole server covers each view. */
export function isAgreed(
  agreement: string,
  { agreement: hash, view }: { agreement: string; view?: string | undefined },
) {
  return agreement === hash || (view !== undefined && agreement === formatAgreement(hash, view));
}

/**
 * Maximum number of bytes that new logins add per minute, in all processes together, because maintenance limits the
 * sum only once an hour. It suffices for 5,000 logins with tokens of 2,000 characters. A server gets half of its
 * tenant's limit, so that many logins at one server leave room for the others. Refreshed tokens do not count: a
 * provider may have ended the previous tokens, so the new ones must be stored.
 */
export const maxLoginBytesPerMinute = { ofTenant: 20_000_000, ofServer: 10_000_000 };

/** Counts a new login in this minute. Returns false if it exceeds the remaining bytes; then it must not be stored. */
export async function reserveLoginBytes(
  db: Db,
  { workspaceId, serverId, bytes }: { workspaceId: string; serverId: string; bytes: number },
  now: number,
): Promise<boolean> {
  const toRequest = (ref: string, quota: number) => ({
    ...getQuotaPeriod('loginBytes', ref, 'minute', now),
    quota,
    // This quota counts bytes, not calls.
    calls: bytes,
  });
  const uses = await takeFromQuotas(db, [
    toRequest(getTenantId(workspaceId), maxLoginBytesPerMinute.ofTenant),
    toRequest(serverId, maxLoginBytesPerMinute.ofServer),
  ]);
  return uses.every(({ granted }) => granted === bytes);
}

/** Returns the bytes of a login, as `grantBytes` counts stored logins. */
export function countLoginBytes(grant: { sealed_tokens: string; client_id: string; scope: string }): number {
  const [tokens, client, scope] = [grant.sealed_tokens, grant.client_id, grant.scope].map((text) =>
    Buffer.byteLength(text),
  );
  return Number(tokens) + 2 * Number(client) + Number(scope) + 500;
}
