import type { Log } from '../../log.ts';
import type { Parts } from '../../operations/operation.ts';
import type { Database } from '../../store/database.ts';
import type { FullConfig } from '../full-config.ts';
import { startUpkeep } from './upkeep.ts';
import { startWatchingImports } from './watch-imports.ts';

/** Starts the work that one of all processes does. With several workers their first process prunes for all of them. */
export function startElected(config: FullConfig, database: Database, log: Log, parts: Parts, lookMs: number) {
  const upkeep = config.siblings === undefined ? startUpkeep(config, database, log, parts.now, lookMs) : undefined;
  const watching = startWatchingImports(database, log, { ...parts, lookMs });
  return {
    async stop() {
      await Promise.all([upkeep?.stop(), watching.stop()]);
    },
  };
}
