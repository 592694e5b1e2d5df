import { type ApiKey, keysById, toApiKey } from './api-keys.ts';
import type { Db } from './db.ts';
import { olderThan, type Page, pageOf } from './page.ts';

/** Longest chain of keys, each made with the one before, that is followed. */
const maxSteps = 20;
/** Most ids in one statement. */
const chunk = 500;

function chunks(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / chunk) }, (_, i) => ids.slice(i * chunk, (i + 1) * chunk));
}

/** Valid keys that a person made, directly or with a key of theirs. */
export async function workingKeysMadeBy(db: Db, workspaceId: string, userId: string, now: number): Promise<ApiKey[]> {
  return (await workingKeys(db, workspaceId, userId, now).selectAll('api_keys').execute()).map(toApiKey);
}

/** A page of these keys, newest first. */
export async function listWorkingKeysMadeBy(
  db: Db,
  { workspaceId, userId, now }: { workspaceId: string; userId: string; now: number },
  page: Page,
): Promise<{ rows: ApiKey[]; next: string | undefined }> {
  const found = await workingKeys(db, workspaceId, userId, now)
    .select(['api_keys.id', 'api_keys.created_at'])
    .where(olderThan('api_keys.created_at', page.after, 'api_keys.id'))
    .orderBy('api_keys.created_at', 'desc')
    .orderBy('api_keys.id', 'desc')
    .limit(page.limit + 1)
    .execute();
  const { rows, next } = pageOf(found, page.limit, (row) => ({ at: row.created_at, id: row.id }));
  const keys = new Map(
    (
      await keysById(
        db,
        workspaceId,
        rows.map(({ id }) => id),
      )
    ).map((key) => [key.id, key]),
  );
  return { rows: rows.flatMap(({ id }) => keys.get(id) ?? []), next };
}

/** Follows chains of keys: those that a person made, those that were made with one of these, and so on. */
function workingKeys(db: Db, workspaceId: string, userId: string, now: number) {
  return db
    .withRecursive('made', (made) =>
      made
        .selectFrom('api_keys')
        .select('id')
        .where('workspace_id', '=', workspaceId)
        .where('created_by', '=', userId)
        .union(
          made
            .selectFrom('made')
            // SQLite reads the tables of a cross join in this order.
            .crossJoin('api_keys')
            .select('api_keys.id')
            .where('api_keys.workspace_id', '=', workspaceId)
            .whereRef('api_keys.created_by', '=', 'made.id'),
        ),
    )
    .selectFrom('made')
    .innerJoin('api_keys', 'api_keys.id', 'made.id')
    .where('api_keys.revoked_at', 'is', null)
    .where((e) => e.or([e('api_keys.expires_at', 'is', null), e('api_keys.expires_at', '>', now)]));
}

/** The origin of each key: the person, or else the creator of the first key of the chain. */
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
