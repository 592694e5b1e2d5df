import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { inSteps, type Pause } from '../delete-in-steps.ts';
import { findSetQuotas } from '../quotas.ts';
import { bytesOfImports } from '../servers/imports.ts';
import { deleteVersions, trimVersions } from '../servers/server-versions.ts';
import { tombstone } from '../servers/servers.ts';

const measuredAtOnce = 100;

/**
 * Measures servers that a version of the program without quotas wrote, deletes versions beyond the kept number, and
 * clears deleted servers but for their slug. `mostVersions` is for workspaces without a quota of their own.
 */
export async function measureServers(db: Db, mostVersions: number, pause?: Pause): Promise<void> {
  for (let found = measuredAtOnce; found === measuredAtOnce; ) {
    found = await inSteps(() => measureSome(db, mostVersions), pause);
  }
}

async function measureSome(db: Db, mostVersions: number): Promise<number> {
  const rows = await db
    .selectFrom('servers')
    .select(['id', 'workspace_id as workspaceId', 'version', 'deleted_at'])
    .where('stored_bytes', 'is', null)
    .limit(measuredAtOnce)
    .execute();
  for (const { deleted_at, ...server } of rows) {
    if (deleted_at === null) {
      const most = (await findSetQuotas(db, server.workspaceId)).versions ?? mostVersions;
      const bytes = await trimVersions(db, server, most);
      await changing(db, server.id)
        .set({ stored_bytes: sql<number>`octet_length(config) + ${bytes} + ${bytesOfImports(server.id)}` })
        .execute();
    } else {
      await deleteVersions(db, server, server.version);
      await changing(db, server.id).set(tombstone).execute();
    }
  }
  return rows.length;
}

function changing(db: Db, id: string) {
  return db.updateTable('servers').where('id', '=', id).where('stored_bytes', 'is', null);
}
