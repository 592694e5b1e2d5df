import { timingSafeEqual } from 'node:crypto';
import type { QueryCharge } from '@toolhost/credentials/client-request';
import type { KeyScope } from '@toolhost/credentials/credential';
import { getApiKeyId, hashPresentedSecret } from '@toolhost/credentials/ids';
import { Unauthenticated } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import type { KeyLimits, LimitedKey } from '@toolhost/limits/call-limits';
import { type Selectable, type SqlBool, sql } from 'kysely';
import { minuteMs, startOfPeriod } from './calls/call-writer.ts';
import { createReadThroughCache, type Freshness } from './changes/cache.ts';
import type { Db } from './db.ts';
import { toChunks } from './delete-in-steps.ts';
import { isInWorkspace, isOlderThan, type Page, toPage, toSqlList } from './page.ts';
import type { Tables } from './schema.ts';
import { matchesKey } from './search.ts';

/** An API key without its secret. Only `secretHash` (SHA-256, hex) is stored. */
export type ApiKey = {
  id: string;
  workspaceId: string;
  name: string;
  secretHash: string;
  scopes: KeyScope[];
  /** Slugs of the servers that the key is limited to; undefined allows every server in the workspace. */
  servers: string[] | undefined;
  /** Additional views that the key may call, as `slug/view`. A key for views only has no servers. */
  views?: string[];
  createdBy: string;
  createdAt: number;
  expiresAt: number | undefined;
  revokedAt: number | undefined;
  lastUsedAt: number | undefined;
  limits?: KeyLimits;
};

/** A presented key whose secret was verified. */
export type VerifiedKey = ApiKey & {
  /** Ids of the keys in its creation chain, nearest first. */
  ancestors: readonly string[];
  /** The key and its creators, as far as they have limits. */
  limitedBy: readonly LimitedKey[];
};

/** Parses the column `servers`, which holds both servers and views. Only a view contains a slash. */
function parseServersColumn(stored: string | null): Pick<ApiKey, 'servers' | 'views'> {
  if (stored === null) return { servers: undefined };
  const entries = JSON.parse(stored) as string[];
  const views = entries.filter((entry) => entry.includes('/'));
  const servers = entries.filter((entry) => !entry.includes('/'));
  return views.length > 0 ? { servers, views } : { servers };
}

function formatServersColumn({ servers, views = [] }: ApiKey): string | null {
  if (!servers && views.length === 0) return null;
  return JSON.stringify([...(servers ?? []), ...views]);
}

function toApiKey(row: Selectable<Tables['api_keys']>): ApiKey {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    secretHash: row.secret_hash,
    scopes: JSON.parse(row.scopes) as KeyScope[],
    ...parseServersColumn(row.servers),
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    ...(row.limits !== null && { limits: JSON.parse(row.limits) as KeyLimits }),
  };
}

export async function insertApiKey(db: Db, key: ApiKey): Promise<void> {
  await db
    .insertInto('api_keys')
    .values({
      id: key.id,
      workspace_id: key.workspaceId,
      name: key.name,
      secret_hash: key.secretHash,
      scopes: JSON.stringify(key.scopes),
      servers: formatServersColumn(key),
      created_by: key.createdBy,
      created_at: key.createdAt,
      expires_at: key.expiresAt ?? null,
      limits: key.limits ? JSON.stringify(key.limits) : null,
    })
    .execute();
}

/** Takes no workspace, because the row of a presented key names it. */
export async function findApiKey(db: Db, id: string): Promise<ApiKey | undefined> {
  const row = await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toApiKey(row);
}

/** Returns the creation chain of a key: the key that created it, the key that created that one, and so on. */
export async function findKeyAncestors(db: Db, { createdBy }: ApiKey): Promise<ApiKey[]> {
  const ancestors: ApiKey[] = [];
  while (ancestors.length < maxKeyChainLength) {
    const ancestorId = ancestors.at(-1)?.createdBy ?? createdBy;
    const ancestor = ancestorId.startsWith('key_') ? await findApiKey(db, ancestorId) : undefined;
    if (!ancestor) break;
    ancestors.push(ancestor);
  }
  return ancestors;
}

export async function findKeysById(db: Db, workspaceId: string, ids: readonly string[]): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where(isInWorkspace(workspaceId))
    .where('id', 'in', toSqlList(ids))
    .execute();
  return rows.map(toApiKey);
}

/** Lists keys, newest first. A query matches words in the key's name, or its exact id. */
export async function findApiKeys(
  db: Db,
  workspaceId: string,
  page: Page & { query?: string | undefined },
): Promise<{ rows: ApiKey[]; next: string | undefined }> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where(page.query === undefined ? sql<SqlBool>`1 = 1` : matchesKey(page.query))
    .where(isOlderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return toPage(rows.map(toApiKey), page.limit, (key) => ({ at: key.createdAt, id: key.id }));
}

