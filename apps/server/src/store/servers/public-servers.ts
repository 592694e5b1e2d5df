import { tenantIdLength } from '@toolhost/credentials/ids';
import { sql } from 'kysely';
import type { Db } from '../db.ts';

/** Maximum number of servers in the catalog, and of those of one tenant, who may have many workspaces. */
export const maxCatalogEntries = 1000;
export const maxCatalogEntriesPerTenant = 100;

/** Returns the slugs of the public servers of all workspaces. Takes no workspace, because anyone may read the catalog. */
export async function findPublicSlugs(db: Db): Promise<string[]> {
  const tenant = sql`substr(workspace_id, 1, ${sql.lit(tenantIdLength)})`;
  const rows = await db
    .selectFrom(
      db
        .selectFrom('servers')
        .select(['slug', sql<number>`row_number() over (partition by ${tenant} order by slug)`.as('place')])
        .where('is_public', '=', sql.lit(1))
        .where('deleted_at', 'is', null)
        .as('published'),
    )
    .select('slug')
    .where('place', '<=', maxCatalogEntriesPerTenant)
    .orderBy('slug')
    .limit(maxCatalogEntries)
    .execute();
  return rows.map(({ slug }) => slug);
}
