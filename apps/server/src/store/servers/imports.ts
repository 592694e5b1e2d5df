import { tenantIdLength } from '@toolhost/credentials/ids';
import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Db } from '../db.ts';
import { isInWorkspace } from '../page.ts';
import type { Tables } from '../schema.ts';

/** Import of a server. `choices` and `generated` are JSON. `generated` is the server without any edits. */
export type StoredImport = {
  id: string;
  workspaceId: string;
  serverId: string;
  createdAt: number;
  documentUrl: string | undefined;
  /** SHA-256 of the document. */
  documentHash: string;
  choices: string;
  generated: string;
};

/** Number of stored imports per server. An older version may reference an import that no longer exists. */
export const maxImports = 5;
/** Maximum number of older imports that one insertion deletes. Usually there is one. */
const maxDeletedImports = 100;

/**
 * Stores an import and deletes the server's imports beyond the newest `maxImports`, except those in `currentIds`, which
 * the configuration refers to.
 */
export async function insertImport(db: Db, row: StoredImport, currentIds: readonly string[] = []): Promise<void> {
  const { id, workspaceId, serverId, createdAt, documentUrl, documentHash, choices, generated } = row;
  await db
    .insertInto('imports')
    .values({
      id,
      workspace_id: workspaceId,
      server_id: serverId,
      created_at: createdAt,
      document_url: documentUrl ?? null,
      document_hash: documentHash,
      choices,
      generated,
    })
    .execute();
  const surplus = await selectImports(db, workspaceId, serverId)
    .select('id')
    .where('id', 'not in', [id, ...currentIds])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(maxDeletedImports)
    .offset(maxImports - 1)
    .execute();
  const ids = surplus.map((importRow) => importRow.id);
  if (ids.length > 0)
    await db.deleteFrom('imports').where('workspace_id', '=', workspaceId).where('id', 'in', ids).execute();
}

export async function findImport(
  db: Db,
  server: { workspaceId: string; id: string },
  id: string,
): Promise<StoredImport | undefined> {
  const row = await selectImports(db, server.workspaceId, server.id)
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst();
  return (
    row && {
      id: row.id,
      workspaceId: row.workspace_id,
      serverId: row.server_id,
      createdAt: row.created_at,
      documentUrl: row.document_url ?? undefined,
      documentHash: row.document_hash,
      choices: row.choices,
      generated: row.generated,
    }
  );
}

/** Returns an SQL expression for the bytes of a server's imports. */
export function getImportBytes(serverId: string): RawBuilder<number> {
  return sql<number>`(select coalesce(sum(octet_length(generated) + octet_length(choices)), 0) from imports where server_id = ${serverId})`;
}

function selectImports(db: Db, workspaceId: string, serverId: string) {
  return db.selectFrom('imports').where('workspace_id', '=', workspaceId).where('server_id', '=', serverId);
}

/** Frequencies at which the description of an imported server is checked. */
export const watchFrequencies = ['daily', 'never'] as const;
type WatchFrequency = (typeof watchFrequencies)[number];

/** HTTP validators of a document, so that it is downloaded only if it has changed. */
export type Validators = { url: string; etag?: string; modified?: string };

/** Counts of what a re-import would change. `server` counts the fields of the server itself. */
export type CheckCounts = { changed: number; conflicts: number; new: number; gone: number; server: number };

/** Result of the last check of one description. */
export type CheckedDescription = {
  documentHash: string;
  validators?: Validators | undefined;
  counts: CheckCounts;
};

/** Result of the last check of a server's descriptions. Without `checkedAt`, they were not checked since the import. */
export type CheckResult = {
  /** Imports that were checked (`getImportIds`). */
  importId: string | undefined;
  checkedAt?: number | undefined;
  /** Digests of the documents, separated by spaces. */
  documentHash?: string | undefined;
  /** Descriptions by the id of their import. */
  documents?: Readonly<Record<string, CheckedDescription>> | undefined;
  /** Counts of all descriptions together. */
  counts?: CheckCounts | undefined;
  failures: number;
  error?: string | undefined;
};

export type ImportCheck = CheckResult & { watch: WatchFrequency; dueAt: number | undefined };

type Server = { workspaceId: string; id: string };
type Row = Selectable<Tables['import_checks']>;

export async function findImportCheck(db: Db, server: Server): Promise<ImportCheck | undefined> {
  return (await findImportChecks(db, server.workspaceId, [server.id])).get(server.id);
}