/** Revokes a key. Returns false if the key does not exist or was already revoked. */
export async function markKeyRevoked(db: Db, workspaceId: string, id: string, revokedAt: number): Promise<boolean> {
  const result = await db
    .updateTable('api_keys')
    .set({ revoked_at: revokedAt })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Revokes the active keys among `ids` in one statement. */
export async function markKeysRevoked(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  revokedAt: number,
): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: revokedAt })
    .where(isInWorkspace(workspaceId))
    .where('id', 'in', toSqlList(ids))
    .where('revoked_at', 'is', null)
    .execute();
}

/** Returns the limits of a key; undefined if the key does not exist or is revoked. */
export async function findKeyLimits(db: Db, workspaceId: string, id: string): Promise<KeyLimits | undefined> {
  const row = await db
    .selectFrom('api_keys')
    .select('limits')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return row && ((row.limits === null ? {} : JSON.parse(row.limits)) as KeyLimits);
}

/** Sets the limits of several keys in one statement. */
export async function updateKeyLimits(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  limits: KeyLimits | undefined,
): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ limits: limits ? JSON.stringify(limits) : null })
    .where(isInWorkspace(workspaceId))
    .where('id', 'in', toSqlList(ids))
    .execute();
}

/**
 * Maximum length of a key chain, in which each key was created with the previous one. A call counts against the limits
 * of every key in the chain.
 */
export const maxKeyChainLength = 20;
/** Maximum number of ids in one statement. */
const maxIdsPerStatement = 500;

/** Returns the valid keys that a person created, directly or with a key created by that person. */
export async function findActiveKeysCreatedBy(
  db: Db,
  workspaceId: string,
  userId: string,
  now: number,
): Promise<ApiKey[]> {
  return (await selectActiveKeys(db, workspaceId, userId, now).selectAll('api_keys').execute()).map(toApiKey);
}

/** Lists one page of the keys that `findActiveKeysCreatedBy` returns, newest first. */
export async function listActiveKeysCreatedBy(
  db: Db,
  { workspaceId, userId, now }: { workspaceId: string; userId: string; now: number },
  page: Page,
): Promise<{ rows: ApiKey[]; next: string | undefined }> {
  const pageRows = await selectActiveKeys(db, workspaceId, userId, now)
    .select(['api_keys.id', 'api_keys.created_at'])
    .where(isOlderThan('api_keys.created_at', page.after, 'api_keys.id'))
    .orderBy('api_keys.created_at', 'desc')
    .orderBy('api_keys.id', 'desc')
    .limit(page.limit + 1)
    .execute();
  const { rows, next } = toPage(pageRows, page.limit, (row) => ({ at: row.created_at, id: row.id }));
  const ids = rows.map(({ id }) => id);
  const keys = new Map((await findKeysById(db, workspaceId, ids)).map((key) => [key.id, key]));
  return { rows: ids.flatMap((id) => keys.get(id) ?? []), next };
}

/** Follows key chains: selects the keys that a person created, the keys created with those, and so on. */
function selectActiveKeys(db: Db, workspaceId: string, userId: string, now: number) {
  return db
    .withRecursive('made', (recursive) =>
      recursive
        .selectFrom('api_keys')
        .select('id')
        .where('workspace_id', '=', workspaceId)
        .where('created_by', '=', userId)
        .union(
          recursive
            .selectFrom('made')
            // SQLite reads the tables of a cross join in this order.
            .crossJoin('api_keys')
            .select('api_keys.id')
            .where('api_keys.workspace_id', '=', workspaceId)
            .whereRef('api_keys.created_by', '=', 'made.id'),
        ),
    )
    .selectFrom('made')
    .crossJoin('api_keys')
    .whereRef('api_keys.id', '=', 'made.id')
    .where('api_keys.revoked_at', 'is', null)
    .where((e) => e.or([e('api_keys.expires_at', 'is', null), e('api_keys.expires_at', '>', now)]));
}

/** Returns the origin of each key: the person, or the creator of the first remaining key in the chain. */
export async function findKeyOrigins(
  db: Db,
  workspaceId: string,
  keys: readonly ApiKey[],
): Promise<ReadonlyMap<string, string>> {
  const origins = new Map(keys.map(({ id, createdBy }) => [id, createdBy]));
  for (let step = 0; step < maxKeyChainLength; step++) {
    const parentIds = [...new Set(origins.values())].filter((origin) => origin.startsWith('key_'));
    const parents = new Map<string, string>();
    for (const batch of toChunks(parentIds, maxIdsPerStatement)) {
      for (const { id, createdBy } of await findKeysById(db, workspaceId, batch)) parents.set(id, createdBy);
    }
    if (parents.size === 0) break;
    for (const [id, origin] of origins) origins.set(id, parents.get(origin) ?? origin);
  }
  return origins;
}

/**
 * Last uses of API keys and logins, to the minute. They are collected in memory, and written together with the call
 * records: the first use of a minute, so that a credential under load costs one update per minute and process.
 */
export type CredentialUses = {
  recordKeyUse(id: string): void;
  recordLoginUse(id: string): void;
  /** Number of credentials that were used since the last flush. */
  pendingCount(): number;
  /** @throws database errors; uses that could not be written stay pending for the next write */
  flush(): Promise<void>;
};

type PendingUses = {
  table: 'api_keys' | 'grants';
  ids: Set<string>;
  /** Start of the minute of the last write, in epoch ms. */
  writtenMinute: number;
  /** Credentials whose use in that minute is stored. */
  writtenIds: Set<string>;
};

