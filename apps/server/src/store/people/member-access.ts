import { sql } from 'kysely';
import type { Db } from '../db.ts';

/** Person in a workspace, who may have left it. */
export type Creator = { workspaceId: string; userId: string };

/** Returns the condition that a person created a row, directly or with a key from one of their key chains. */
function isCreatedBy({ workspaceId, userId }: Creator, column = 'created_by') {
  return sql<boolean>`${sql.ref(column)} in (
    with recursive made (id) as (
      select cast(${userId} as text) union
      select keys.id from made cross join api_keys as keys
      where keys.workspace_id = ${workspaceId} and keys.created_by = made.id
    ) select id from made)`;
}

/** Returns the names of the models that a person stored. */
export async function findModelsCreatedBy(db: Db, creator: Creator): Promise<string[]> {
  const query = db.selectFrom('models').select('name').where('workspace_id', '=', creator.workspaceId);
  const rows = await query.where(isCreatedBy(creator)).orderBy('name').execute();
  return rows.map(({ name }) => name);
}

export async function deleteModelsCreatedBy(db: Db, creator: Creator): Promise<void> {
  await db.deleteFrom('models').where('workspace_id', '=', creator.workspaceId).where(isCreatedBy(creator)).execute();
}

/** Returns the webhooks that a person created. */
export async function findWebhooksCreatedBy(db: Db, creator: Creator): Promise<{ id: string; origin: string }[]> {
  const query = db.selectFrom('webhooks').select(['id', 'origin']).where('workspace_id', '=', creator.workspaceId);
  return query.where('created_by', '=', creator.userId).orderBy('created_at').orderBy('id').execute();
}

/** Returns the first `limit` slugs of the servers that a person created, and the total count. */
export async function findServersCreatedBy(
  db: Db,
  creator: Creator,
  limit: number,
): Promise<{ slugs: string[]; count: number }> {
  const rows = await db
    .selectFrom('servers')
    .select(['slug', sql<number>`count(*) over ()`.as('count')])
    .where('workspace_id', '=', creator.workspaceId)
    .where('deleted_at', 'is', null)
    .where(isCreatedBy(creator))
    .orderBy('slug')
    .limit(limit)
    .execute();
  return { slugs: rows.map(({ slug }) => slug), count: Number(rows[0]?.count ?? 0) };
}

/** Returns the first `limit` secrets whose values a person set, and the total count. */
export async function findSecretsCreatedBy(db: Db, creator: Creator, limit: number) {
  const rows = await db
    .selectFrom('secrets')
    .innerJoin('servers', 'servers.id', 'secrets.server_id')
    .select(['servers.slug', 'secrets.name', sql<number>`count(*) over ()`.as('count')])
    .where('secrets.workspace_id', '=', creator.workspaceId)
    .where('servers.deleted_at', 'is', null)
    .where(isCreatedBy(creator, 'secrets.created_by'))
    .orderBy('servers.slug')
    .orderBy('secrets.name')
    .limit(limit)
    .execute();
  const secrets = rows.map(({ slug, name }) => ({ server: slug, name }));
  return { secrets, count: Number(rows[0]?.count ?? 0) };
}

/**
 * Returns the ids of people who left but whose keys, models, webhooks, or invitations remain; the first `limit`,
 * ordered by id.
 */
export async function findFormerMembers(db: Db, workspaceId: string, now: number, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive made (id, origin) as (
      select id, created_by from api_keys where workspace_id = ${workspaceId} and created_by like 'usr_%' union
      select keys.id, made.origin from made cross join api_keys as keys
      where keys.workspace_id = ${workspaceId} and keys.created_by = made.id
    ), remaining (maker) as (
      select id from api_keys where workspace_id = ${workspaceId} and revoked_at is null
        and (expires_at is null or expires_at > ${now}) union
      select created_by from models where workspace_id = ${workspaceId} union
      select created_by from webhooks where workspace_id = ${workspaceId} union
      select invited_by from invitations where workspace_id = ${workspaceId}
    )
    select distinct coalesce(made.origin, remaining.maker) as id from remaining left join made on made.id = remaining.maker
    where coalesce(made.origin, remaining.maker) like 'usr_%'
      and coalesce(made.origin, remaining.maker) not in (select user_id from members where workspace_id = ${workspaceId})
    order by id limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}
