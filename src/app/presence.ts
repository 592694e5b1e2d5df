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

/** That this process serves, said to the others, and how many they are. */
export type Presence = {
  /** Says it again and counts; once a second. @throws whatever the database throws */
  announce(): Promise<void>;
  /** How many processes serve from the database, this one included, as of the last time that it was asked. */
  count(): number;
  /** Says that it no longer does. @throws whatever the database throws */
  leave(): Promise<void>;
};

/** On a SQLite file one service serves, so its processes are the workers that were asked for, and nobody need ask. */
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
