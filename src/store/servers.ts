import type { Selectable } from 'kysely';
import type { SetLimits } from '../domain/limits.ts';
import type { ServerConfig } from '../domain/server-config.ts';
import { deleteServerCaptures } from './captures.ts';
import type { Db } from './database.ts';
import { olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** A hosted server as stored; `config` has every secret masked. */
export type StoredServer = {
  id: string;
  workspaceId: string;
  slug: string;
  name: string;
  config: ServerConfig;
  version: number;
  createdBy: string;
  createdAt: number;
  updatedAt: number;
  /** Until when its calls are captured; may be past. */
  captureUntil?: number;
  /** Absent where none were set. */
  limits?: SetLimits;
};

function toServer(row: Selectable<Tables['servers']>): StoredServer {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    slug: row.slug,
    name: row.name,
    config: JSON.parse(row.config) as ServerConfig,
    version: row.version,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...(row.capture_until !== null && { captureUntil: row.capture_until }),
    ...(row.limits !== null && { limits: JSON.parse(row.limits) as SetLimits }),
  };
}

/** Stores a new server and its first version. False, and nothing stored, when its slug was ever used, by anyone. */
export async function insertServer(db: Db, server: StoredServer): Promise<boolean> {
  const { id, workspaceId, slug, name, version, createdBy, createdAt, updatedAt } = server;
  const config = JSON.stringify(server.config);
  const result = await db
    .insertInto('servers')
    .values({
      id,
      workspace_id: workspaceId,
      slug,
      name,
      config,
      version,
      created_by: createdBy,
      created_at: createdAt,
      updated_at: updatedAt,
    })
    .onConflict((c) => c.column('slug').doNothing())
    .executeTakeFirst();
  if (!result.numInsertedOrUpdatedRows) return false;
  await insertVersion(db, server, config, createdBy);
  return true;
}

/**
 * Stores the next version of a server: `server.version` is the new one.
 * False, and nothing stored, when the stored version is not the one before it.
 */
export async function updateServer(db: Db, server: StoredServer, updatedBy: string): Promise<boolean> {
  const config = JSON.stringify(server.config);
  const result = await db
    .updateTable('servers')
    .set({ config, name: server.name, version: server.version, updated_at: server.updatedAt })
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .where('version', '=', server.version - 1)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (result.numUpdatedRows === 0n) return false;
  await insertVersion(db, server, config, updatedBy);
  return true;
}

async function insertVersion(db: Db, server: StoredServer, config: string, by: string): Promise<void> {
  const { id, workspaceId, version, updatedAt } = server;
  await db
    .insertInto('server_versions')
    .values({ server_id: id, workspace_id: workspaceId, version, config, created_by: by, created_at: updatedAt })
    .execute();
}

/** Captures the calls of a server until a time, or no longer. */
export async function setCapture(db: Db, server: StoredServer, until: number | undefined): Promise<void> {
  await db
    .updateTable('servers')
    .set({ capture_until: until ?? null })
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .execute();
}

/** Limits the calls of a server; without any the defaults count. */
export async function setServerLimits(db: Db, server: StoredServer, limits: SetLimits): Promise<void> {
  await db
    .updateTable('servers')
    .set({ limits: JSON.stringify(limits) })
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .execute();
}

/** Leaves a tombstone, which keeps the slug reserved; secrets and captures go for good. */
export async function deleteServer(db: Db, server: StoredServer, at: number): Promise<void> {
  await db
    .deleteFrom('secrets')
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .execute();
  await deleteServerCaptures(db, server);
  await db
    .updateTable('servers')
    .set({ deleted_at: at, updated_at: at })
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .execute();
}

export async function findServer(db: Db, workspaceId: string, slug: string): Promise<StoredServer | undefined> {
  const server = await findServingServer(db, slug);
  return server?.workspaceId === workspaceId ? server : undefined;
}

/** No workspace: the slug is the public address at which everybody may knock. */
export async function findServingServer(db: Db, slug: string): Promise<StoredServer | undefined> {
  const row = await db
    .selectFrom('servers')
    .selectAll()
    .where('slug', '=', slug)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return row && toServer(row);
}

/** Slugs of the workspace's servers that come next to this one in their order, so that words that begin alike are among them. */
export async function slugsAround(db: Db, workspaceId: string, slug: string): Promise<string[]> {
  const own = db
    .selectFrom('servers')
    .select('slug')
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .limit(mostAround);
  const [before, after] = [
    await own.where('slug', '<', slug).orderBy('slug', 'desc').execute(),
    await own.where('slug', '>', slug).orderBy('slug').execute(),
  ];
  return [...before, ...after].map((row) => row.slug);
}

const mostAround = 250;

/** Whether a slug was ever used, by anyone. No workspace: slugs are unique in the whole service. */
export async function isSlugTaken(db: Db, slug: string): Promise<boolean> {
  return (await db.selectFrom('servers').select('id').where('slug', '=', slug).executeTakeFirst()) !== undefined;
}

export async function listServers(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page,
): Promise<{ rows: StoredServer[]; next: string | undefined }> {
  const rows = await pageOfServers(db, workspaceId, slugs, page).selectAll().execute();
  return pageOf(rows.map(toServer), page.limit, (server) => ({ at: server.createdAt, id: server.id }));
}

/** Slugs of the servers that `listServers` gives for the same page. */
export async function listSlugs(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page,
): Promise<{ rows: { slug: string }[]; next: string | undefined }> {
  const rows = await pageOfServers(db, workspaceId, slugs, page).select(['id', 'slug', 'created_at']).execute();
  return pageOf(rows, page.limit, (row) => ({ at: row.created_at, id: row.id }));
}

/** Newest first, one more than the page has room for. */
function pageOfServers(db: Db, workspaceId: string, slugs: readonly string[] | undefined, page: Page) {
  let query = db.selectFrom('servers').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null);
  if (slugs) query = query.where('slug', 'in', [...slugs, '']);
  return query
    .where(olderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
}

export type StoredVersion = { version: number; config: ServerConfig; createdBy: string; createdAt: number };

/** Newest first. */
export async function listVersions(
  db: Db,
  workspaceId: string,
  serverId: string,
  limit: number,
): Promise<StoredVersion[]> {
  const rows = await db
    .selectFrom('server_versions')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', serverId)
    .orderBy('version', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toVersion);
}

export async function findVersion(
  db: Db,
  workspaceId: string,
  serverId: string,
  version: number,
): Promise<StoredVersion | undefined> {
  const row = await db
    .selectFrom('server_versions')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', serverId)
    .where('version', '=', version)
    .executeTakeFirst();
  return row && toVersion(row);
}

function toVersion(row: Selectable<Tables['server_versions']>): StoredVersion {
  return {
    version: row.version,
    config: JSON.parse(row.config) as ServerConfig,
    createdBy: row.created_by,
    createdAt: row.created_at,
  };
}
