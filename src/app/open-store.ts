import { join } from 'node:path';
import { type Config, localWorkspace, type Settings } from '../config.ts';
import type { Log } from '../log.ts';
import { type DatabaseClock, type ProcessClocks, startDatabaseClock } from '../store/changes/database-clock.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { reasonOf } from '../store/engine/faults.ts';
import { insertWorkspace } from '../store/people/workspaces.ts';
import { version } from '../version.ts';
import { faultLog } from './observability/fault-log.ts';

/** A database and its clock, by which everything is judged that several processes judge. */
export type Store = Database & { time: DatabaseClock };

/** The file of SQLite. */
export function databaseFile({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'toolhost.sqlite');
}

/** Opens the store of a configuration; `exclusive` for a process that serves. */
export async function openStore(
  { config, secrets }: Settings,
  exclusive: boolean,
  log: Log,
  clocks: ProcessClocks,
): Promise<Store> {
  const database = await openDatabase({
    postgres: secrets.postgres,
    file: databaseFile(config),
    migrations: join(import.meta.dirname, '..', '..', 'migrations'),
    version,
    exclusive,
    now: clocks.now,
    // Only the words: pg adds to the error the client, and with it the connection's settings.
    onError: (error) => log.warn({ reason: reasonOf(error) }, 'a database connection was lost'),
    onFault: faultLog(log, () => performance.now()),
    // One process of a service says it for all.
    onWarning: (sentence) => exclusive && log.warn(sentence),
  });
  try {
    const time = await startDatabaseClock(database.db, clocks);
    await insertWorkspace(database.db, { ...localWorkspace, at: time.now() });
    return { ...database, time };
  } catch (error) {
    await database.close();
    throw error;
  }
}
