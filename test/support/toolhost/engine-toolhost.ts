import { join } from 'node:path';
import { type Database, openDatabase } from '../../../apps/server/src/store/database.ts';
import type { Engine } from '../../../apps/server/src/store/db.ts';
import { buildDatabaseOptions } from '../store/default-options.ts';
import { startPostgres } from '../store/postgres.ts';
import { createMovableClock, type MovableClock } from './movable-clock.ts';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost.ts';

/** The service on one of the two engines. Time passes only with `advanceTime`. */
export type EngineToolhost = {
  toolhost: TestToolhost;
  now(): number;
  /** Advances the time of the service and its database. */
  advanceTime(ms: number): Promise<void>;
  /** Opens a connection of the test itself. */
  database(): Promise<Database>;
  stop(): Promise<void>;
};

export async function startToolhostOnEngine(
  engine: Engine,
  options: StartOptions = {},
  start = Date.parse('2026-11-20T12:00:00Z'),
): Promise<EngineToolhost> {
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  const url = await postgres?.createDatabase();
  let clock: MovableClock | undefined;
  if (url !== undefined) clock = await createMovableClock(url);
  await clock?.stopAt(start);
  let now = start;
  let openedDatabase: Promise<Database> | undefined;
  const toolhost = await startToolhost({
    ...options,
    env: { ...options.env, ...(url !== undefined && { DATABASE_URL: url }) },
    runtimeOptions: { ...options.runtimeOptions, now: () => now, clock: () => now - start },
  });
  return {
    toolhost,
    now: () => now,
    async advanceTime(ms) {
      await clock?.stopAt(now + ms);
      now += ms;
      // A poll that was running between the two steps may have compared the old time with the new one.
      await toolhost.running.app.runner.onCommitted();
    },
    database() {
      const options = buildDatabaseOptions(url, join(toolhost.dataDir, 'toolhost.sqlite'));
      openedDatabase ??= openDatabase({ ...options, now: () => now });
      return openedDatabase;
    },
    async stop() {
      await (await openedDatabase)?.close();
      await toolhost.stop();
      await postgres?.stop();
    },
  };
}
