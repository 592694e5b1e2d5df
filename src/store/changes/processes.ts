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

/** Records that a process is running at `at`, when its own clock says `clockAt`. */
export async function announceProcess(
  db: Db,
  process: ServingProcess,
  { at, clockAt }: { at: number; clockAt: number },
): Promise<void> {
  const { id, version, host, pid, startedAt, masterKeys } = process;
  const seen = { seen_at: at, clock_at: clockAt };
  await db
    .insertInto('processes')
    .values({ id, version, host, pid, started_at: startedAt, ...seen, master_keys: masterKeys.join() })
    .onConflict((c) => c.column('id').doUpdateSet(seen))
    .execute();
}

/** What the clocks of the processes but `own` said that were seen at `since` or later. */
export async function clocksOfOthers(db: Db, own: string, since: number): Promise<number[]> {
  const seen = db.selectFrom('processes').select('clock_at').where('seen_at', '>=', since);
  return (await seen.where('id', '!=', own).execute()).map(({ clock_at }) => Number(clock_at));
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
