import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createLazyLoader } from '@toolhost/errors/yield-to-event-loop';
import { MemoryBudget, type OnShed } from '@toolhost/limits/memory-budget';
import { createAuthorizationSnapshot, type McpEndpoint } from '@toolhost/mcp-protocol/mcp';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { Secrets } from '../config.ts';
import { createFront } from '../edge/front.ts';
import type { CallToolDeps } from '../gateway/call/call-tool.ts';
import { createFileUrls } from '../gateway/files/attach-files.ts';
import { createFileListener } from '../gateway/files/file-listener.ts';
import { createFileStore } from '../gateway/files/stored-files.ts';
import type { HostedServer } from '../gateway/hosted/hosted-server.ts';
import { getExposedTools } from '../gateway/hosted/served.ts';
import { createContinuationStore } from '../gateway/long-results/continuations.ts';
import { createMcpListener } from '../gateway/mcp-listener.ts';
import type { ResultStoreOptions } from '../gateway/stored-results.ts';
import { createTryOut } from '../gateway/try-out.ts';
import type { Log } from '../log.ts';
import type { Serving } from '../operations/operation.ts';
import { createConcurrencyLimiters } from '../operations/quotas/concurrency-limiters.ts';
import type { Runner, ServingRunner } from '../operations/run-operation.ts';
import type { Database } from '../store/database.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { createCallerOptions } from './adapters/callers.ts';
import { createConnectionProbe } from './adapters/connection-probe.ts';
import { createFindEndpoint, createGetEndpoint } from './adapters/endpoints.ts';
import { createReadLongBody } from './adapters/long-bodies.ts';
import { createNotificationSender } from './adapters/notifier.ts';
import { createDecodeOnThread, createThreadWork, startThreads } from './adapters/threads.ts';
import { type Caches, createCaches } from './caches.ts';
import { createCallLimits } from './call-limits.ts';
import { type CallRecords, startCallRecords } from './call-records.ts';
import type { FullConfig } from './full-config.ts';
import { openKeyring } from './keys/keyring.ts';
import { startLeaderJobs } from './leader-jobs/leader-jobs.ts';
import { createLoginCheck, createLogins, type Logins } from './logins.ts';
import { createMembership, type Membership } from './membership.ts';
import { createMetricSources, readStoredMetrics } from './observability/metric-sources.ts';
import { type Observability, startObservability } from './observability/observability.ts';
import { openStore, type Store } from './open-store.ts';
import { createOperationDeps, createUrlRule } from './operation-deps.ts';
import { createOutboundClients } from './outbound-clients.ts';
import { createReadiness } from './readiness.ts';
import type { RuntimeOptions } from './runtime-options.ts';
import type { Web } from './web.ts';

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  observability: Pick<Observability, 'read' | 'onGivenUp'>;
  /** Fails readiness probes, so that load balancers send requests elsewhere. */
  drain(): void;
  /** See `Database`. */
  databaseLost: Promise<string>;
  /** Used at exit: threads that are busy in native code cannot be ended. */
  threads: Pick<ThreadPool, 'states' | 'counts'>;
  /** Returns false if pending data was lost. */
  close(): Promise<boolean>;
};

