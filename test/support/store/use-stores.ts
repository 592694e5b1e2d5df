import type { Database } from '../../../apps/server/src/store/database.ts';
import type { Engine } from '../../../apps/server/src/store/db.ts';
import { type Fixtures, useFixtures } from '../use-fixtures.ts';
import { type Stores, startStores } from './stores.ts';

/** Starts an engine for the tests of the enclosing suite. */
export const useStores = (engine: Engine, fixtures: Fixtures = useFixtures()): Stores =>
  fixtures.start(() => startStores(engine));

/** Opens one empty database on an engine for the tests of the enclosing suite. */
export function useDatabase(engine: Engine, fixtures: Fixtures = useFixtures()): Database {
  const stores = useStores(engine, fixtures);
  return fixtures.start(
    () => stores.open(),
    () => undefined,
  );
}
