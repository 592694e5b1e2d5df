import type { Selectable } from 'kysely';
import type { KeyScope } from '../domain/credentials/scopes.ts';
import type { KeyLimits } from '../domain/limits.ts';
import type { Db } from './db.ts';
import { isOf, olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** An API key without its secret, of which only `secretHash` (SHA-256, hex) is stored. */
export type ApiKey = {
  id: string;
  workspaceId: string;
  name: string;
  secretHash: string;
  scopes: KeyScope[];
  /** Slugs that the key is limited to, or undefined for every server of the workspace. */
  servers: string[] | undefined;
  /** Views that the key may call besides, as `slug/view`; a key with views only has no servers. */
  views?: string[];
  createdBy: string;
  createdAt: number;
  expiresAt: number | undefined;
  revokedAt: number | undefined;
  lastUsedAt: number | undefined;
  limits?: KeyLimits;
};

/** Servers and views are in one column; only a view has a slash. */
function reachOf(stored: string | null): Pick<ApiKey, 'servers' | 'views'> {
  if (stored === null) return { servers: undefined };
  const entries = JSON.parse(stored) as string[];
  const views = entries.filter((entry) => entry.includes('/'));
  const servers = entries.filter((entry) => !entry.includes('/'));
  return views.length > 0 ? { servers, views } : { servers };
}

function storedReach({ servers, views = [] }: ApiKey): string | null {
  if (!servers && views.length === 0) return null;
  return JSON.stringify([...(servers ?? []), ...views]);
}

export function toApiKey(row: Selectable<Tables['api_keys']>): ApiKey {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    secretHash: row.secret_hash,
    scopes: JSON.parse(row.scopes) as KeyScope[],
    ...reachOf(row.servers),
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
      servers: storedReach(key),
      created_by: key.createdBy,
      created_at: key.createdAt,
      expires_at: key.expiresAt ?? null,
      limits: key.limits ? JSON.stringify(key.limits) : null,
    })
    .execute();
}

/** No workspace: the row of a presented key names it. */
export async function findApiKey(db: Db, id: string): Promise<ApiKey | undefined> {
  const row = await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toApiKey(row);
}

export async function keysById(db: Db, workspaceId: string, ids: readonly string[]): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where(isOf(workspaceId))
    .where('id', 'in', [...ids, ''])
    .execute();
  return rows.map(toApiKey);
}

/** Newest first. */
export async function findApiKeys(
  db: Db,
  workspaceId: string,
  page: Page,
): Promise<{ rows: ApiKey[]; next: string | undefined }> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where(olderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows.map(toApiKey), page.limit, (key) => ({ at: key.createdAt, id: key.id }));
}

/** Revokes a key. False when there is none, or it was revoked before. */
export async function endApiKey(db: Db, workspaceId: string, id: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Revokes some keys that work, in one statement. */
export async function endApiKeys(db: Db, workspaceId: string, ids: readonly string[], at: number): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where(isOf(workspaceId))
    .where('id', 'in', [...ids, ''])
    .where('revoked_at', 'is', null)
    .execute();
}

/** The limits of a key; undefined when there is no such key or it is revoked. */
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

/** Sets the limits of some keys, in one statement. */
export async function updateKeyLimits(
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  limits: KeyLimits | undefined,
): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ limits: limits ? JSON.stringify(limits) : null })
    .where(isOf(workspaceId))
    .where('id', 'in', [...ids, ''])
    .execute();
}