/** Maximum number of uses in one statement. */
const maxUsesPerStatement = 100;

/** @param now returns the database time */
export function createCredentialUses(db: Db, now: () => number): CredentialUses {
  const keys = createPendingUses('api_keys');
  const logins = createPendingUses('grants');
  return {
    recordKeyUse: (id) => void keys.ids.add(id),
    recordLoginUse: (id) => void logins.ids.add(id),
    pendingCount: () => keys.ids.size + logins.ids.size,
    async flush() {
      for (const uses of [keys, logins]) await writeUses(db, uses, now());
    },
  };
}

function createPendingUses(table: PendingUses['table']): PendingUses {
  return { table, ids: new Set(), writtenMinute: 0, writtenIds: new Set() };
}

/** Writes the pending uses, except those of credentials whose use in this minute is already stored. */
async function writeUses(db: Db, uses: PendingUses, usedAt: number): Promise<void> {
  const minute = startOfPeriod(usedAt, minuteMs);
  if (minute !== uses.writtenMinute) {
    uses.writtenMinute = minute;
    uses.writtenIds = new Set();
  }
  const { table, ids, writtenIds } = uses;
  for (const id of writtenIds) ids.delete(id);
  for (const batch of toChunks([...ids].sort(), maxUsesPerStatement)) {
    // Removed first, so that the next write includes a use that occurs during this statement.
    for (const id of batch) ids.delete(id);
    await markUsed(db, table, batch, usedAt).catch((error: unknown) => {
      for (const id of batch) ids.add(id);
      throw error;
    });
    for (const id of batch) writtenIds.add(id);
  }
}

/** Takes no workspace, because these credentials were just verified. */
async function markUsed(db: Db, table: PendingUses['table'], ids: readonly string[], usedAt: number): Promise<void> {
  await db.updateTable(table).set({ last_used_at: usedAt }).where('id', 'in', ids).execute();
}

/** Identifies presented API keys, for both calls and management. */
type ApiKeyCheck = {
  /**
   * Returns the key, or undefined if it is unknown. `chargeQuery` charges the query for a key that was never seen before.
   * @throws Unauthenticated if the key is revoked or expired. Only its holder has the secret, so the message may say
   * when.
   */
  verify(presented: string, chargeQuery?: QueryCharge): MaybePromise<VerifiedKey | undefined>;
  /** Removes a key from the cache by its id, because it changed. */
  invalidate(id: string): void;
  clear(): void;
  /** Counts since the process started, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

/** Maximum number of cached keys. One tenant can fill three quarters of the cache. */
export const maxCachedKeys = 13_500;

type ApiKeyCheckOptions = {
  /** Returns the database time in epoch ms. */
  now: () => number;
  freshness: Freshness;
  /** Called with the id of each valid key that is presented. */
  onUse: (id: string) => void;
};

function createEndedKeyError(event: string, at: number): Unauthenticated {
  const time = new Date(at).toISOString().replace(/\.\d+/, '');
  return new Unauthenticated('invalid', `this API key ${event} at ${time}; use another key`);
}

/** Caches keys by their hash. A malformed key fails its checksum without a database query. */
export function createApiKeyCheck(db: Db, { now, freshness, onUse }: ApiKeyCheckOptions): ApiKeyCheck {
  const cache = createReadThroughCache<VerifiedKey>({
    max: maxCachedKeys,
    freshness,
    getIds: (key) => [key.id, key.workspaceId, ...key.ancestors],
    getOwner: (key) => key.workspaceId,
  });
  const requireValid = (key: VerifiedKey | undefined) => {
    if (!key) return undefined;
    if (key.revokedAt !== undefined) throw createEndedKeyError('was revoked', key.revokedAt);
    if (key.expiresAt !== undefined && key.expiresAt <= now()) throw createEndedKeyError('expired', key.expiresAt);
    onUse(key.id);
    return key;
  };
  async function readKey(
    id: string,
    secretHash: string,
    chargeQuery: QueryCharge,
  ): Promise<{ value: VerifiedKey } | undefined> {
    chargeQuery?.();
    const key = await findApiKey(db, id);
    if (!key || !timingSafeEqual(Buffer.from(key.secretHash), Buffer.from(secretHash))) return undefined;
    const ancestors = await findKeyAncestors(db, key);
    const limitedBy = [key, ...ancestors].flatMap(({ id, limits }) => (limits ? [{ id, limits }] : []));
    return { value: { ...key, ancestors: ancestors.map((ancestor) => ancestor.id), limitedBy } };
  }

  return {
    verify(presented, chargeQuery) {
      const secretHash = hashPresentedSecret(presented);
      const cached = cache.get(secretHash);
      if (cached) return requireValid(cached);
      const id = getApiKeyId(presented);
      if (id === undefined) return undefined;
      return cache
        .load(secretHash, (before) => readKey(id, secretHash, before ? undefined : chargeQuery))
        .then(requireValid);
    },
    invalidate: cache.invalidate,
    clear: cache.clear,
    counts: cache.counts,
  };
}
