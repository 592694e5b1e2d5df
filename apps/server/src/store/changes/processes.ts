import type { Db } from '../db.ts';

/** Serving process. Times are database times. `masterKeys` are the ids of its keys. */
export type ServingProcess = {
  id: string;
  version: string;
  host: string;
  pid: number;
  startedAt: number;
  masterKeys: readonly string[];
};

/** Time after the last heartbeat at which a process counts as absent. */
export const heartbeatTimeoutMs = 10_000;

// No query here takes a workspace, because processes serve all of them.

/** Records a heartbeat: the process is running at `at`, when its own clock reads `clockAt`. */
export async function recordHeartbeat(
  db: Db,
  process: ServingProcess,
  { at, clockAt }: { at: number; clockAt: number },
): Promise<void> {
  const { id, version, host, pid, startedAt, masterKeys } = process;
  const heartbeat = { seen_at: at, clock_at: clockAt };
  await db
    .insertInto('processes')
    .values({ id, version, host, pid, started_at: startedAt, ...heartbeat, master_keys: masterKeys.join() })
    .onConflict((c) => c.column('id').doUpdateSet(heartbeat))
    .execute();
}

/** Returns the clocks of all processes except `ownId`, as of their heartbeats at `since` or later. */
export async function findOtherClocks(db: Db, ownId: string, since: number): Promise<number[]> {
  const seenProcesses = db.selectFrom('processes').select('clock_at').where('seen_at', '>=', since);
  return (await seenProcesses.where('id', '!=', ownId).execute()).map(({ clock_at }) => Number(clock_at));
}

/** Returns the master keys of the processes that serve at `now`. The first key of each process seals. */
export async function findProcessMasterKeys(db: Db, now: number): Promise<{ host: string; masterKeys: string[] }[]> {
  const rows = await db
    .selectFrom('processes')
    .select(['host', 'master_keys'])
    .where('seen_at', '>=', now - heartbeatTimeoutMs)
    .execute();
  return rows.map(({ host, master_keys }) => ({ host, masterKeys: master_keys.split(',') }));
}

export async function removeProcess(db: Db, id: string): Promise<void> {
  await db.deleteFrom('processes').where('id', '=', id).execute();
}

/** Retention of a dead process's row. */
export const processRetentionMs = 60_000;

/** Deletes processes whose last heartbeat was before `before`. */
export async function pruneProcesses(db: Db, before: number): Promise<void> {
  await db.deleteFrom('processes').where('seen_at', '<', before).execute();
}
