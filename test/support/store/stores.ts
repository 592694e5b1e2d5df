import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, type DatabaseOptions, openDatabase } from '../../../src/store/database.ts';
import type { Engine } from '../../../src/store/db.ts';
import { version } from '../../../src/version.ts';
import { patientLimits, patientUrl } from './patient-limits.ts';
import { startPostgres, type TestPostgres } from './postgres.ts';

export const engines: readonly Engine[] = ['sqlite', 'postgres'];

/** One of the two engines, and as many empty databases of it as a test wants. */
export type Stores = {
  /** Undefined for SQLite. */
  postgres: TestPostgres | undefined;
  /** Options that open a new and empty database, which is not made yet. */
  newOptions(): Promise<DatabaseOptions>;
  /** Opens a new and empty database; closed by `stop`. */
  open(): Promise<Database>;
  stop(): Promise<void>;
};

/** Callbacks for tests that ignore the reports of the database. */
export const ignored = { onError: () => undefined, onFault: () => undefined, onWarning: () => undefined };

export const migrationsFolder = join(import.meta.dirname, '..', '..', '..', 'migrations');

/** Options for tests that open a database themselves. A test adds which one: `postgres`, or `file` for SQLite. */
export const usualOptions: Omit<DatabaseOptions, 'postgres'> = {
  file: '',
  migrations: migrationsFolder,
  version,
  exclusive: false,
  now: Date.now,
  ...ignored,
};

export async function startStores(engine: Engine): Promise<Stores> {
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-store-'));
  const opened: Database[] = [];
  let count = 0;
  const newOptions = async (): Promise<DatabaseOptions> => ({
    ...usualOptions,
    postgres: postgres && {
      url: patientUrl(await postgres.createDatabase()),
      connections: 10,
      authorities: undefined,
    },
    file: join(folder, `${++count}.sqlite`),
    postgresLimits: patientLimits,
  });
  return {
    postgres,
    newOptions,
    async open() {
      const database = await openDatabase(await newOptions());
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
