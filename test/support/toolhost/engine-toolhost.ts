import { join } from 'node:path';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import type { Engine } from '../../../src/store/db.ts';
import { patientLimits, patientUrl } from '../store/patient-limits.ts';
import { startPostgres } from '../store/postgres.ts';
import { usualOptions } from '../store/usual-options.ts';
import { type MovableClock, movableClock } from './movable-clock.ts';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost.ts';

/** The service on one of the two engines. Time passes only with `advanceTime`. */
export type EngineToolhost = {
  toolhost: TestToolhost;
  now(): number;
  /** Advances the time of the service and its database. */
  wait(ms: number): Promise<void>;
  /** Opens a connection of the test itself. */
  database(): Promise<Database>;
  stop(): Promise<void>;
};

export async function startOn(
  engine: Engine,
  options: StartOptions = {},
  start = Date.parse('2026-11-20T12:00:00Z'),
): Promise<EngineToolhost> {
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  const url = await postgres?.createDatabase();
  let clock: MovableClock | undefined;
  if (url !== undefined) clock = await movableClock(url);
  await clock?.stopAt(start);
  let now = start;
  let opened: Promise<Database> | undefined;
  const toolhost = await startToolhost({
    ...options,
    env: { ...options.env, ...(url !== undefined && { DATABASE_URL: url }) },
    surroundings: { ...options.surroundings, now: () => now, clock: () => now - start },
  });
  return {
    toolhost,
    now: () => now,
    async wait(ms) {
      await clock?.stopAt(now + ms);
      now += ms;
      // A poll that was running between the two steps may have compared the old time with the new one.
      await toolhost.running.app.runner.onCommitted();
    },
    database() {
      const file = join(toolhost.dataDir, 'toolhost.sqlite');
      opened ??= openDatabase({
        ...usualOptions,
        postgres: url === undefined ? undefined : { url: patientUrl(url), maxConnections: 2, authorities: undefined },
        file,
        postgresLimits: patientLimits,
        now: () => now,
      });
      return opened;
    },
    async stop() {
      await (await opened)?.close();
      await toolhost.stop();
      await postgres?.stop();
    },
  };
}
