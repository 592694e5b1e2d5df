import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Secrets } from '../config.ts';
import { decidedAdmission, type McpEndpoint } from '../domain/mcp.ts';
import { MemoryBudget, type OnGivenUp } from '../domain/work/memory-budget.ts';
import { loadedOnce } from '../domain/work/next-turn.ts';
import { createFront } from '../edge/front.ts';
import type { CallToolParts } from '../gateway/call/call-tool.ts';
import { createFileAddresses } from '../gateway/files/attach-files.ts';
import { createFileListener } from '../gateway/files/file-listener.ts';
import { createKeptFiles } from '../gateway/files/kept-files.ts';
import type { HostedServer } from '../gateway/hosted/hosted-server.ts';
import { offeredTools } from '../gateway/hosted/served.ts';
import type { KeptAnswersOptions } from '../gateway/kept-answers.ts';
import { createAnswerRests } from '../gateway/long-answers/answer-rests.ts';
import { createMcpListener } from '../gateway/mcp-listener.ts';
import { createTryOut } from '../gateway/try-out.ts';
import type { Log } from '../log.ts';
import type { Serving } from '../operations/operation.ts';
import { createGates } from '../operations/quotas/gate.ts';
import type { Runner, ServingRunner } from '../operations/run-operation.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import type { Database } from '../store/database.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { callersOf } from './adapters/callers.ts';
import { createConnectionProbe } from './adapters/connection-probe.ts';
import { endpoints, hosting } from './adapters/endpoints.ts';
import { longBodies } from './adapters/long-bodies.ts';
import { createTelling } from './adapters/telling.ts';
import { decodingWork, gatewayWork, startThreads } from './adapters/threads.ts';
import { type Caches, createCaches } from './caches.ts';
import { limitCalls } from './call-limits.ts';
import { type CallRecords, startCallRecords } from './call-records.ts';
import { startElected } from './elected/elected.ts';
import type { FullConfig } from './full-config.ts';
import { openKeyring } from './keys/keyring.ts';
import { createLoginCheck, createLogins, type Logins } from './logins.ts';
import { metricSources, storedMetrics } from './observability/metric-sources.ts';
import { type Observability, startObservability } from './observability/observability.ts';
import { openStore, type Store } from './open-store.ts';
import { operationParts, urlRule } from './operation-parts.ts';
import { outboundClients } from './outbound-clients.ts';
import { createPresence, type Presence } from './presence.ts';
import { createReadiness } from './readiness.ts';
import type { Surroundings } from './surroundings.ts';
import type { Web } from './web.ts';

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  observability: Pick<Observability, 'read' | 'onGivenUp'>;
  /** Fails readiness probes, so that load balancers send requests elsewhere. */
  drain(): void;
  /** See `Database`. */
  lost: Promise<string>;
  /** Used at exit: threads that are busy in native code cannot be ended. */
  threads: Pick<ThreadPool, 'states' | 'counts'>;
  /** Returns false if pending data was lost. */
  close(): Promise<boolean>;
};

/** Builds the components of a serving process and connects them. */
export async function createApp(
  config: FullConfig,
  secrets: Secrets,
  log: Log,
  surroundings: Surroundings,
): Promise<App> {
  const database = await openStore({ config, secrets }, config.siblings === undefined, log, surroundings);
  const { now } = database.time;
  const keyring = await openKeyring({ config, secrets }, database, log);
  const observability = await startObservability(config, secrets.metricsToken, log);
  const work = startWork(config, surroundings, observability.onGivenUp);
  const { memory, threads } = work;
  const { http, documents } = outboundClients(config, secrets, surroundings, { log, observability, ...work });
  const onUnexpected = (error: unknown, requestId: string) => log.error({ err: error, requestId }, 'unexpected error');
  const from = { config, store: database, keyring, log };
  const caches = createCaches({ ...from, ...surroundings });
  const logins = createLogins({ ...from, ...observability, caches, http, documents });
  const callLog = startCallRecords({ ...from, uses: caches.uses, dataDir: config.dataDir, ...observability });
  const presence = createPresence(database, config, keyring.keyIds);
  const { limits, circuits, addresses, ...limited } = limitCalls({ ...from, ...work, presence, http }, surroundings);
  const kept = keptAnswers(config, { ...database, keyring, random: randomBytes, now, onUnexpected });
  const shared = { limits, now, onUnexpected, urlProblem: urlRule(config), threads: gatewayWork(threads), ...kept };
  const own = { ...shared, memory, clientTokens: logins.clientTokens };
  const callParts = { ...observability.ofCalls, ...own, http: limited.http, record: callLog.add };
  const callers = callersOf({ ...caches, ...logins }, addresses, log);
  const endpointOf = hosting(config, callers, callParts);
  const managing = managingOf(database, surroundings, presence, work);
  const runner: ServingRunner = {
    ...managing,
    parts: {
      ...operationParts(config, keyring, now, { threads, http, clock: surroundings.runningClock }),
      serving: {
        ...createTryOut(caches.servers, { ...callParts, clock: surroundings.clock }),
        ...clientParts(logins, caches, { endpointOf, http, login: async () => (await web()).login, callParts }),
        flushCalls: callLog.flush,
        presentUse: limited.presentUse,
        telling: createTelling(http, secrets, log),
      },
    },
    onCommitted: caches.changes.lookAfterCommit,
  };
  // Loaded with the first request. A process that serves only agents starts faster and uses less memory without it.
  const web = loadedOnce<Web>(async () => {
    const { createWeb } = await import('./web.ts');
    return createWeb({ config, caches, logins, runner, observability, onUnexpected, ...addresses });
  });
  const others = await join({ presence, ...limited }, database, caches, log);
  const parts = { http, caches, logins, callLog, limits, circuits, ...managing, threads, ...kept };
  observability.watch(metricSources({ ...database, ...addresses, ...others, ...parts }), () => storedMetrics(database));
  const find = endpoints({ config, caches, logins, runner }, endpointOf);
  const { ofMcpListener, ofWebRouter } = observability;
  const listener = { ...surroundings, ...addresses, onUnexpected };
  const handle = createFront({
    ...listener,
    config,
    random: randomBytes,
    serveMcp: createMcpListener({ ...listener, ...ofMcpListener, find, serverUrl: runner.parts.serverUrl }),
    serveFile: createFileListener({ ...listener, ...kept, callers, findServer: caches.servers.find, ...ofWebRouter }),
    probes: { whyNotReady: others.readiness.whyNot, ...ofWebRouter },
    serveWeb: async (request, response) => (await web()).serve(request, response),
  });
  const elected = startElected(config, database, log, runner.parts, surroundings.electedLookMs);
  return {
    handle,
    runner,
    observability,
    threads,
    lost: database.lost,
    drain: others.readiness.drain,
    close: () => closeInTurn({ ...parts, elected, others, limited, documents, database, observability }),
  };
}

