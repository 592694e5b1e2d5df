import { yieldBetweenRows } from '@toolhost/errors/yield-to-event-loop';
import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { isInWorkspace } from '../page.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/** Secret of a hosted server without its value. It may be sent only to `origins`. */
export type SecretInfo = { name: string; origins: string[]; createdBy: string; updatedAt: number };

/** Secret with its value; undefined if the key that sealed it is missing. */
export type SecretWithValue = SecretInfo & { value: string | undefined };

type ServerKey = { workspaceId: string; id: string };

export async function saveSecret(
  db: Db,
  keyring: Keyring,
  server: ServerKey,
  secret: SecretInfo & { value: string },
): Promise<void> {
  const columns = {
    sealed_value: keyring.seal(secret.value, contexts.secret(server, secret.name)),
    origins: JSON.stringify(secret.origins),
    created_by: secret.createdBy,
    updated_at: secret.updatedAt,
  };
  await db
    .insertInto('secrets')
    .values({ server_id: server.id, workspace_id: server.workspaceId, name: secret.name, ...columns })
    .onConflict((c) => c.columns(['server_id', 'name']).doUpdateSet(columns))
    .execute();
}

/** Returns false if the secret did not exist. */
export async function removeSecret(db: Db, server: ServerKey, name: string): Promise<boolean> {
  const result = await db
    .deleteFrom('secrets')
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('name', '=', name)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

export async function findSecrets(db: Db, server: ServerKey): Promise<SecretInfo[]> {
  const parseOrigins = createOriginsParser();
  const rows = await selectSecrets(db, server).select(['name', 'origins', 'created_by', 'updated_at']).execute();
  return rows.map((row) => ({
    name: row.name,
    origins: parseOrigins(row.origins),
    createdBy: row.created_by,
    updatedAt: row.updated_at,
  }));
}

/**
 * Returns the secrets of these servers, by server id. A list of hosts that several secrets share is read and parsed
 * once.
 */
export async function findSecretsByServer(
  db: Db,
  workspaceId: string,
  serverIds: readonly string[],
): Promise<Map<string, Pick<SecretInfo, 'name' | 'origins'>[]>> {
  if (serverIds.length === 0) return new Map();
  const isFirst = sql`row_number() over (partition by server_id, origins order by name) = 1`;
  const rows = await db
    .selectFrom('secrets')
    .select(['server_id', 'name', sql<string | null>`case when ${isFirst} then origins end`.as('originsText')])
    .where('server_id', 'in', serverIds)
    .where(isInWorkspace(workspaceId))
    .orderBy('server_id')
    .orderBy('origins')
    .orderBy('name')
    .execute();
  const secretsByServer = new Map<string, { name: string; origins: string[] }[]>();
  const yieldAfterRow = yieldBetweenRows();
  let origins: string[] = [];
  for (const { server_id, name, originsText } of rows) {
    await yieldAfterRow();
    if (originsText !== null) origins = JSON.parse(originsText) as string[];
    const secrets = secretsByServer.get(server_id) ?? [];
    secrets.push({ name, origins });
    secretsByServer.set(server_id, secrets);
  }
  return secretsByServer;
}

/** Returns the value of a sealed secret; undefined if the key that sealed it is missing. */
function tryOpen(keyring: Keyring, sealed: string, context: string): string | undefined {
  try {
    return keyring.open(sealed, context);
  } catch {
    return undefined;
  }
}

/** Returns a secret with its value, to determine if an update would change it. */
export async function findSecret(
  db: Db,
  keyring: Keyring,
  server: ServerKey,
  name: string,
): Promise<SecretWithValue | undefined> {
  const row = await db
    .selectFrom('secrets')
    .selectAll()
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .where('name', '=', name)
    .executeTakeFirst();
  return (
    row && {
      name,
      origins: JSON.parse(row.origins) as string[],
      createdBy: row.created_by,
      updatedAt: row.updated_at,
      value: tryOpen(keyring, row.sealed_value, contexts.secret(server, name)),
    }
  );
}

/** Returns the opened values of a server's secrets, for the gateway only. */
export async function openSecrets(
  db: Db,
  keyring: Keyring,
  server: ServerKey,
): Promise<Map<string, { value: string; origins: string[] }>> {
  const rows = await selectSecrets(db, server).select(['name', 'origins', 'sealed_value']).execute();
  const parseOrigins = createOriginsParser();
  return new Map(
    rows.map((row) => [
      row.name,
      {
        value: keyring.open(row.sealed_value, contexts.secret(server, row.name)),
        origins: parseOrigins(row.origins),
      },
    ]),
  );
}

/**
 * Returns a cached parser of origins. Most secrets of a server share a list of hosts, and both can be large, so each
 * list is parsed once.
 */
function createOriginsParser(): (text: string) => string[] {
  const parsed = new Map<string, string[]>();
  return (text) => {
    const origins = parsed.get(text) ?? (JSON.parse(text) as string[]);
    parsed.set(text, origins);
    return origins;
  };
}

function selectSecrets(db: Db, server: ServerKey) {
  return db
    .selectFrom('secrets')
    .where('workspace_id', '=', server.workspaceId)
    .where('server_id', '=', server.id)
    .orderBy('name');
}
