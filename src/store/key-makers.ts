import { type ApiKey, keysById } from './api-keys.ts';
import type { Db } from './database.ts';

/** Keys make keys; a chain of them is followed this far. */
const maxSteps = 20;
/** Ids in one statement. */
const chunk = 500;

function chunks(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / chunk) }, (_, i) => ids.slice(i * chunk, (i + 1) * chunk));
}

/** Ids of every key that a person made, and of every key that was made with one of those; revoked ones too. */
async function idsMadeBy(db: Db, workspaceId: string, userId: string): Promise<string[]> {
  const found = new Set<string>();
  let makers = [userId];
  for (let step = 0; step < maxSteps && makers.length > 0; step++) {
    const made: string[] = [];
    for (const some of chunks(makers)) {
      const rows = await db
        .selectFrom('api_keys')
        .select('id')
        .where('workspace_id', '=', workspaceId)
        .where('created_by', 'in', some)
        .execute();
      made.push(...rows.map(({ id }) => id));
    }
    makers = made.filter((id) => !found.has(id));
    for (const id of makers) found.add(id);
  }
  return [...found];
}

/** The keys that a person made, themselves or with a key of theirs, and that still work. */
export async function workingKeysMadeBy(db: Db, workspaceId: string, userId: string, now: number): Promise<ApiKey[]> {
  const keys: ApiKey[] = [];
  for (const some of chunks(await idsMadeBy(db, workspaceId, userId))) {
    keys.push(...(await keysById(db, workspaceId, some)));
  }
  return keys.filter(({ revokedAt, expiresAt }) => revokedAt === undefined && (expiresAt ?? now + 1) > now);
}

/** Who is behind each key: the person, or else whatever made the first key of the chain. */
export async function originsOfKeys(
  db: Db,
  workspaceId: string,
  keys: readonly ApiKey[],
): Promise<ReadonlyMap<string, string>> {
  const origins = new Map(keys.map(({ id, createdBy }) => [id, createdBy]));
  for (let step = 0; step < maxSteps; step++) {
    const open = [...new Set(origins.values())].filter((maker) => maker.startsWith('key_'));
    const makers = new Map<string, string>();
    for (const some of chunks(open)) {
      for (const { id, createdBy } of await keysById(db, workspaceId, some)) makers.set(id, createdBy);
    }
    if (makers.size === 0) break;
    for (const [id, maker] of origins) origins.set(id, makers.get(maker) ?? maker);
  }
  return origins;
}