type Work = ReturnType<typeof startWork>;

/** Starts the threads, and creates the budget for the memory that the work of workspaces may use. */
function startWork({ workers }: FullConfig, { memory: memoryOf }: Surroundings, onGivenUp: OnGivenUp) {
  const { work, waitingInputs, thread } = memoryOf(workers);
  const memory = new MemoryBudget(work, onGivenUp);
  const threads = startThreads(memory, thread);
  return { memory, waitingInputs, threads, decodeOnThread: decodingWork(threads), onGivenUp };
}

/** Creates the stores that retain long and large results for some minutes. */
function keptAnswers(config: FullConfig, options: KeptAnswersOptions) {
  return {
    rests: createAnswerRests(options),
    files: createKeptFiles(options),
    fileAddresses: createFileAddresses(config.baseUrl, config.serverHosts),
  };
}

type Served = {
  endpointOf: (server: HostedServer) => McpEndpoint;
  http: HttpClient;
  login: () => Promise<Web['login']>;
  callParts: CallToolParts;
};

/** Creates the components that act as clients of a hosted server: connection checks, and models. */
function clientParts(
  { grants, oauthParts: oauth }: Logins,
  { servers }: Caches,
  { http, callParts, ...served }: Served,
): Pick<Serving, 'probeConnection' | 'finishLogin' | 'offeredTools' | 'askModel'> {
  return {
    probeConnection: createConnectionProbe({ servers, oauth, ...served }),
    finishLogin: createLoginCheck({ oauth, grants }),
    offeredTools: (wanted) => offeredTools(servers, wanted),
    askModel: async (asked) =>
      (await import('../gateway/models/send-question.ts')).sendQuestion(asked, { ...callParts, servers, http }),
  };
}

/**
 * Joins the processes that serve from the database. From now on, the caches are kept up to date, and readiness
 * depends on it.
 */
async function join(
  { presence, measureLag }: { presence: Presence; measureLag: () => void },
  store: Store,
  { changes }: Caches,
  log: Log,
) {
  const readiness = createReadiness(store, { changes, presence }, log);
  const report = async () => {
    readiness.watchClock();
    await presence.announce();
  };
  await changes.look();
  await report();
  changes.afterLooks(report);
  measureLag();
  return {
    readiness,
    presence,
    /** Without a database, the other processes notice when the heartbeat expires. */
    async leave() {
      if (!changes.state().isUp) return;
      await presence
        .leave()
        .catch((error) => log.warn({ err: error }, 'could not deregister this process from the other processes'));
    },
  };
}

/**
 * Returns the resources that operations run on, and the concurrency limiters before them. The processes share the
 * time of reports.
 */
function managingOf(
  { engine, db, transactions, reports }: Database,
  { reportShare, clock }: Surroundings,
  presence: Presence,
  { waitingInputs: waitingBytes, memory, threads, onGivenUp }: Work,
): Omit<ServingRunner, 'parts' | 'onCommitted'> {
  const reportsAtOnce = engine === 'sqlite' ? 1 : 2;
  const share = () => reportShare / presence.count;
  return {
    db,
    transactions,
    reports,
    gates: createGates({ reportsAtOnce, reportShare: share, waitingBytes, onGivenUp }),
    memory,
    readLong: longBodies(threads, waitingBytes),
    createAdmission: (decide) => decidedAdmission(decide, clock),
  };
}

/** Components that are stopped with the process, each before the components that it depends on. */
type Ending = {
  elected: { stop(): Promise<void> };
  others: { leave(): Promise<void> };
  limited: { stop(): Promise<void> };
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
async function closeInTurn(parts: Ending): Promise<boolean> {
  await parts.elected.stop();
  await parts.others.leave();
  const hasAllTokens = await parts.logins.stop();
  await parts.caches.changes.stop();
  const [hasAllRecords] = await Promise.all([parts.callLog.stop(), parts.limited.stop()]);
  await parts.threads.close();
  await Promise.all([parts.http.close(), parts.documents.close()]);
  await parts.database.close();
  await parts.observability.stop();
  return hasAllTokens && hasAllRecords;
}
