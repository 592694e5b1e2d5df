import { yieldAfterLongText, yieldBetweenRows } from '@toolhost/errors/yield-to-event-loop';
import { parseJson, parseStoredJson } from '@toolhost/json/json';
import type { ConfiguredLimits } from '@toolhost/limits/call-limits';
import { getSecretNeeds, type SecretNeeds } from '@toolhost/tool-config/secret-needs';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { type Access, getAccess, isOpen } from '@toolhost/tool-config/server-wide';
import { getEnabledTools } from '@toolhost/tool-config/tool';
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Db } from '../db.ts';
import { type Cursor, isInWorkspace, isOlderThan, type Page, toPage, toSqlList } from '../page.ts';
import type { Tables } from '../schema.ts';
import { matchesServer, toSearchableNames } from '../search.ts';
import { getImportBytes } from './imports.ts';
import { insertVersion } from './server-versions.ts';

/** Hosted server as stored. Every secret in `config` is masked. */
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
  /** Time until which calls of the server are captured; may be in the past. */
  captureUntil?: number;
  /** Absent if no limits are set. */
  limits?: ConfiguredLimits;
  /** Set of files that the server belongs to, and the version that was applied last. */
  label?: string;
  appliedVersion?: number;
  /** Id and version of the server that it was duplicated from. */
  copiedFrom?: string;
  copiedVersion?: number;
  /** Tags that people assign to organize their servers. */
  tags?: string[];
};

type Row = Selectable<Tables['servers']>;
type ColumnsWithoutConfig = Omit<
  Row,
  'config' | 'deleted_at' | 'summary' | 'stored_bytes' | 'tool_names' | 'is_public'
>;

function toServerWithoutConfig(row: ColumnsWithoutConfig): Omit<StoredServer, 'config'> {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    slug: row.slug,
    name: row.name,
    version: row.version,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...(row.capture_until !== null && { captureUntil: row.capture_until }),
    ...(row.limits !== null && { limits: JSON.parse(row.limits) as ConfiguredLimits }),
    ...(row.label !== null && { label: row.label }),
    ...(row.applied_version !== null && { appliedVersion: row.applied_version }),
    ...(row.copied_from !== null && { copiedFrom: row.copied_from }),
    ...(row.copied_version !== null && { copiedVersion: row.copied_version }),
    ...(row.tags !== null && { tags: JSON.parse(row.tags) as string[] }),
  };
}

/** Stores a new server and its first version. Returns false and stores nothing if any workspace ever used the slug. */
export async function insertServer(db: Db, server: StoredServer): Promise<boolean> {
  const { id, workspaceId, slug, name, version, createdBy, createdAt, updatedAt } = server;
  const config = JSON.stringify(server.config);
  await yieldAfterLongText(config);
  const result = await db
    .insertInto('servers')
    .values({
      id,
      workspace_id: workspaceId,
      slug,
      name,
      config,
      ...(await toListColumns(server.config)),
      stored_bytes: 0,
      version,
      created_by: createdBy,
      created_at: createdAt,
      updated_at: updatedAt,
    })
    .onConflict((c) => c.column('slug').doNothing())
    .executeTakeFirst();
  if (!result.numInsertedOrUpdatedRows) return false;
  await storeVersion(db, server, { config, createdBy, maxVersions: unlimited });
  return true;
}

/** Value of `maxVersions` that stores every version. */
const unlimited = 0;

async function storeVersion(
  db: Db,
  { id, workspaceId, version, updatedAt }: StoredServer,
  { config, createdBy, maxVersions }: { config: string; createdBy: string; maxVersions: number },
): Promise<void> {
  await yieldAfterLongText(config);
  const versionBytes = await insertVersion(
    db,
    { id, workspaceId, version, config, createdBy, createdAt: updatedAt },
    maxVersions,
  );
  await yieldAfterLongText(config);
  await db
    .updateTable('servers')
    .set({ stored_bytes: sql<number>`octet_length(config) + ${versionBytes} + ${getImportBytes(id)}` })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute();
}

