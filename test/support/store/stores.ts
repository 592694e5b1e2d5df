import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, type DatabaseOptions, openDatabase } from '../../../apps/server/src/store/database.ts';
import type { Engine } from '../../../apps/server/src/store/db.ts';
import { buildDatabaseOptions } from './default-options.ts';
import { startPostgres, type TestPostgres } from './postgres.ts';

/** Engines of tests that run on both. */
export const bothEngines: readonly Engine[] = ['sqlite', 'postgres'];

/** One of the two engines, and any number of empty databases on it. */
export type Stores = {
  /** Undefined for SQLite. */
  postgres: TestPostgres | undefined;
  /** Returns options that open a new, empty database, which does not exist yet. */
  newOptions(): Promise<DatabaseOptions>;
  /** Opens a new, empty database. `stop` closes it. */
  open(): Promise<Database>;
  stop(): Promise<void>;
};

/** Starts the engine. `start` starts the PostgreSQL server of a test that has its own. */
export async function startStores(engine: Engine, start: () => Promise<TestPostgres> = startPostgres): Promise<Stores> {
  const postgres = engine === 'postgres' ? await start() : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-store-'));
  const opened: Database[] = [];
  let count = 0;
  const optionsFor = async (content: 'migrated' | 'empty') =>
    buildDatabaseOptions(await postgres?.createDatabase(content), join(folder, `${++count}.sqlite`), 10);
  return {
    postgres,
    newOptions: () => optionsFor('empty'),
    async open() {
      const database = await openDatabase(await optionsFor('migrated'));
      opened.push(database);
      return database;
    },
    async stop() {
      await Promise.all(opened.map((database) => database.close()));
      await postgres?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
