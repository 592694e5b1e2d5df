import { parseStoredJson } from '@toolhost/json/json';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { type Selectable, sql } from 'kysely';
import type { Db } from '../db.ts';
import { encodeCursor, type Page } from '../page.ts';
import type { Tables } from '../schema.ts';

type ServerKey = { workspaceId: string; id: string };

type StoredVersion = {
  version: number;
  config: ServerConfig;
  createdBy: string;
  createdAt: number;
  message: string | undefined;
};
type NewVersion = ServerKey & { version: number; config: string; createdBy: string; createdAt: number };

/**
 * Maximum number of bytes of stored versions per server. Older versions of large configurations are deleted. The
 * current version is always stored.
 */
export const maxVersionBytes = 20_000_000;

/**
 * Stores a version and deletes those beyond the newest `maxVersions` (0 means no limit). Returns the bytes of the
 * retained versions.
 */
export async function insertVersion(db: Db, version: NewVersion, maxVersions: number): Promise<number> {
  const { id, workspaceId, createdBy, createdAt, ...fields } = version;
  await db
    .insertInto('server_versions')
    .values({ ...fields, server_id: id, workspace_id: workspaceId, created_by: createdBy, created_at: createdAt })
    .execute();
  const sizes = await selectSizes(db, version).execute();
  let [bytes, retainedCount] = [0, 0];
  for (const size of sizes) {
    const isRetained =
      retainedCount === 0 ||
      ((maxVersions === 0 || retainedCount < maxVersions) && bytes + size.bytes <= maxVersionBytes);
    if (!isRetained) {
      await db
        .deleteFrom('server_versions')
        .where('workspace_id', '=', workspaceId)
        .where('server_id', '=', id)
        .where('version', '<=', size.version)
        .execute();
      break;
    }
    bytes += size.bytes;
    retainedCount += 1;
  }
  return bytes;
}

/** Selects the sizes of versions, newest first. */
function selectSizes(db: Db, server: ServerKey) {
  return db
    .selectFrom('server_versions')
    .select(['version', sql<number>`octet_length(config)`.as('bytes')])
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .orderBy('version', 'desc');
}

/** Maximum number of rows that are read to free space. Space beyond these rows is not freed. */
const maxVersionsDeleted = 2000;

/**
 * Deletes the oldest versions of a workspace until this many bytes are free. Returns the freed bytes. Uses few
 * statements, regardless of the number of versions, because others wait for the transaction.
 */
export async function deleteOldestVersions(db: Db, workspaceId: string, bytesToFree: number): Promise<number> {
  const oldest = db
    .selectFrom('server_versions as old')
    .innerJoin('servers', 'servers.id', 'old.server_id')
    .where('old.workspace_id', '=', workspaceId)
    .whereRef('old.version', '<', 'servers.version')
    .orderBy('old.created_at')
    .orderBy('old.server_id')
    .orderBy('old.version');
  const rows = await oldest
    .select(['old.server_id', sql<number>`octet_length(old.config)`.as('bytes')])
    .limit(maxVersionsDeleted)
    .execute();
  const freed = new Map<string, number>();
  let [count, freedBytes] = [0, 0];
  for (const { server_id, bytes } of rows) {
    if (freedBytes >= bytesToFree) break;
    freed.set(server_id, (freed.get(server_id) ?? 0) + bytes);
    freedBytes += bytes;
    count += 1;
  }
  if (count === 0) return 0;
  const deleted = oldest.select(['old.server_id', 'old.version']).limit(count);
  await sql`delete from server_versions where (server_id, version) in (${deleted})`.execute(db);
  const freedPerServer = [...freed].map(([id, bytes]) => sql`(${id}, cast(${bytes} as bigint))`);
  await sql`update servers set stored_bytes = stored_bytes - freed.column2
    from (values ${sql.join(freedPerServer)}) as freed where servers.id = freed.column1`.execute(db);
  return freedBytes;
}

/** Maximum number of bytes of configurations in one page of versions. A page ends early above it. */
const maxPageBytes = 1_000_000;

export async function findVersions(
  db: Db,
  server: ServerKey,
  page: Page,
): Promise<{ rows: StoredVersion[]; next: string | undefined }> {
  const beforeVersion = page.after?.at;
  let query = selectSizes(db, server).limit(page.limit + 1);
  if (beforeVersion !== undefined) query = query.where('version', '<', beforeVersion);
  const sizes = await query.execute();
  let bytes = 0;
  const pageSizes = sizes.filter((size, index) => {
    bytes += size.bytes;
    return index < page.limit && (index === 0 || bytes <= maxPageBytes);
  });
  const lastOfPage = pageSizes.at(-1);
  if (!lastOfPage) return { rows: [], next: undefined };
  const rows = await db
    .selectFrom('server_versions')
    .selectAll()
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('version', '>=', lastOfPage.version)
    .where('version', '<=', pageSizes[0]?.version ?? 0)
    .orderBy('version', 'desc')
    .execute();
  const next = pageSizes.length < sizes.length ? encodeCursor({ at: lastOfPage.version, id: 'version' }) : undefined;
  const versions: StoredVersion[] = [];
  for (const row of rows) versions.push(await toVersion(row));
  return { rows: versions, next };
}

export async function findVersion(db: Db, server: ServerKey, version: number): Promise<StoredVersion | undefined> {
  const row = await db
    .selectFrom('server_versions')
    .selectAll()
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('version', '=', version)
    .executeTakeFirst();
  if (!row) return undefined;
  return toVersion(row);
}

async function toVersion(row: Selectable<Tables['server_versions']>): Promise<StoredVersion> {
  return {
    version: row.version,
    config: (await parseStoredJson(row.config)) as ServerConfig,
    createdBy: row.created_by,
    createdAt: row.created_at,
    message: row.message ?? undefined,
  };
}

/** Sets or removes the message of a version. */
export async function setVersionMessage(
  db: Db,
  server: ServerKey & { version: number },
  message: string | undefined,
): Promise<void> {
  await db
    .updateTable('server_versions')
    .set({ message: message ?? null })
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('version', '=', server.version)
    .execute();
}