/**
 * Stores the next version of a server, numbered `server.version`. Of the older versions, the newest `maxVersions`
 * are retained (0 means no limit). Returns false and stores nothing if the stored version is not the preceding one.
 */
export async function updateServer(
  db: Db,
  server: StoredServer,
  updatedBy: string,
  maxVersions = unlimited,
): Promise<boolean> {
  const { name, version, updatedAt } = server;
  const config = JSON.stringify(server.config);
  await yieldAfterLongText(config);
  const result = await db
    .updateTable('servers')
    .set({ config, ...(await toListColumns(server.config)), name, version, updated_at: updatedAt })
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .where('version', '=', server.version - 1)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (result.numUpdatedRows === 0n) return false;
  await storeVersion(db, server, { config, createdBy: updatedBy, maxVersions });
  return true;
}

/** Captures the calls of a server until a time; undefined stops capturing. */
export async function setCapture(db: Db, server: StoredServer, until: number | undefined): Promise<void> {
  await setColumns(db, server, { capture_until: until ?? null });
}

/** Sets the call limits of a server. Without limits, the defaults apply. */
export async function updateServerLimits(db: Db, server: StoredServer, limits: ConfiguredLimits): Promise<void> {
  await setColumns(db, server, { limits: JSON.stringify(limits) });
}

/** Records that a version of a server was applied, with the label that it belongs to. */
export async function setAppliedVersion(
  db: Db,
  server: StoredServer,
  { label, appliedVersion }: { label: string | undefined; appliedVersion: number },
): Promise<void> {
  await setColumns(db, server, { label: label ?? null, applied_version: appliedVersion });
}

/** Records the server and version that a server was duplicated from. */
export async function setCopySource(db: Db, server: StoredServer, { id, version }: StoredServer): Promise<void> {
  await setColumns(db, server, { copied_from: id, copied_version: version });
}

