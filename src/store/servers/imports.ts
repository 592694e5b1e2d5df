import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';

/** An import of a server. `choices` and `generated` are JSON; `generated` is the server without any edit. */
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

/** Number of imports that are kept of a server; an older version of it may name one that is no longer there. */
const mostImports = 5;

/** Stores an import and deletes those of the server beyond the newest five. */
export async function insertImport(db: Db, row: StoredImport): Promise<void> {
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
  const older = await ofServer(db, workspaceId, serverId)
    .select('id')
    .where('id', '<>', id)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(100)
    .offset(mostImports - 1)
    .execute();
  const ids = older.map((old) => old.id);
  if (ids.length > 0)
    await db.deleteFrom('imports').where('workspace_id', '=', workspaceId).where('id', 'in', ids).execute();
}

export async function findImport(
  db: Db,
  server: { workspaceId: string; id: string },
  id: string,
): Promise<StoredImport | undefined> {
  const row = await ofServer(db, server.workspaceId, server.id).selectAll().where('id', '=', id).executeTakeFirst();
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

export async function deleteImports(db: Db, server: { workspaceId: string; id: string }): Promise<void> {
  await db
    .deleteFrom('imports')
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .execute();
}

/** Bytes of the imports of a server, as an SQL expression. */
export function bytesOfImports(serverId: string): RawBuilder<number> {
  return sql<number>`(select coalesce(sum(octet_length(generated) + octet_length(choices)), 0) from imports where server_id = ${serverId})`;
}

function ofServer(db: Db, workspaceId: string, serverId: string) {
  return db.selectFrom('imports').where('workspace_id', '=', workspaceId).where('server_id', '=', serverId);
}
