import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/** Person at a server. */
export type PersonKey = { serverId: string; userId: string };

/** Values that a person brought to a server, decrypted. */
export type StoredValues = {
  values: Readonly<Record<string, string>>;
  /** Hash of the fields and hosts that the person agreed to. */
  agreement: string;
  /** Names of the values that the API refused. */
  refused: readonly string[];
  version: number;
  workspaceId: string;
};

/** Maximum number of people whose values a server stores. */
export const maxPeoplePerServer = 10_000;

/** Takes no workspace, because the server's id implies it. */
export async function findPersonValues(
  db: Db,
  keyring: Keyring,
  { serverId, userId }: PersonKey,
): Promise<StoredValues | undefined> {
  const row = await db
    .selectFrom('person_values')
    .selectAll()
    .where('server_id', '=', serverId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (!row) return undefined;
  const text = keyring.open(row.sealed_values, contexts.personValues(row.workspace_id, { serverId, userId }));
  return {
    values: JSON.parse(text) as StoredValues['values'],
    agreement: row.agreement,
    refused: parseNames(row.refused),
    version: row.version,
    workspaceId: row.workspace_id,
  };
}

function parseNames(json: string | null): string[] {
  return json === null ? [] : (JSON.parse(json) as string[]);
}

export type NewValues = PersonKey & {
  workspaceId: string;
  values: Readonly<Record<string, string>>;
  agreement: string;
  at: number;
};

/** Replaces the values of a person. Returns false, and stores nothing, if the server has values of too many people. */
export async function savePersonValues(db: Db, keyring: Keyring, input: NewValues): Promise<boolean> {
  const { serverId, userId, workspaceId, values, agreement, at } = input;
  const sealed = keyring.seal(JSON.stringify(values), contexts.personValues(workspaceId, { serverId, userId }));
  const content = {
    agreement,
    sealed_values: sealed,
    names: JSON.stringify(Object.keys(values)),
    refused: null,
    updated_at: at,
  };
  const updated = await db
    .updateTable('person_values')
    .set({ ...content, version: sql`version + 1` })
    .where('server_id', '=', serverId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (updated.numUpdatedRows > 0n) return true;
  const { count } = await db
    .selectFrom('person_values')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('server_id', '=', serverId)
    .executeTakeFirstOrThrow();
  if (Number(count) >= maxPeoplePerServer) return false;
  await db
    .insertInto('person_values')
    .values({ server_id: serverId, user_id: userId, workspace_id: workspaceId, version: 1, ...content })
    .onConflict((c) =>
      c.columns(['server_id', 'user_id']).doUpdateSet({ ...content, version: sql`person_values.version + 1` }),
    )
    .execute();
  return true;
}

/** Marks values as refused by the API. Returns false if the person has replaced them in the meantime. */
export async function markValuesRefused(
  db: Db,
  { serverId, userId }: PersonKey,
  { names, version }: { names: readonly string[]; version: number },
): Promise<boolean> {
  const result = await db
    .updateTable('person_values')
    .set({ refused: JSON.stringify(names) })
    .where('server_id', '=', serverId)
    .where('user_id', '=', userId)
    .where('version', '=', version)
    .where('refused', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Deletes the values of a person at a server. Returns false if there were none. */
export async function deletePersonValues(db: Db, { serverId, userId }: PersonKey): Promise<boolean> {
  const result = await db
    .deleteFrom('person_values')
    .where('server_id', '=', serverId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Deletes the values of a person at all servers of a workspace. */
export async function deleteValuesInWorkspace(db: Db, workspaceId: string, userId: string): Promise<void> {
  await db.deleteFrom('person_values').where('user_id', '=', userId).where('workspace_id', '=', workspaceId).execute();
}

/** Returns true if a person has a login at a server that has not ended. */
export async function hasActiveLogin(db: Db, { serverId, userId }: PersonKey): Promise<boolean> {
  const row = await db
    .selectFrom('grants')
    .select('id')
    .where('person_id', '=', userId)
    .where('server_id', '=', serverId)
    .where('revoked_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes the values of a person whose last login at a server has ended. Returns false if there is nothing to delete. */
export async function deleteUnusedValues(db: Db, person: PersonKey): Promise<boolean> {
  return !(await hasActiveLogin(db, person)) && deletePersonValues(db, person);
}

/** Values of a person at one server, without the values themselves. */
export type ListedValues = {
  serverId: string;
  slug: string;
  serverName: string;
  names: readonly string[];
  refused: readonly string[];
  updatedAt: number;
};

/** Maximum number of servers in the list of a person's own values. */
export const maxListedServers = 200;

/** Returns the servers of a workspace that hold values of a person, most recently changed first. */
export async function findValuesOfPerson(db: Db, workspaceId: string, userId: string): Promise<ListedValues[]> {
  const rows = await db
    .selectFrom('person_values')
    .innerJoin('servers', 'servers.id', 'person_values.server_id')
    .select(['server_id', 'slug', 'servers.name as server_name', 'names', 'refused', 'person_values.updated_at as at'])
    .where('user_id', '=', userId)
    .where('person_values.workspace_id', '=', workspaceId)
    .where('servers.deleted_at', 'is', null)
    .orderBy('person_values.updated_at', 'desc')
    .limit(maxListedServers)
    .execute();
  return rows.map((row) => ({
    serverId: row.server_id,
    slug: row.slug,
    serverName: row.server_name,
    names: parseNames(row.names),
    refused: parseNames(row.refused),
    updatedAt: row.at,
  }));
}

/** Returns the names of the values that people provided at servers, by server and person. */
export async function findProvidedNames(
  db: Db,
  workspaceId: string,
  people: readonly PersonKey[],
): Promise<Map<string, readonly string[]>> {
  if (people.length === 0) return new Map();
  const rows = await db
    .selectFrom('person_values')
    .select(['server_id', 'user_id', 'names'])
    .where('workspace_id', '=', workspaceId)
    .where('user_id', 'in', [...new Set(people.map(({ userId }) => userId))])
    .where('server_id', 'in', [...new Set(people.map(({ serverId }) => serverId))])
    .execute();
  return new Map(rows.map((row) => [`${row.server_id} ${row.user_id}`, parseNames(row.names)]));
}
