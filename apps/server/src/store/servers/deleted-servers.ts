import { type SqlBool, sql } from 'kysely';
import { deleteServerCaptures } from '../calls/captures.ts';
import type { Db } from '../db.ts';
import type { Pause } from '../delete-in-steps.ts';
import { endServerGrants } from '../logins/grants.ts';
import { isOlderThan, type Page, toPage } from '../page.ts';
import { parseSummary } from './servers.ts';

/** Time for which a deleted server can be restored with everything that belongs to it. */
export const restorePeriodMs = 30 * 24 * 60 * 60_000;

type ServerKey = { workspaceId: string; id: string };

/** Condition that a server was deleted but is still stored. Matches an index. */
const isRestorable = sql<SqlBool>`deleted_at is not null and summary is not null`;

/** Stops serving a server. Everything that belongs to it is retained, so that it can be restored. */
export async function deleteServer(db: Db, { workspaceId, id }: ServerKey, at: number): Promise<void> {
  await db
    .updateTable('servers')
    .set({ deleted_at: at, capture_until: null })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute();
  await scheduleCheck({ db, workspaceId, id, dueAt: null });
}

/** Restores a server that was deleted after `since`. Returns false if there is none. */
export async function restoreServer(
  db: Db,
  { workspaceId, slug }: { workspaceId: string; slug: string },
  { since, at }: { since: number; at: number },
): Promise<boolean> {
  const row = await db
    .updateTable('servers')
    .set({ deleted_at: null })
    .where('workspace_id', '=', workspaceId)
    .where('slug', '=', slug)
    .where('deleted_at', '>', since)
    .where(isRestorable)
    .returning('id')
    .executeTakeFirst();
  if (row) await scheduleCheck({ db, workspaceId, id: row.id, dueAt: at });
  return row !== undefined;
}

/**
 * Schedules the next check of a server's description, if it is watched. `null` stops the checks of a deleted server.
 */
async function scheduleCheck({
  db,
  workspaceId,
  id,
  dueAt,
}: ServerKey & { db: Db; dueAt: number | null }): Promise<void> {
  await db
    .updateTable('import_checks')
    .set({ due_at: dueAt })
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', id)
    .where('watch', '=', 'daily')
    .execute();
}

/** Returns the server with this slug, if it was deleted after `since` and can be restored. */
export async function findDeleted(
  db: Db,
  { workspaceId, slug }: { workspaceId: string; slug: string },
  since: number,
): Promise<(ServerKey & { slug: string }) | undefined> {
  const query = db.selectFrom('servers').select('id').where('workspace_id', '=', workspaceId).where('slug', '=', slug);
  const row = await query.where('deleted_at', '>', since).where(isRestorable).executeTakeFirst();
  return row && { id: row.id, workspaceId, slug };
}

/**
 * Deletes all secrets of a server, including those of its configuration, and the upstream tokens obtained with them.
 */
export async function deleteAllSecrets(db: Db, server: ServerKey): Promise<number> {
  await deleteRows(db, 'client_tokens', server).execute();
  await deleteRows(db, 'person_values', server).execute();
  return Number((await deleteRows(db, 'secrets', server).executeTakeFirst()).numDeletedRows);
}

function deleteRows(db: Db, table: (typeof ownedTables)[number], { workspaceId, id }: ServerKey) {
  return db
    .deleteFrom(table as 'secrets')
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', id);
}

export type DeletedServer = {
  id: string;
  slug: string;
  name: string;
  toolCount: number;
  secretCount: number;
  deletedAt: number;
};

/** Lists the servers of a workspace that were deleted after `since`, most recently deleted first. */
export async function listDeleted(
  db: Db,
  workspaceId: string,
  since: number,
  page: Page,
): Promise<{ rows: DeletedServer[]; next: string | undefined }> {
  const rows = await db
    .selectFrom('servers')
    .select(['id', 'slug', 'name', 'summary', 'deleted_at'])
    .select((e) =>
      e
        .selectFrom('secrets')
        .select((inner) => inner.fn.countAll<number>().as('count'))
        .whereRef('secrets.server_id', '=', 'servers.id')
        .as('secret_count'),
    )
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', '>', since)
    .where(isRestorable)
    .where(isOlderThan('deleted_at', page.after))
    .orderBy('deleted_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  const servers = rows.map(({ id, slug, name, summary, secret_count, deleted_at }) => {
    const counts = { toolCount: parseSummary(summary)?.toolCount ?? 0, secretCount: Number(secret_count ?? 0) };
    return { id, slug, name, ...counts, deletedAt: deleted_at ?? 0 };
  });
  return toPage(servers, page.limit, ({ id, deletedAt }) => ({ at: deletedAt, id }));
}

/** Returns the earliest deleted server of a workspace that is still stored, with its bytes. */
export async function findEarliestDeleted(
  db: Db,
  workspaceId: string,
): Promise<{ id: string; bytes: number } | undefined> {
  return db
    .selectFrom('servers')
    .select(['id', 'stored_bytes as bytes'])
    .where('workspace_id', '=', workspaceId)
    .where(isRestorable)
    .orderBy('deleted_at')
    .orderBy('id')
    .executeTakeFirst();
}

/** Values that empty the columns of a purged server. Only its slug and times remain permanently. */
export const tombstone = {
  name: '',
  config: '{}',
  summary: null,
  stored_bytes: 0,
  limits: null,
  label: null,
  applied_version: null,
  copied_from: null,
  copied_version: null,
  tags: null,
  tool_names: null,
};

/** Tables whose rows are deleted together with their server. */
const ownedTables = [
  'secrets',
  'client_tokens',
  'person_values',
  'server_versions',
  'imports',
  'import_checks',
] as const;

/**
 * Number of logins and captures that are deleted immediately with their server. Maintenance deletes the others, which
 * no one can use or read.
 */
const purgedImmediately = { grants: 500, captures: 50 };

/** Permanently deletes a deleted server, except a tombstone that reserves its slug. */
export async function purgeServer(db: Db, server: ServerKey, at: number): Promise<void> {
  for (const table of ownedTables) await deleteRows(db, table, server).execute();
  await endServerGrants(db, server, at, purgedImmediately.grants);
  await deleteServerCaptures(db, server, purgedImmediately.captures);
  const update = db.updateTable('servers').set(tombstone).where('workspace_id', '=', server.workspaceId);
  await update.where('id', '=', server.id).where('deleted_at', 'is not', null).execute();
}

/**
 * Permanently deletes the servers that were deleted before `before`. Takes no workspace, because the time is the same
 * for all of them.
 */
export async function pruneDeletedServers(db: Db, before: number, now: number, pause?: Pause): Promise<void> {
  const { rows } = await sql<ServerKey>`select id, workspace_id as "workspaceId" from servers
    where ${isRestorable} and deleted_at <= ${before}`.execute(db);
  for (const server of rows) {
    await purgeServer(db, server, now);
    await pause?.();
  }
}

/** Releases the slug of a deleted server for reuse, in a temporary database. */
export async function releaseSlug(db: Db, workspaceId: string, slug: string, now: number): Promise<void> {
  const query = db.selectFrom('servers').select('id').where('workspace_id', '=', workspaceId).where('slug', '=', slug);
  const row = await query.where('deleted_at', 'is not', null).executeTakeFirst();
  if (!row) return;
  await purgeServer(db, { workspaceId, id: row.id }, now);
  await db.deleteFrom('servers').where('workspace_id', '=', workspaceId).where('id', '=', row.id).execute();
}
