import type { Selectable } from 'kysely';
import type { ModelKind } from '../model.ts';
import type { Db } from './db.ts';
import type { Tables } from './schema.ts';
import { contexts, type Keyring } from './sealing/sealing.ts';

/** Model of a workspace, without its key. */
export type StoredModel = {
  name: string;
  kind: ModelKind;
  url: string;
  model: string;
  hasKey: boolean;
  createdBy: string;
  updatedAt: number;
};

/** Stores a model, or replaces the model with the same name. */
export async function saveModel(
  db: Db,
  keyring: Keyring,
  workspaceId: string,
  { name, key, ...fields }: Omit<StoredModel, 'hasKey'> & { key: string | undefined },
): Promise<void> {
  const values = {
    kind: fields.kind,
    url: fields.url,
    model: fields.model,
    sealed_key: key === undefined ? '' : keyring.seal(key, contexts.modelKey(workspaceId, name)),
    created_by: fields.createdBy,
    updated_at: fields.updatedAt,
  };
  await db
    .insertInto('models')
    .values({ workspace_id: workspaceId, name, ...values })
    .onConflict((c) => c.columns(['workspace_id', 'name']).doUpdateSet(values))
    .execute();
}

/** Lists the models of a workspace, ordered by name. */
export async function findModels(db: Db, workspaceId: string): Promise<StoredModel[]> {
  const rows = await db
    .selectFrom('models')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('name')
    .execute();
  return rows.map(toModel);
}

/** Finds a model, with its key. */
export async function findModel(
  db: Db,
  keyring: Keyring,
  workspaceId: string,
  name: string,
): Promise<(StoredModel & { key: string | undefined }) | undefined> {
  const row = await db
    .selectFrom('models')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst();
  if (!row) return undefined;
  const key = row.sealed_key === '' ? undefined : keyring.open(row.sealed_key, contexts.modelKey(workspaceId, name));
  return { ...toModel(row), key };
}

/** Returns false if the model did not exist. */
export async function removeModel(db: Db, workspaceId: string, name: string): Promise<boolean> {
  const result = await db
    .deleteFrom('models')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

function toModel(row: Selectable<Tables['models']>): StoredModel {
  const { name, url, model } = row;
  const kind = row.kind as ModelKind;
  const hasKey = row.sealed_key !== '';
  return { name, kind, url, model, hasKey, createdBy: row.created_by, updatedAt: row.updated_at };
}