/** Builds the components of a serving process and connects them. */
export async function createApp(config: FullConfig, secrets: Secrets, log: Log, runtime: RuntimeOptions): Promise<App> {
  const database = await openStore({ config, secrets }, config.siblings === undefined, log, runtime);
  const { now } = database.time;
  const keyring = await openKeyring({ config, secrets }, database, log);
  const observability = await startObservability(config, secrets.metricsToken, log);
  const work = startWork(config, runtime, observability.onGivenUp);
  const { memory, threads } = work;
  const { http, documents } = createOutboundClients(config, secrets, runtime, { log, observability, ...work });
  const onUnexpected = (error: unknown, requestId: string) => log.error({ err: error, requestId }, 'unexpected error');
  const common = { config, store: database, keyring, log };
  const caches = createCaches({ ...common, ...runtime });
  const logins = createLogins({ ...common, ...observability, caches, http, documents });
  const callLog = startCallRecords({ ...common, uses: caches.uses, dataDir: config.dataDir, ...observability });
  const membership = createMembership(database, config, keyring.keyIds);
  const { limits, circuits, addresses, ...callLimits } = createCallLimits(
    { ...common, ...work, membership, http },
    runtime,
  );
  const resultStores = createResultStores(config, { ...database, keyring, random: randomBytes, now, onUnexpected });
  const gatewayDeps = {
    limits,
    now,
    onUnexpected,
    urlProblem: createUrlRule(config),
    threads: createThreadWork(threads),
    ...resultStores,
  };
  const serverDeps = { ...gatewayDeps, memory, clientTokens: logins.clientTokens };
  const callDeps = { ...observability.callHooks, ...serverDeps, http: callLimits.http, record: callLog.add };
  const callers = createCallerOptions({ ...caches, ...logins }, addresses, log);
  const getEndpoint = createGetEndpoint(config, callers, callDeps);
  const runnerBase = createRunnerBase(database, runtime, membership, work);
  const runner: ServingRunner = {
    ...runnerBase,
    deps: {
      ...createOperationDeps(config, keyring, now, { threads, http, clock: runtime.runningClock }),
      serving: {
        ...createTryOut(caches.servers, { ...callDeps, clock: runtime.clock }),
        ...createClientParts(logins, caches, { getEndpoint, http, login: async () => (await web()).login, callDeps }),
        flushCalls: callLog.flush,
        currentUsage: callLimits.presentUse,
        notifier: createNotificationSender(http, secrets, log),
      },
    },
    onCommitted: caches.changes.pollAfterCommit,
  };
  // Loaded with the first request. A process that serves only agents starts faster and uses less memory without it.
  const web = createLazyLoader<Web>(async () => {
    const { createWeb } = await import('./web.ts');
    return createWeb({ config, caches, logins, runner, observability, onUnexpected, ...addresses });
  });
  const membershipHandles = await joinProcesses({ membership, ...callLimits }, database, caches, log);
  const components = { http, caches, logins, callLog, limits, circuits, ...runnerBase, threads, ...resultStores };
  observability.addSources(
    createMetricSources({ ...database, ...addresses, ...membershipHandles, ...components }),
    () => readStoredMetrics(database),
  );
  const findEndpoint = createFindEndpoint({ config, caches, logins, runner }, getEndpoint);
  const { mcpListenerHooks, webRouterHooks } = observability;
  const listener = { ...runtime, ...addresses, onUnexpected };
  const handle = createFront({
    ...listener,
    config,
    random: randomBytes,
    serveMcp: createMcpListener({ ...listener, ...mcpListenerHooks, findEndpoint, serverUrl: runner.deps.serverUrl }),
    serveFile: createFileListener({
      ...listener,
      ...resultStores,
      callers,
      findServer: caches.servers.find,
      ...webRouterHooks,
    }),
    probes: { getUnreadyReason: membershipHandles.readiness.findReason, ...webRouterHooks },
    serveWeb: async (request, response) => (await web()).serve(request, response),
  });
  const leaderJobs = startLeaderJobs(config, database, log, runner.deps, runtime.leaderPollIntervalMs);
  return {
    handle,
    runner,
    observability,
    threads,
    databaseLost: database.databaseLost,
    drain: membershipHandles.readiness.drain,
    close: () =>
      closeInOrder({ ...components, leaderJobs, membershipHandles, callLimits, documents, database, observability }),
  };
}

type Work = ReturnType<typeof startWork>;

/** Starts the threads, and creates the budget for the memory that the work of workspaces may use. */
function startWork({ workers }: FullConfig, { divideMemory }: RuntimeOptions, onGivenUp: OnShed) {
  const { work: workBudget, queuedInputs, thread } = divideMemory(workers);
  const memory = new MemoryBudget(workBudget, onGivenUp);
  const threads = startThreads(memory, thread);
  return { memory, waitingInputs: queuedInputs, threads, decodeOnThread: createDecodeOnThread(threads), onGivenUp };
}

