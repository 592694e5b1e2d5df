import { join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { type Config, localWorkspace, type Settings } from '../config.ts';
import type { Log } from '../log.ts';
import { resourceFolder } from '../resource-folder.ts';
import { type DatabaseClock, startDatabaseClock } from '../store/changes/follow-changes.ts';
import { type Database, openDatabase } from '../store/database.ts';
import type { Db } from '../store/db.ts';
import { readMigrations } from '../store/engine/migrate.ts';
import { isSlugActive } from '../store/servers/servers.ts';
import { insertWorkspace } from '../store/workspaces.ts';
import { version } from '../version.ts';
import { createDatabaseErrorLog, createLostConnectionLog } from './observability/fault-log.ts';
import type { RuntimeOptions } from './runtime-options.ts';

/** Database and its clock, which decides everything that several processes must agree on. */
export type Store = Database & { time: DatabaseClock };

/** Returns the path of the SQLite file. */
export function getDatabasePath({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'toolhost.sqlite');
}

export const migrationsFolder = join(resourceFolder, 'migrations');

/** Returns the name of the last migration that a database of this version has. */
export const getNewestMigration = () => readMigrations(migrationsFolder).at(-1)?.name;

/**
 * Opens the store of a configuration. Serving processes open it with `exclusive`.
 * @throws AppError conflict if a server has the slug of the management server
 */
export async function openStore(
  { config, secrets }: Settings,
  exclusive: boolean,
  log: Log,
  runtime: Pick<RuntimeOptions, 'now' | 'clock' | 'postgresLimits'>,
): Promise<Store> {
  const database = await openDatabase({
    postgres: secrets.postgres,
    file: getDatabasePath(config),
    migrations: migrationsFolder,
    version,
    exclusive,
    postgresLimits: runtime.postgresLimits,
    now: runtime.now,
    onError: createLostConnectionLog(log, () => performance.now()),
    onDatabaseError: createDatabaseErrorLog(log, () => performance.now()),
    // One process of a service logs the warning for all.
    onWarning: (warning) => exclusive && log.warn(warning),
  });
  try {
    if (exclusive) await rejectTakenSlug(database.db, config.managementSlug);
    const time = await startDatabaseClock(database.db, runtime);
    await insertWorkspace(database.db, { ...localWorkspace, at: time.now() });
    return { ...database, time };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * Rejects a management slug that a server has. The management server would respond in place of that server, whose
 * callers it does not know.
 */
async function rejectTakenSlug(db: Db, slug: string): Promise<void> {
  if (!(await isSlugActive(db, slug))) return;
  throw new AppError(
    'conflict',
    `MANAGEMENT_SLUG: a server has the slug ${slug}, which cannot be changed; set another slug`,
  );
}
