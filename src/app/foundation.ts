import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import type { IdentityOptions } from '../manage/identity.ts';
import { type RuleSource, rulesOf } from '../operations/config-rules.ts';
import type { Parts } from '../operations/operation.ts';
import type { Resolve } from '../outbound/connector.ts';
import { type EgressAllow, egressText } from '../outbound/egress.ts';
import { routes, urlOf } from '../routes.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { type DatabaseClock, type ProcessClocks, startDatabaseClock } from '../store/database-clock.ts';
import { reasonOf } from '../store/faults.ts';
import type { Keyring } from '../store/sealing.ts';
import { insertWorkspace } from '../store/workspaces.ts';
import type { Metric } from '../telemetry/metric.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { version } from '../version.ts';
import { faultLog } from './fault-log.ts';
import type { LoopLag } from './loop-lag.ts';
import { judgeWork } from './threads.ts';

/** The workspace of whoever is at the machine. */
export const localWorkspace = { id: 'local', name: 'Local' };

/** What a process may bring of its own; tests bring their name server, their clocks and their patience. */
export type Surroundings = {
  resolve: Resolve;
  /** What counts as the public internet besides it where a stranger names the URL: nothing, but for tests, which have no public address. */
  publicAddresses: EgressAllow;
  /** How long the headers and the whole of a request may take to come, in ms. */
  headersMs: number;
  requestMs: number;
  /** How long a client may take to read an answer of the MCP endpoints, in ms. */
  slowReaderMs: number;
  /**
   * How long nothing may move on a connection, in ms: longer than any call takes, and than the idle time of the usual load
   * balancers, so that they close first.
   */
  silentMs: number;
  /** How long a call waits for a place. */
  queueMs: number;
  /** Epoch ms. It decides nothing that another process relies on: `DatabaseClock` does. */
  now: () => number;
  /** Monotonic ms. */
  clock: () => number;
  /** The share of the time that the reports of one workspace may take. */
  reportShare: number;
  startLoopLag: (clock: () => number) => LoopLag;
};

/** The clocks of a real process. */
export const processClocks: ProcessClocks = { now: Date.now, clock: () => performance.now() };

/** The workers of one service, as one of them sees them all. */
export type Siblings = { metrics(): Promise<Metric[][]> };

/** A configuration with everything that local mode finds out at the start. */
export type FullConfig = Config & {
  baseUrl: string;
  /** Finds the identity provider, at the first sign-in; `host` is what people are told. */
  identity: { find: () => Promise<IdentityOptions>; host: string };
  /** The other workers; undefined for a process that is all of the service, which holds the database and forgets old rows. */
  siblings: Siblings | undefined;
};

/** A database and its clock, by which everything is judged that several processes judge. */
export type Store = Database & { time: DatabaseClock };

/** The file of SQLite. */
export function databaseFile({ dataDir }: Pick<Config, 'dataDir'>): string {
  return join(dataDir, 'toolhost.sqlite');
}

/** Opens the store of a configuration; `exclusive` for a process that serves. */
export async function openStore(config: Config, exclusive: boolean, log: Log, clocks: ProcessClocks): Promise<Store> {
  const database = await openDatabase({
    postgres: config.postgres,
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

/** What the deployment decides about configurations. */
function ruleSource({ managementSlug, egressAllow, baseUrl }: Config & { baseUrl: string }): RuleSource {
  return { managementSlug, egressAllow: egressText(egressAllow), ownHosts: [new URL(baseUrl).host] };
}

/** What operations need that does not depend on serving; the command line has nothing else, and no threads. */
export function operationParts(
  config: Config & { baseUrl: string },
  keyring: Keyring,
  now: () => number,
  threads?: ThreadPool,
): Omit<Parts, 'callTool' | 'previewCall' | 'probeConnection' | 'finishLogin' | 'flushCalls' | 'presentUse'> {
  const rules = ruleSource(config);
  return {
    keyring,
    rules: rulesOf(rules),
    judgeOnThread: threads && judgeWork(threads, rules),
    baseUrl: config.baseUrl,
    serverUrl: (slug) => urlOf(config.baseUrl, routes.mcp, slug),
    callbackUrl: (slug) => urlOf(config.baseUrl, routes.callback, slug),
    defaultLimits: defaultLimits(config),
    defaultQuotas: config.quotas,
    callRetentionDays: config.callRetentionDays,
    auditRetentionDays: config.auditRetentionDays,
    now,
    random: randomBytes,
  };
}

export function defaultLimits({ callsPerSecond, concurrentCalls, concurrentCallsPerKey }: Config) {
  return { callsPerSecond, concurrentCalls, concurrentPerKey: concurrentCallsPerKey };
}
