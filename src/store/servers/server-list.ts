import { type Access, accessOf, isOpen } from '../../domain/config/access.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { enabledTools } from '../../domain/config/tool.ts';
import { parseStored } from '../../domain/json/json.ts';
import type { Db } from '../db.ts';
import { isOf, olderThan, type Page, pageOf } from '../page.ts';

/** A server as lists show it. */
export type ServerSummary = {
  id: string;
  slug: string;
  name: string;
  version: number;
  createdBy: string;
  createdAt: number;
  updatedAt: number;
  /** The set of files that it belongs to. */
  label?: string;
} & ConfigSummary;

/** A summary that is stored beside a configuration, so that lists need not read the configuration. */
export type ConfigSummary = { description?: string; access: Access; isOpen: boolean; toolCount: number };

/** Version of the summary's fields; older summaries are made again. */
const summaryFormat = 1;

export function summaryOf(config: ServerConfig): ConfigSummary {
  const { description } = config;
  const access = accessOf(config);
  return {
    ...(description !== undefined && { description }),
    access,
    isOpen: isOpen(config, access),
    toolCount: enabledTools(config).length,
  };
}

/** The text of a summary as it is stored. */
export function summaryText(config: ServerConfig): string {
  return JSON.stringify({ ...summaryOf(config), format: summaryFormat });
}

export async function listServers(
  db: Db,
  workspaceId: string,
  slugs: readonly string[] | undefined,
  page: Page,
): Promise<{ rows: ServerSummary[]; next: string | undefined }> {
  const rows = await pageOfServers(db, workspaceId, slugs, page)
    .select(['id', 'slug', 'name', 'version', 'created_by', 'created_at', 'updated_at', 'label', 'summary'])
    .execute();
  const { rows: kept, next } = pageOf(rows, page.limit, (row) => ({ at: row.created_at, id: row.id }));
  const summaries: ServerSummary[] = [];
  for (const { id, slug, name, version, summary, ...row } of kept) {
    const times = { createdBy: row.created_by, createdAt: row.created_at, updatedAt: row.updated_at };
    const known = knownSummary(summary) ?? (await summariseConfig(db, workspaceId, id));
    const label = row.label === null ? {} : { label: row.label };
    summaries.push({ id, slug, name, version, ...times, ...label, ...known });
  }
  return { rows: summaries, next };
}

function knownSummary(text: string | null): ConfigSummary | undefined {
  const { format, ...summary } = JSON.parse(text ?? '{}') as ConfigSummary & { format?: number };
  return format === summaryFormat ? summary : undefined;
}

async function summariseConfig(db: Db, workspaceId: string, id: string): Promise<ConfigSummary> {
  const query = db.selectFrom('servers').select('config').where('workspace_id', '=', workspaceId).where('id', '=', id);
  return summaryOf((await parseStored((await query.executeTakeFirstOrThrow()).config)) as ServerConfig);
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

/** Newest first, with one row more than fits the page. */
function pageOfServers(db: Db, workspaceId: string, slugs: readonly string[] | undefined, page: Page) {
  const query = db.selectFrom('servers').where('deleted_at', 'is', null);
  const wanted = slugs
    ? query.where('slug', 'in', [...slugs, '']).where(isOf(workspaceId))
    : query.where('workspace_id', '=', workspaceId);
  return wanted
    .where(olderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
}
