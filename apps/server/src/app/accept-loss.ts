import { readFileSync } from 'node:fs';
import { readStoreConfig } from '../config.ts';
import { createLog } from '../log.ts';
import { acceptLogLoss } from '../store/engine/lost-log.ts';
import { getDatabasePath } from './open-store.ts';

/**
 * Lets the database of an environment open although its write-ahead log was lost, and logs the missing data.
 * PostgreSQL recovers automatically.
 * @throws ConfigError; AppError as `acceptLogLoss`
 */
export async function acceptLostLog(env: NodeJS.ProcessEnv): Promise<void> {
  const { config } = readStoreConfig(env, (path) => readFileSync(path, 'utf8'));
  const log = createLog('warn', { isSynchronous: true });
  if (config.engine === 'sqlite') await acceptLogLoss(getDatabasePath(config), (warning) => log.warn(warning));
}
