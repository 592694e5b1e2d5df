import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { newId } from '@toolhost/credentials/ids';
import { AppError, type Problem } from '@toolhost/errors/errors';
import { MemoryBudget } from '@toolhost/limits/memory-budget';
import { checkServerConfig } from '@toolhost/tool-config/server-config';
import { type Config, localWorkspace, readConfig } from '../config.ts';
import { createSignInLink } from '../local/sign-in-link.ts';
import { createLog } from '../log.ts';
import { type Input, type Output, operations, operatorOperations } from '../operations/index.ts';
import { createOperatorActor } from '../operations/operation.ts';
import { createConcurrencyLimiters } from '../operations/quotas/concurrency-limiters.ts';
import { describeToolExcess } from '../operations/quotas/quotas.ts';
import { type Runner, runOperation } from '../operations/run-operation.ts';
import { isLoopback } from '../setting-addresses.ts';
import { createKeyring, type Keyring } from '../store/sealing/sealing.ts';
import { findWorkspace } from '../store/workspaces.ts';
import { findWarnings } from '../warnings.ts';
import { getDatabasePath, openStore } from './open-store.ts';
import { createOperationDeps } from './operation-deps.ts';
import { processClocks } from './runtime-options.ts';

const { createApiKey, listApiKeys, revokeApiKey, setKeyLimits } = operations;
const { getServerLimits, setServerLimits, getWorkspaceLimits, getWorkspaceQuotas } = operations;
const operatorCommands = {
  createApiKey,
  listApiKeys,
  revokeApiKey,
  setKeyLimits,
  getServerLimits,
  setServerLimits,
  getWorkspaceLimits,
  getWorkspaceQuotas,
  ...operatorOperations,
};

/** Operations that operator commands run directly on the database. The service may be running. */
export type Operator = {
  /** Location of the database, for messages. */
  database: string;
  /** True if the database was just created. */
  isNew: boolean;
  run<Name extends keyof typeof operatorCommands>(name: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Creates a link that signs the person of local mode in at the service with this URL. */
  createSignInLink(baseUrl: string): Promise<string>;
  /** Returns the database time in epoch ms. */
  now(): number;
  close(): Promise<void>;
};

type OperatorOptions = { workspace?: string; createsDatabase?: boolean };

/** Requires only the database settings. @throws AppError notFound for an unknown workspace or without a database */
export async function openOperator(env: NodeJS.ProcessEnv, options: OperatorOptions): Promise<Operator> {
  const workspaceId = options.workspace ?? localWorkspace.id;
  const { DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE } = env;
  const { CALLS_PER_SECOND, CONCURRENT_CALLS, CONCURRENT_CALLS_PER_KEY, QUOTAS } = env;
  const limits = { CALLS_PER_SECOND, CONCURRENT_CALLS, CONCURRENT_CALLS_PER_KEY, QUOTAS };
  const settings = readConfig({ DATA_DIR, DATABASE_URL, DATABASE_URL_FILE, DATABASE_CA_FILE, ...limits }, readText);
  const { config } = settings;
  const isNew = isDatabaseMissing(config);
  if (!options.createsDatabase) rejectMissingDatabase(config);
  const { db, time, close } = await openStore(settings, false, createLog('warn'), processClocks);
  if (!(await findWorkspace(db, workspaceId))) {
    await close();
    throw new AppError('notFound', `there is no workspace ${JSON.stringify(workspaceId)} in this database`);
  }
  const deps = createOperationDeps({ ...config, baseUrl: 'http://127.0.0.1' }, createTemporaryKeyring(), time.now);
  const runner: Runner = {
    db,
    transactions: db,
    deps,
    reports: db,
    concurrencyLimiters: createConcurrencyLimiters(),
    memory: new MemoryBudget(Number.POSITIVE_INFINITY),
    clock: processClocks.clock,
    onCommitted: async () => undefined,
  };
  const actor = createOperatorActor(workspaceId);
  return {
    database: config.engine === 'sqlite' ? `in ${resolve(config.dataDir)}` : 'at DATABASE_URL',
    isNew,
    run(name, input) {
      return runOperation(runner, operatorCommands[name], {
        actor,
        input,
        requestId: newId(randomBytes, 'cli'),
      }) as Promise<Output<typeof name>>;
    },
    createSignInLink: (baseUrl) => createSignInLink({ db, now: time.now }, baseUrl),
    now: time.now,
    close,
  };
}

/**
 * Returns true if there is no database. A write-ahead log without its database counts as a database, because opening
 * it reports the problem.
 */
function isDatabaseMissing(config: Config): boolean {
  const file = getDatabasePath(config);
  return config.engine === 'sqlite' && !existsSync(file) && !existsSync(`${file}-wal`);
}

/** @throws AppError notFound if opening would create a new database */
export function rejectMissingDatabase(config: Config): void {
  if (!isDatabaseMissing(config)) return;
  const folder = resolve(config.dataDir);
  throw new AppError(
    'notFound',
    `there is no database in ${folder}; set DATA_DIR to the service's folder, or first start the service with this folder`,
  );
}

/** Checks a configuration. `secrets` are the names of the secrets that will have a value. */
export type ConfigCheck = (
  config: unknown,
  secrets: readonly string[],
) => { problems: readonly Problem[]; warnings: readonly Problem[] };

/** Creates a check with the rules of the service of this environment. @throws ConfigError */
export function createConfigCheck(env: NodeJS.ProcessEnv, baseUrl: string): ConfigCheck {
  const { DATA_DIR, EGRESS_ALLOW, MANAGEMENT_SLUG, QUOTAS } = env;
  const isLocal = isLoopback(new URL(baseUrl).hostname);
  // Only a local service reads the stored addresses, which is the only file that these settings lead to.
  const { config } = readConfig({ DATA_DIR, EGRESS_ALLOW, MANAGEMENT_SLUG, QUOTAS }, isLocal ? readText : () => '');
  const { rules, defaultQuotas } = createOperationDeps(
    { ...config, baseUrl },
    createTemporaryKeyring(),
    processClocks.now,
  );
  return (raw, secrets) => {
    const { config: checked, problems } = checkServerConfig(raw, rules);
    const toolExcess = checked && describeToolExcess(checked.tools.length, defaultQuotas);
    if (toolExcess !== undefined) return { problems: [{ path: 'tools', message: toolExcess }], warnings: [] };
    return { problems, warnings: checked ? findWarnings(checked, new Set(secrets)) : [] };
  };
}

const readText = (path: string) => readFileSync(path, 'utf8');

/** Creates a random keyring for work that seals nothing, so that no master key is needed. */
function createTemporaryKeyring(): Keyring {
  return createKeyring([randomBytes(32)]);
}