/** Returns the checks of these servers, by server id. */
export async function findImportChecks(
  db: Db,
  workspaceId: string,
  serverIds: readonly string[],
): Promise<Map<string, ImportCheck>> {
  if (serverIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('import_checks')
    .selectAll()
    .where('server_id', 'in', serverIds)
    .where(isInWorkspace(workspaceId))
    .execute();
  return new Map(rows.map((row) => [row.server_id, toCheck(row)]));
}

function toCheck(row: Row): ImportCheck {
  return {
    watch: row.watch === 'daily' ? 'daily' : 'never',
    dueAt: row.due_at ?? undefined,
    importId: row.import_id ?? undefined,
    checkedAt: row.checked_at ?? undefined,
    documentHash: row.document_hash ?? undefined,
    documents: row.documents === null ? undefined : (JSON.parse(row.documents) as CheckResult['documents']),
    counts: row.counts === null ? undefined : (JSON.parse(row.counts) as CheckCounts),
    failures: row.failures,
    error: row.error ?? undefined,
  };
}

function toResultColumns({ importId, checkedAt, documentHash, documents, counts, failures, error }: CheckResult) {
  return {
    import_id: importId ?? null,
    checked_at: checkedAt ?? null,
    document_hash: documentHash ?? null,
    documents: documents ? JSON.stringify(documents) : null,
    counts: counts ? JSON.stringify(counts) : null,
    failures,
    error: error ?? null,
  };
}

/** Starts a new check history after an import. Retains the setting for watching the description. */
export async function resetCheck(db: Db, server: Server, result: CheckResult): Promise<void> {
  const columns = toResultColumns(result);
  await db
    .insertInto('import_checks')
    .values({ server_id: server.id, workspace_id: server.workspaceId, watch: 'never', due_at: null, ...columns })
    .onConflict((c) => c.column('server_id').doUpdateSet(columns))
    .execute();
}

/** Stores the result of a check, unless another import has become current in the meantime. */
export async function saveCheck(db: Db, server: Server, result: CheckResult): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('import_checks')
    .set(toResultColumns(result))
    .where('server_id', '=', server.id)
    .where('workspace_id', '=', server.workspaceId)
    .where('import_id', '=', result.importId ?? '')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function setWatchFrequency(
  db: Db,
  server: Server,
  watch: WatchFrequency,
  dueAt: number | undefined,
): Promise<void> {
  await db
    .updateTable('import_checks')
    .set({ watch, due_at: dueAt ?? null })
    .where('server_id', '=', server.id)
    .where('workspace_id', '=', server.workspaceId)
    .execute();
}

/** Counts the servers of a workspace whose descriptions are watched. */
export async function countWatched(db: Db, workspaceId: string): Promise<number> {
  const { count } = await db
    .selectFrom('import_checks')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('due_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Check that is due. */
export type DueCheck = { serverId: string; workspaceId: string; slug: string; dueAt: number };

/**
 * Returns the oldest due check of each tenant, except those in `excluded`, oldest first. Takes no workspace, because
 * one process does this work for all of them.
 */
export async function findDueChecks(
  db: Db,
  now: number,
  { limit, excluded }: { limit: number; excluded: readonly DueCheck[] },
): Promise<DueCheck[]> {
  const tenant = sql`substr(import_checks.workspace_id, 1, ${sql.lit(tenantIdLength)})`;
  const rows = await db
    .selectFrom(
      db
        .selectFrom('import_checks')
        .innerJoin('servers', 'servers.id', 'import_checks.server_id')
        .select([
          'import_checks.server_id',
          'import_checks.workspace_id',
          'servers.slug',
          'import_checks.due_at',
          sql<number>`row_number() over (partition by ${tenant}
            order by import_checks.due_at, import_checks.server_id)`.as('turn'),
        ])
        .where('import_checks.due_at', '<=', now)
        .where('import_checks.server_id', 'not in', [...excluded.map(({ serverId }) => serverId), ''])
        .where('servers.deleted_at', 'is', null)
        .as('due'),
    )
    .selectAll()
    .where('turn', '=', 1)
    .orderBy('due_at')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    serverId: row.server_id,
    workspaceId: row.workspace_id,
    slug: row.slug,
    dueAt: row.due_at ?? now,
  }));
}

/** Moves a due check to another time. Only one of several concurrent callers succeeds. */
export async function rescheduleCheck(db: Db, { serverId, dueAt }: DueCheck, nextDueAt: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('import_checks')
    .set({ due_at: nextDueAt })
    .where('server_id', '=', serverId)
    .where('due_at', '=', dueAt)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