/** Creates the stores that retain long and large results for some minutes. */
function createResultStores(config: FullConfig, options: ResultStoreOptions) {
  return {
    continuations: createContinuationStore(options),
    files: createFileStore(options),
    fileUrls: createFileUrls(config.baseUrl, config.serverHosts),
  };
}

type ClientDeps = {
  getEndpoint: (server: HostedServer) => McpEndpoint;
  http: HttpClient;
  login: () => Promise<Web['login']>;
  callDeps: CallToolDeps;
};

/** Creates the components that act as clients of a hosted server: connection checks, and models. */
function createClientParts(
  { grants, oauthParts: oauth }: Logins,
  { servers }: Caches,
  { http, callDeps, ...otherDeps }: ClientDeps,
): Pick<Serving, 'probeConnection' | 'finishLogin' | 'offeredTools' | 'askModel'> {
  return {
    probeConnection: createConnectionProbe({ servers, oauth, ...otherDeps }),
    finishLogin: createLoginCheck({ oauth, grants }),
    offeredTools: (request) => getExposedTools(servers, request),
    askModel: async (question) =>
      (await import('../gateway/models/send-question.ts')).sendQuestion(question, { ...callDeps, servers, http }),
  };
}

/**
 * Joins the processes that serve from the database. From now on, the caches are kept up to date, and readiness
 * depends on it.
 */
async function joinProcesses(
  { membership, measureLag }: { membership: Membership; measureLag: () => void },
  store: Store,
  { changes }: Caches,
  log: Log,
) {
  const readiness = createReadiness(store, { changes, membership }, log);
  const report = async () => {
    readiness.logClockState();
    await membership.sendHeartbeat();
  };
  await changes.poll();
  await report();
  changes.afterEachPoll(report);
  measureLag();
  return {
    readiness,
    presence: membership,
    /** Without a database, the other processes notice when the heartbeat expires. */
    async leave() {
      if (!changes.state().isUp) return;
      await membership
        .leave()
        .catch((error) => log.warn({ err: error }, 'could not deregister this process from the other processes'));
    },
  };
}

/**
 * Returns the resources that operations run on, and the concurrency limiters before them. The processes share the
 * time of reports.
 */
function createRunnerBase(
  { engine, db, transactions, reports }: Database,
  { reportShare, clock }: RuntimeOptions,
  membership: Membership,
  { waitingInputs: maxQueuedBytes, memory, threads, onGivenUp: onShed }: Work,
): Omit<ServingRunner, 'deps' | 'onCommitted'> {
  const maxConcurrentReports = engine === 'sqlite' ? 1 : 2;
  const getReportShare = () => reportShare / membership.count;
  return {
    db,
    transactions,
    reports,
    concurrencyLimiters: createConcurrencyLimiters({
      maxConcurrentReports,
      reportShare: getReportShare,
      waitingBytes: maxQueuedBytes,
      onShed,
    }),
    memory,
    readLongBody: createReadLongBody(threads, maxQueuedBytes),
    createAuthorizationSnapshot: (decide) => createAuthorizationSnapshot(decide, clock),
  };
}

/** Components that are stopped with the process, each before the components that it depends on. */
type RunningComponents = {
  leaderJobs: { stop(): Promise<void> };
  membershipHandles: { leave(): Promise<void> };
  callLimits: { stop(): Promise<void> };
  caches: Caches;
  logins: Logins;
  callLog: CallRecords;
  threads: { close(): Promise<void> };
  http: HttpClient;
  documents: HttpClient;
  database: Store;
  observability: Observability;
};

/** Stops the components in order. Returns false if pending data was lost. */
async function closeInOrder(components: RunningComponents): Promise<boolean> {
  await components.leaderJobs.stop();
  await components.membershipHandles.leave();
  const savedAllTokens = await components.logins.stop();
  await components.caches.changes.stop();
  const [savedAllRecords] = await Promise.all([components.callLog.stop(), components.callLimits.stop()]);
  await components.threads.close();
  await Promise.all([components.http.close(), components.documents.close()]);
  await components.database.close();
  await components.observability.stop();
  return savedAllTokens && savedAllRecords;
}
