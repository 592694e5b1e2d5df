import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../config.ts';
import { newId } from '../domain/ids.ts';
import {
  absentMs,
  announceProcess,
  countProcesses,
  removeProcess,
  type ServingProcess,
} from '../store/changes/processes.ts';
import { version } from '../version.ts';
import type { Store } from './open-store.ts';

/** Registers this process with the others that serve from the database, and counts them. */
export type Presence = {
  /** Renews the registration and counts, once a second. @throws any error of the database */
  announce(): Promise<void>;
  /** Number of processes that serve from the database, including this one, as of the last `announce`. */
  count(): number;
  /** Removes the registration. @throws any error of the database */
  leave(): Promise<void>;
};

/** Only one service can use a SQLite file, so the count is the configured number of workers. */
export function createPresence(
  { engine, changes: db, time }: Store,
  { workers }: Config,
  masterKeys: readonly string[],
): Presence {
  if (engine === 'sqlite')
    return { announce: async () => undefined, count: () => workers, leave: async () => undefined };
  const own: ServingProcess = {
    id: newId(randomBytes, 'prc'),
    version,
    host: hostname(),
    pid: process.pid,
    startedAt: time.now(),
    masterKeys,
  };
  let count = workers;
  let left = false;
  return {
    async announce() {
      if (left) return;
      const at = time.now();
      await announceProcess(db, own, at);
      count = Math.max(1, await countProcesses(db, at - absentMs));
    },
    count: () => count,
    async leave() {
      left = true;
      await removeProcess(db, own.id);
    },
  };
}