/** Lists the servers that were duplicated from a server, oldest first. */
export async function findCopies(
  db: Db,
  { id, workspaceId }: Pick<StoredServer, 'id' | 'workspaceId'>,
  limit: number,
): Promise<{ slug: string; name: string; version: number; copied_version: number | null }[]> {
  return db
    .selectFrom('servers')
    .select(['slug', 'name', 'version', 'copied_version'])
    .where('copied_from', '=', id)
    .where(isInWorkspace(workspaceId))
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** Sets the tags of a server. */
export async function updateServerTags(db: Db, server: StoredServer, tags: readonly string[]): Promise<void> {
  await setColumns(db, server, { tags: tags.length === 0 ? null : JSON.stringify(tags) });
}

async function setColumns(db: Db, { workspaceId, id }: StoredServer, columns: Updateable<Tables['servers']>) {
  await db.updateTable('servers').set(columns).where('workspace_id', '=', workspaceId).where('id', '=', id).execute();
}

/** Finds a server. Before a long configuration is read, `beforeLongConfig` is called with its number of bytes. */
export async function findServer(
  db: Db,
  workspaceId: string,
  slug: string,
  beforeLongConfig?: (bytes: number) => Promise<void>,
): Promise<StoredServer | undefined> {
  const servingServer = await findServingServer(db, slug);
  if (servingServer?.workspaceId !== workspaceId) return undefined;
  const { configText, configBytes, ...server } = servingServer;
  if (configText !== undefined) return { ...server, config: parseJson(configText) as ServerConfig };
  await beforeLongConfig?.(configBytes);
  const text = await findServingConfig(db, servingServer);
  // Another version was stored in the meantime.
  if (text === undefined) return findServer(db, workspaceId, slug, beforeLongConfig);
  return { ...server, config: (await parseStoredJson(text)) as ServerConfig };
}

/** Size in bytes of JSON above which reading a configuration takes milliseconds. */
const longConfigBytes = 200_000;

/** Server to be served. `configText` is omitted if it is long. */
type ServingServer = Omit<StoredServer, 'config'> & { configText: string | undefined; configBytes: number };

/** Takes no workspace, because the slug is the public address. */
export async function findServingServer(db: Db, slug: string): Promise<ServingServer | undefined> {
  const row = await db
    .selectFrom('servers')
    .select(['id', 'workspace_id', 'slug', 'name', 'version', 'created_by', 'created_at', 'updated_at'])
    .select(['capture_until', 'limits', 'label', 'applied_version', 'copied_from', 'copied_version', 'tags'])
    .select(sql<string | null>`case when octet_length(config) <= ${longConfigBytes} then config end`.as('text'))
    .select(sql<number>`octet_length(config)`.as('bytes'))
    .where('slug', '=', slug)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return row && { ...toServerWithoutConfig(row), configText: row.text ?? undefined, configBytes: Number(row.bytes) };
}

/**
 * Returns the configuration of a server whose `configText` was omitted; undefined if another version was stored in
 * the meantime.
 */
export async function findServingConfig(db: Db, server: ServingServer): Promise<string | undefined> {
  const row = await db
    .selectFrom('servers')
    .select('config')
    .where('workspace_id', '=', server.workspaceId)
    .where('id', '=', server.id)
    .where('version', '=', server.version)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return row?.config;
}

/** Returns the workspace's slugs that sort next to this one, which include those with the same prefix. */
export async function findNeighboringSlugs(db: Db, workspaceId: string, slug: string): Promise<string[]> {
  const workspaceSlugs = db
    .selectFrom('servers')
    .select('slug')
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .limit(maxNeighbors);
  const [before, after] = [
    await workspaceSlugs.where('slug', '<', slug).orderBy('slug', 'desc').execute(),
    await workspaceSlugs.where('slug', '>', slug).orderBy('slug').execute(),
  ];
  return [...before, ...after].map((row) => row.slug);
}

/** Maximum number of slugs in each direction. */
const maxNeighbors = 250;

/** Returns true if any workspace ever used a slug. Takes no workspace, because slugs are unique in the service. */
export async function isSlugTaken(db: Db, slug: string): Promise<boolean> {
  return (await db.selectFrom('servers').select('id').where('slug', '=', slug).executeTakeFirst()) !== undefined;
}

/** Returns true if a server with this slug exists, in any workspace. */
export async function isSlugActive(db: Db, slug: string): Promise<boolean> {
  const row = db.selectFrom('servers').select('id').where('slug', '=', slug).where('deleted_at', 'is', null);
  return (await row.executeTakeFirst()) !== undefined;
}

/** Server as shown in lists. */
export type ServerSummary = {
  id: string;
  slug: string;
  name: string;
  version: number;
  createdBy: string;
  createdAt: number;
  updatedAt: number;
  /** Set of files that the server belongs to. */
  label?: string;
  tags?: string[];
} & ConfigSummary;

/** Summary of a configuration. It is stored with the configuration, so that lists need not read the configuration. */
export type ConfigSummary = {
  description?: string;
  access: Access;
  isOpen: boolean;
  toolCount: number;
  views?: string[];
};

type StoredSummary = ConfigSummary & { needs?: SecretNeeds; format?: number };

/** Version of the summary's fields. Older summaries are computed again. */
const summaryFormat = 3;

export function summarizeConfig(config: ServerConfig): ConfigSummary {
  const { description } = config;
  const access = getAccess(config);
  return {
    ...(description !== undefined && { description }),
    access,
    isOpen: isOpen(config, access),
    toolCount: getEnabledTools(config).length,
    ...(config.views && { views: Object.keys(config.views) }),
  };
}

/**
 * Returns the columns that lists and searches read instead of a configuration. The summary includes the secrets that
 * its calls require.
 */
export async function toListColumns(config: ServerConfig) {
  const summary = { ...summarizeConfig(config), needs: await getSecretNeeds(config), format: summaryFormat };
  return {
    summary: JSON.stringify(summary),
    tool_names: toSearchableNames(config.tools.map(({ name }) => name)),
    is_public: config.public === true ? 1 : 0,
  };
}

/** Selects and sorts the listed servers: newest first unless `sort` is set. */
export type ServerFilter = {
  /** Words, each of which must be in the slug, the name, or the tags. */
  words?: readonly string[];
  sort?: (typeof serverSorts)[number] | undefined;
};

export const serverSorts = ['changed', 'name'] as const;

export async function listServers(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page & ServerFilter,
): Promise<{ rows: ServerSummary[]; next: string | undefined }> {
  const rows = await selectServerPage(db, workspaceId, slugs, page)
    .select(['id', 'slug', 'name', 'version', 'created_by', 'created_at', 'updated_at', 'label', 'tags', 'summary'])
    .execute();
  const { rows: pageRows, next } = toPage(rows, page.limit, createGetCursor(page));
  const summaries: ServerSummary[] = [];
  const yieldAfterRow = yieldBetweenRows();
  for (const { id, slug, name, version, summary, ...row } of pageRows) {
    await yieldAfterRow();
    const times = { createdBy: row.created_by, createdAt: row.created_at, updatedAt: row.updated_at };
    const configSummary = parseSummary(summary) ?? (await readAndSummarizeConfig(db, workspaceId, id));
    const label = row.label === null ? {} : { label: row.label };
    const tags = row.tags === null ? {} : { tags: JSON.parse(row.tags) as string[] };
    summaries.push({ id, slug, name, version, ...times, ...label, ...tags, ...configSummary });
  }
  return { rows: summaries, next };
}

/** Returns the stored summary; undefined if it has another format. */
export function parseSummary(text: string | null): ConfigSummary | undefined {
  const { format, needs: _, ...summary } = JSON.parse(text ?? '{}') as StoredSummary;
  return format === summaryFormat ? summary : undefined;
}

async function readAndSummarizeConfig(db: Db, workspaceId: string, id: string): Promise<ConfigSummary> {
  const query = db.selectFrom('servers').select('config').where('workspace_id', '=', workspaceId).where('id', '=', id);
  return summarizeConfig((await parseStoredJson((await query.executeTakeFirstOrThrow()).config)) as ServerConfig);
}

/** Returns the newest servers with the secrets that their calls require. */
export async function findSecretNeeds(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  limit: number,
): Promise<{ id: string; slug: string; needs: SecretNeeds | undefined }[]> {
  const page: Page = { limit, after: undefined };
  const rows = await selectServerPage(db, workspaceId, slugs, page).select(['id', 'slug', 'summary']).execute();
  const results = [];
  const yieldAfterRow = yieldBetweenRows();
  for (const { id, slug, summary } of rows.slice(0, limit)) {
    await yieldAfterRow();
    results.push({ id, slug, needs: (JSON.parse(summary ?? '{}') as StoredSummary).needs });
  }
  return results;
}

/** Returns the slugs of the servers that `listServers` returns for the same page. */
export async function listSlugs(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page & ServerFilter,
): Promise<{ rows: { slug: string }[]; next: string | undefined }> {
  const rows = await selectServerPage(db, workspaceId, slugs, page).select(['id', 'slug', 'created_at']).execute();
  return toPage(rows, page.limit, createGetCursor(page));
}

/**
 * Returns the cursor function of a list. Only in the order "newest first" does a row identify the start of the next
 * page. The other orders use an offset, because a quota limits the number of rows.
 */
function createGetCursor({ sort, after, limit }: Page & ServerFilter) {
  return (row: { created_at: number; id: string }): Cursor =>
    sort === undefined ? { at: row.created_at, id: row.id } : { at: (after?.at ?? 0) + limit, id: sort };
}

/** Selects a page with one row more than its limit. */
function selectServerPage(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page & ServerFilter,
) {
  const { words = [], sort } = page;
  let query = db.selectFrom('servers').where('deleted_at', 'is', null);
  query = slugs
    ? query.where('slug', 'in', toSqlList(slugs)).where(isInWorkspace(workspaceId))
    : query.where('workspace_id', '=', workspaceId);
  for (const word of words) query = query.where(matchesServer(word));
  if (sort !== undefined) {
    const sorted =
      sort === 'name' ? query.orderBy(sql`lower(name)`).orderBy('slug') : query.orderBy('updated_at', 'desc');
    return sorted
      .orderBy('id')
      .limit(page.limit + 1)
      .offset(page.after?.at ?? 0);
  }
  return query
    .where(isOlderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
}
