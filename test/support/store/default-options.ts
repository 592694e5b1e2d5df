import { join } from 'node:path';
import type { DatabaseOptions } from '../../../apps/server/src/store/database.ts';
import { version } from '../../../apps/server/src/version.ts';
import { root } from '../../files.ts';
import { generousLimits, withConnectTimeout } from './generous-limits.ts';

/** Callbacks for tests that ignore the reports of the database. */
export const ignoredReports = {
  onError: () => undefined,
  onDatabaseError: () => undefined,
  onWarning: () => undefined,
};

export const migrationsFolder = join(root, 'migrations');

/** Options for tests that open a database themselves. A test adds the database: `postgres`, or `file` for SQLite. */
export const defaultDatabaseOptions: Omit<DatabaseOptions, 'postgres'> = {
  file: '',
  migrations: migrationsFolder,
  version,
  exclusive: false,
  now: Date.now,
  ...ignoredReports,
};

/** Returns options that open a database for a test: on PostgreSQL if there is a URL, and otherwise the SQLite file. */
export function buildDatabaseOptions(url: string | undefined, file: string, maxConnections = 2): DatabaseOptions {
  return {
    ...defaultDatabaseOptions,
    file,
    postgres: url === undefined ? undefined : { url: withConnectTimeout(url), maxConnections, authorities: undefined },
    postgresLimits: generousLimits,
  };
}
