import type { Db } from '../db.ts';

/** A serving process. Times are the database's; `masterKeys` are the ids of its keys. */
export type ServingProcess = {
  id: string;
  version: string;
  host: string;
  pid: number;
  startedAt: number;
  masterKeys: readonly string[];
};

/** A process that was not seen for this long does not count. */
export const absentMs = 10_000;

// No query here names a workspace: processes serve all of them.

/** Records that a process is running. */
export async function announceProcess(db: Db, process: ServingProcess, at: number): Promise<void> {
  const { id, version, host, pid, startedAt, masterKeys } = process;
  await db
    .insertInto('processes')
    .values({ id, version, host, pid, started_at: startedAt, seen_at: at, master_keys: masterKeys.join() })
    .onConflict((c) => c.column('id').doUpdateSet({ seen_at: at }))
    .execute();
}

/** Number of processes seen at `since` or later. */
export async function countProcesses(db: Db, since: number): Promise<number> {
  const { count } = await db
    .selectFrom('processes')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('seen_at', '>=', since)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The master keys of the processes that serve at `now`; the first of each seals. */
export async function keysOfProcesses(db: Db, now: number): Promise<{ host: string; masterKeys: string[] }[]> {
  const rows = await db
    .selectFrom('processes')
    .select(['host', 'master_keys'])
    .where('seen_at', '>=', now - absentMs)
    .execute();
  return rows.map(({ host, master_keys }) => ({ host, masterKeys: master_keys.split(',') }));
}

export async function removeProcess(db: Db, id: string): Promise<void> {
  await db.deleteFrom('processes').where('id', '=', id).execute();
}

/** How long the row of a dead process is kept. */
export const processesKeptMs = 60_000;

/** Deletes processes that were last seen before `before`. */
export async function pruneProcesses(db: Db, before: number): Promise<void> {
  await db.deleteFrom('processes').where('seen_at', '<', before).execute();
}
