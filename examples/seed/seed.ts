import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { MemoryBudget } from '@toolhost/limits/memory-budget';
import { openKeyring } from '../../apps/server/src/app/keys/keyring.ts';
import { openStore, type Store } from '../../apps/server/src/app/open-store.ts';
import { createOperationDeps } from '../../apps/server/src/app/operation-deps.ts';
import { processClocks } from '../../apps/server/src/app/runtime-options.ts';
import { type Config, localWorkspace, readConfig } from '../../apps/server/src/config.ts';
import { getDefaultDataDir } from '../../apps/server/src/data-folder.ts';
import { exampleSlug } from '../../apps/server/src/example-server.ts';
import { createLog } from '../../apps/server/src/log.ts';
import { createConcurrencyLimiters } from '../../apps/server/src/operations/quotas/concurrency-limiters.ts';
import type { Runner } from '../../apps/server/src/operations/run-operation.ts';
import { dayMs } from '../../apps/server/src/store/calls/call-writer.ts';
import { findServer, isSlugTaken } from '../../apps/server/src/store/servers/servers.ts';
import { writeCalls } from './calls.ts';
import { makeHistory } from './history.ts';
import { insertLogins } from './logins.ts';
import { createManyServers, largeSeed } from './many.ts';
import { createRandom } from './random.ts';
import { usages } from './traffic.ts';

/** Summary of the seed. `settings` precede the command that starts the service on it. */
export type Seeded = { database: string; settings: string; baseUrl: string; servers: number; calls: number };

/** Seed options: `adds` adds to existing data, `isLarge` fills the workspace to its limits. */
type SeedOptions = { adds: boolean; isLarge?: boolean };

/**
 * Fills the database of an environment. No service may use it at the same time.
 * @throws ConfigError
 * @throws AppError conflict if the database has data and `adds` is false, or if a slug of the seed exists
 */
export async function seed(env: NodeJS.ProcessEnv, { adds, isLarge = false }: SeedOptions): Promise<Seeded> {
  const settings = readConfig(env, (path) => readFileSync(path, 'utf8'));
  const config = withExample(settings.config);
  if (config.mode === 'production')
    throw new AppError(
      'conflict',
      'The seed requires local mode, but BASE_URL is not on this machine. Remove BASE_URL.',
    );
  if (!adds) assertFolderEmpty(config);
  const log = createLog('warn');
  const store = await openStore(settings, true, log, processClocks);
  const keyring = await openKeyring(settings, store, log);
  try {
    if (!adds) await assertDatabaseEmpty(store);
    await assertSlugsFree(store);
    const now = store.time.now();
    let time = now;
    const baseUrl = config.baseUrl ?? `http://127.0.0.1:${config.port}`;
    const runner = createRunner(
      store,
      createOperationDeps({ ...config, baseUrl }, keyring, () => time),
    );
    const setTime = (at: number) => {
      time = at;
    };
    const history = await makeHistory({ runner, now, setTime });
    if (isLarge)
      await createManyServers(history.run, history.people, (share) =>
        setTime(now - Math.round((27 - 26 * share) * dayMs)),
      );
    setTime(now);
    const helpdesk = await findServer(store.db, localWorkspace.id, 'helpdesk');
    const logins = helpdesk ? await insertLogins(runner, helpdesk, now) : [];
    const calls = await writeCalls(store, runner.deps, { ...history, logins, isLarge, now, next: createRandom(1) });
    return { ...toSummary(config), baseUrl, servers: 5 + (isLarge ? largeSeed.servers : 0), calls };
  } finally {
    await store.close();
  }
}

/** Allows the tools of the worked example to call this machine, on the port after that of the service. */
function withExample(config: Config): Config {
  const example = { host: '127.0.0.1', range: undefined, port: 8081 };
  return { ...config, egressAllow: [...config.egressAllow, example] };
}

function createRunner({ db }: Store, ownDeps: ReturnType<typeof createOperationDeps>): Runner {
  const deps = { ...ownDeps, random: randomBytes };
  return {
    db,
    transactions: db,
    deps,
    reports: db,
    concurrencyLimiters: createConcurrencyLimiters(),
    memory: new MemoryBudget(Number.POSITIVE_INFINITY),
    clock: processClocks.clock,
    onCommitted: async () => undefined,
  };
}

/** @throws AppError conflict */
function assertFolderEmpty({ dataDir, engine }: Config): void {
  const isUsed = engine === 'sqlite' && existsSync(dataDir) && readdirSync(dataDir).length > 0;
  if (!isUsed) return;
  throw new AppError(
    'conflict',
    `The folder ${resolve(dataDir)} is not empty. Seed another folder with DATA_DIR=./data-seed npm run seed, or add to the existing data with npm run seed -- --add.`,
  );
}

/** @throws AppError conflict */
async function assertDatabaseEmpty({ db }: Store): Promise<void> {
  const server = await db.selectFrom('servers').select('slug').limit(1).executeTakeFirst();
  if (server)
    throw new AppError(
      'conflict',
      `The database has servers, such as ${server.slug}. Add the seed to them with npm run seed -- --add.`,
    );
}

/** Rejects existing slugs, except that of the worked example. @throws AppError conflict */
async function assertSlugsFree({ db }: Store): Promise<void> {
  for (const slug of new Set([...usages.map((usage) => usage.slug), 'weather-trial'])) {
    const isExample = slug === exampleSlug && (await findServer(db, localWorkspace.id, slug)) !== undefined;
    if (!isExample && (await isSlugTaken(db, slug)))
      throw new AppError(
        'conflict',
        `The slug ${slug} already exists in this database. Nothing was changed. Seed another folder with DATA_DIR=./data-seed npm run seed.`,
      );
  }
}

function toSummary({ dataDir, engine }: Config): { database: string; settings: string } {
  if (engine === 'postgres') return { database: 'the database of DATABASE_URL', settings: '' };
  const isDefault = dataDir === getDefaultDataDir();
  return { database: resolve(dataDir), settings: isDefault ? '' : `DATA_DIR=${dataDir} ` };
}
