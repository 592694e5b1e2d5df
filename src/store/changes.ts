import type { Db } from './database.ts';

export type Change = { id: string; kind: 'server' | 'key' | 'grant' | 'workspace'; ref: string };

/** Written in the transaction of the change itself. No workspace: replicas follow all of them. */
export async function recordChange(db: Db, change: Change & { at: number }): Promise<void> {
  await db.insertInto('changes').values(change).execute();
}

/** What changed at `since` (epoch ms) or later. */
export async function changesSince(db: Db, since: number): Promise<Change[]> {
  return db.selectFrom('changes').select(['id', 'kind', 'ref']).where('at', '>=', since).execute();
}

export async function pruneChanges(db: Db, before: number): Promise<void> {
  await db.deleteFrom('changes').where('at', '<', before).execute();
}
