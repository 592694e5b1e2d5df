import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { newId } from '@toolhost/credentials/ids';
import type { Config } from '../config.ts';
import {
  findOtherClocks,
  heartbeatTimeoutMs,
  recordHeartbeat,
  removeProcess,
  type ServingProcess,
} from '../store/changes/processes.ts';
import { version } from '../version.ts';
import type { Store } from './open-store.ts';

/** Registers this process with the others that serve from the database, and counts them. */
export type Membership = {
  /** Sends a heartbeat and counts the processes. Called once a second. @throws any database error */
  sendHeartbeat(): Promise<void>;
  /** Number of processes that serve from the database, including this one, as of the last `sendHeartbeat`. */
  readonly count: number;
  /** Returns how far the clocks of the others were ahead of the database time at the last `sendHeartbeat`, in ms. */
  getOtherSkews(): readonly number[];
  /** Removes the registration. @throws any database error */
  leave(): Promise<void>;
};

/**
 * Creates the membership of this process. Only one service can use a SQLite file, so there the count is the
 * configured number of workers.
 */
export function createMembership(
  { engine, changes: db, time }: Store,
  { workers }: Config,
  masterKeys: readonly string[],
): Membership {
  if (engine === 'sqlite')
    return {
      sendHeartbeat: async () => undefined,
      count: workers,
      getOtherSkews: () => [],
      leave: async () => undefined,
    };
  const self: ServingProcess = {
    id: newId(randomBytes, 'prc'),
    version,
    host: hostname(),
    pid: process.pid,
    startedAt: time.now(),
    masterKeys,
  };
  let otherSkews: readonly number[] = [];
  let hasLeft = false;
  const membership = {
    count: workers,
    async sendHeartbeat() {
      if (hasLeft) return;
      const at = time.now();
      await recordHeartbeat(db, self, { at, clockAt: at + time.skewMs() });
      const clocks = await findOtherClocks(db, self.id, at - heartbeatTimeoutMs);
      membership.count = 1 + clocks.length;
      otherSkews = clocks.map((clock) => clock - at);
    },
    getOtherSkews: () => otherSkews,
    async leave() {
      hasLeft = true;
      await removeProcess(db, self.id);
    },
  };
  return membership;
}
