import type { Insertable, Selectable } from 'kysely';
import type { Db } from './database.ts';
import { olderThan, type Page, pageOf } from './page.ts';
import type { Tables } from './schema.ts';

/** What a finished login left. */
export type Grant = Selectable<Tables['grants']>;

export async function insertGrant(db: Db, grant: Insertable<Tables['grants']>): Promise<void> {
  await db.insertInto('grants').values(grant).execute();
}

/** No workspace: one of our tokens names its grant, and the caller compares the server. */
export async function findGrant(db: Db, id: string): Promise<Grant | undefined> {
  return db.selectFrom('grants').selectAll().where('id', '=', id).executeTakeFirst();
}

export async function listGrants(
  db: Db,
  workspaceId: string,
  filter: { slug: string | undefined; slugs: readonly string[] | undefined },
  page: Page,
): Promise<{ rows: Grant[]; next: string | undefined }> {
  let query = db.selectFrom('grants').selectAll().where('workspace_id', '=', workspaceId);
  if (filter.slug !== undefined) query = query.where('slug', '=', filter.slug);
  if (filter.slugs) query = query.where('slug', 'in', [...filter.slugs, '']);
  const rows = await query
    .where(olderThan('created_at', page.after))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
  return pageOf(rows, page.limit, (row) => ({ at: row.created_at, id: row.id }));
}

/** Moves our refresh token on by one; false when another redemption was first. */
export async function rotateGrant(db: Db, id: string, generation: number, at: number): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    .set({ generation: generation + 1, rotated_at: at, last_used_at: at })
    .where('id', '=', id)
    .where('generation', '=', generation)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Claims the right to refresh at the provider until `until`; of several that ask at once one gets it. */
export async function claimRefresh(db: Db, id: string, tokensVersion: number, now: number, until: number): Promise<boolean> {
  const result = await db
    .updateTable('grants')
    .set({ refreshing_until: until })
    .where('id', '=', id)
    .where('tokens_version', '=', tokensVersion)
    .where((e) => e.or([e('refreshing_until', 'is', null), e('refreshing_until', '<', now)]))
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Stores the provider's new tokens and ends the claim. */
export async function saveRefreshedTokens(db: Db, id: string, sealedTokens: string, tokensVersion: number): Promise<void> {
  await db
    .updateTable('grants')
    .set({ sealed_tokens: sealedTokens, tokens_version: tokensVersion, refreshing_until: null })
    .where('id', '=', id)
    .execute();
}

/** Gives up a claim without new tokens, so that the next call may try again. */
export async function releaseRefresh(db: Db, id: string): Promise<void> {
  await db.updateTable('grants').set({ refreshing_until: null }).where('id', '=', id).execute();
}

/** The provider no longer honours the grant; the next request makes its agent log in again. */
export async function breakGrant(db: Db, id: string, at: number): Promise<void> {
  await db.updateTable('grants').set({ broken_at: at, refreshing_until: null }).where('id', '=', id).execute();
}

/** Ends a grant with its tokens and codes. Whether there was one that had not ended before. */
export async function revokeGrant(db: Db, id: string, at: number): Promise<boolean> {
  await db.deleteFrom('tokens').where('grant_id', '=', id).execute();
  await db.deleteFrom('codes').where('grant_id', '=', id).execute();
  const result = await db
    .updateTable('grants')
    .set({ revoked_at: at, sealed_tokens: '' })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Ends every grant of a server. */
export async function revokeServerGrants(db: Db, server: { workspaceId: string; id: string }, at: number): Promise<void> {
  const grants = await db
    .selectFrom('grants')
    .select('id')
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('revoked_at', 'is', null)
    .execute();
  for (const { id } of grants) await revokeGrant(db, id, at);
}
