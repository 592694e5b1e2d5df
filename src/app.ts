import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { limitCalls } from './app/call-limits.ts';
import { type CallRecords, startCallRecords } from './app/call-records.ts';
import { createConnectionProbe } from './app/connection-probe.ts';
import type { FullConfig } from './app/full-config.ts';
import { openKeyring } from './app/keyring.ts';
import { createLoginCheck } from './app/login-check.ts';
import { findPerson } from './app/management-login.ts';
import { type Memory, remember } from './app/memory.ts';
import { openStore, type Store } from './app/open-store.ts';
import { operationParts } from './app/operation-parts.ts';
import { createPresence, type Presence } from './app/presence.ts';
import { createReadiness } from './app/readiness.ts';
import { roomSources } from './app/room-sources.ts';
import { type Sight, startSight } from './app/sight.ts';
import type { Surroundings } from './app/surroundings.ts';
import { gatewayWork, startThreads } from './app/threads.ts';
import { startUpkeep } from './app/upkeep.ts';
import type { Web } from './app/web.ts';
import type { Secrets } from './config.ts';
import { hopHeader } from './domain/headers.ts';
import { type MaybePromise, whenKnown } from './domain/maybe-promise.ts';
import type { McpEndpoint } from './domain/mcp.ts';
import type { Look } from './domain/visit.ts';
import { createFront } from './edge/front.ts';
import type { CallToolParts } from './gateway/call-tool.ts';
import type { CallerOptions } from './gateway/caller.ts';
import { hostedEndpoint } from './gateway/hosted-endpoint.ts';
import type { HostedServer } from './gateway/hosted-server.ts';
import { createKnownCallers } from './gateway/known-callers.ts';
import { createMcpDoor } from './gateway/mcp-door.ts';
import { createTokenIds } from './gateway/token-ids.ts';
import { createTryOut } from './gateway/try-out.ts';
import type { Log } from './log.ts';
import { createManagementServer } from './manage/management-server.ts';
import { createReportQueue, type ReportQueue } from './operations/report-queue.ts';
import type { Runner } from './operations/run-operation.ts';
import { createWriteQueue } from './operations/write-queue.ts';
import { createOutboundDoor, type OutboundDoor } from './outbound/door.ts';
import { routes, urlOf } from './routes.ts';
import type { Database } from './store/database.ts';
import type { Metric } from './telemetry/metric.ts';
import { version } from './version.ts';

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  /** The metrics of this process, as plain data. */
  metrics(): Metric[];
  /** Says no to readiness probes, so that a load balancer looks elsewhere. */
  drain(): void;
  /** See `Database`. */
  lost: Promise<string>;
  /** False when something was lost that waited to be written. */
  close(): Promise<boolean>;
};

/** Builds every part and introduces them to one another. */
export async function createApp(
  config: FullConfig,
  secrets: Secrets,
  log: Log,
  surroundings: Surroundings,
): Promise<App> {
  const settings = { config, secrets };
  const database = await openStore(settings, config.siblings === undefined, log, surroundings);
  const { now } = database.time;
  const keyring = await openKeyring(settings, database, log);
  const sight = await startSight(config, secrets.metricsToken, log);
  const { door, documents } = outboundDoors(config, surroundings, sight, log);
  const onUnexpected = (error: unknown, requestId: string) => log.error({ err: error, requestId }, 'unexpected error');
  const memory = remember({ ...sight, ...surroundings, door, documents, config, store: database, keyring, log });
  const callLog = startCallRecords({ store: database, keyring, dataDir: config.dataDir, log, ...sight });
  const presence = createPresence(database, config, keyring.keyIds);
  const limitedBy = { config, store: database, presence, door, log };
  const { limits, breaker, addresses, ...limited } = limitCalls(limitedBy, surroundings);
  const threads = startThreads(surroundings.clock);
  const shared = { limits, now, onUnexpected, threads: gatewayWork(threads) };
  const callParts = { ...sight.ofCalls, ...shared, door: limited.door, record: callLog.add };
  const endpointOf = hosting(config, callersOf(memory, addresses, log), callParts);
  const login = async () => (await web()).login;
  const reports = reportsOf(database, surroundings, presence);
  const runner: Runner = {
    db: database.db,
    reports,
    writes: createWriteQueue(),
    parts: {
      ...operationParts(config, keyring, now, threads),
      serving: {
        ...createTryOut(memory.servers, callParts),
        probeConnection: createConnectionProbe({
          servers: memory.servers,
          endpointOf,
          login,
          oauth: memory.oauthParts,
        }),
        finishLogin: createLoginCheck({ oauth: memory.oauthParts, grants: memory.grants }),
        flushCalls: callLog.flush,
        presentUse: limited.presentUse,
      },
    },
    onCommitted: memory.changes.lookAfterCommit,
  };
  // Loaded at its first request: a process that only serves agents is ready sooner and smaller without it.
  const web = loadedOnce<Web>(async () => {
    const { createWeb } = await import('./app/web.ts');
    return createWeb({ config, memory, runner, sight, onUnexpected, ...addresses });
  });
  const others = await join(presence, database, memory, log);
  const watched = { ...database, ...addresses, ...others, door, memory, callLog, limits, breaker, reports, threads };
  sight.watch(roomSources(watched));
  const find = endpoints(config, memory, endpointOf, runner);
  const mcpDoor = { ...surroundings, ...addresses, ...sight.ofMcpDoor, onUnexpected };
  const handle = createFront({
    config,
    random: randomBytes,
    serveMcp: createMcpDoor({ ...mcpDoor, find, serverUrl: runner.parts.serverUrl }),
    probes: { whyNotReady: others.readiness.whyNot, onAnswered: sight.ofWebDoor.onAnswered },
    serveWeb: async (request, response) => (await web()).serve(request, response),
    strangers: addresses.strangers,
    onUnexpected,
  });
  const upkeep = config.siblings === undefined ? startUpkeep(config, database, log, now) : undefined;
  return {
    handle,
    runner,
    metrics: sight.read,
    lost: database.lost,
    drain: others.readiness.drain,
    close: () => closeInTurn({ upkeep, others, limited, memory, callLog, threads, door, documents, database, sight }),
  };
}

/** What ends with the process, each before what it needs. */
type Ending = {
  upkeep: { stop(): Promise<void> } | undefined;
  others: { leave(): Promise<void> };
  limited: { stop(): Promise<void> };
  memory: Memory;
  callLog: CallRecords;
  threads: { close(): Promise<void> };
  door: OutboundDoor;
  documents: OutboundDoor;
  database: Store;
  sight: Sight;
};

/** False when something was lost that waited to be written. */
async function closeInTurn(parts: Ending): Promise<boolean> {
  await parts.upkeep?.stop();
  await parts.others.leave();
  await parts.memory.stop();
  const [isComplete] = await Promise.all([parts.callLog.stop(), parts.limited.stop()]);
  await parts.threads.close();
  await Promise.all([parts.door.close(), parts.documents.close()]);
  await parts.database.close();
  await parts.sight.stop();
  return isComplete;
}

function loadedOnce<Part>(load: () => Promise<Part>): () => Promise<Part> {
  let loaded: Promise<Part> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** The operator's exceptions to the address guard are for workspaces, not for whoever registers a client. */
function outboundDoors({ egressAllow }: FullConfig, surroundings: Surroundings, sight: Sight, log: Log) {
  const { resolve, publicAddresses } = surroundings;
  const said = 'an upstream sent bytes that no request asked for; its connections are not used twice for ten minutes';
  const onUnasked = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, said);
  const options = { resolve, hopHeader, onBlocked: sight.onBlocked, onUnasked };
  return {
    door: createOutboundDoor({ ...options, allow: egressAllow }),
    documents: createOutboundDoor({ ...options, allow: publicAddresses }),
  };
}

/** Becomes one of the processes that serve from the database. What it remembers from now on is kept up to date. */
async function join(presence: Presence, store: Store, { changes }: Memory, log: Log) {
  const readiness = createReadiness(store, changes, log);
  const tell = async () => {
    readiness.watchClock();
    await presence.announce();
  };
  await changes.look();
  await tell();
  changes.afterLooks(tell);
  return {
    readiness,
    presence,
    /** Without a database the others notice by themselves. */
    async leave() {
      if (!changes.state().isUp) return;
      await presence.leave().catch((error) => log.warn({ err: error }, 'could not tell the others that it leaves'));
    },
  };
}

function reportsOf(
  { engine, reports }: Database,
  { reportShare, clock }: Surroundings,
  presence: Presence,
): ReportQueue {
  const atOnce = engine === 'sqlite' ? 1 : 2;
  return createReportQueue({ db: reports, atOnce, share: reportShare, clock, processCount: presence.count });
}

/** How a hosted server is served. */
function hosting(config: FullConfig, callers: CallerOptions, callParts: CallToolParts) {
  const resourceMetadataUrl = (slug: string) => urlOf(config.baseUrl, routes.resourceMetadata, slug);
  const parts = { ...callParts, callers, resourceMetadataUrl };
  const made = new WeakMap<HostedServer, McpEndpoint>();
  return (server: HostedServer): McpEndpoint => {
    const endpoint = made.get(server) ?? hostedEndpoint(server, parts);
    made.set(server, endpoint);
    return endpoint;
  };
}

/** What is served under a slug: a hosted server, or the management server. */
function endpoints(
  config: FullConfig,
  memory: Memory,
  endpointOf: (server: HostedServer) => McpEndpoint,
  runner: Runner,
) {
  const { keys, grants, managementLogin } = memory;
  const management = createManagementServer(
    runner,
    version,
    {
      verifyApiKey: keys.verify,
      findPerson: (bearer, look) => findPerson(bearer, look, { login: managementLogin, grants, db: runner.db }),
    },
    {
      resourceMetadata: urlOf(config.baseUrl, routes.resourceMetadata, config.managementSlug),
      scopes: managementLogin.scopes,
    },
  );
  return (slug: string, look: Look): MaybePromise<McpEndpoint | undefined> =>
    slug === config.managementSlug
      ? management
      : whenKnown(memory.servers.find(slug, look), (server) => server && endpointOf(server));
}

function callersOf(
  { keys, grants, findLogin, oauthParts }: Memory,
  { networkOf, clock }: { networkOf: CallerOptions['networkOf']; clock: () => number },
  log: Log,
): CallerOptions {
  return {
    verifyApiKey: keys.verify,
    known: createKnownCallers(clock),
    tokenIds: createTokenIds(clock),
    networkOf,
    async findLogin(server, bearer, look) {
      const login = findLogin(server);
      const open = login && (await grants.open(login, bearer, look));
      if (!login || !open) return undefined;
      const { accessToken } = open.tokens;
      return {
        grantId: open.grant.id,
        token: accessToken,
        renew: () => grants.renew(login, bearer, accessToken),
        giveUp: (refused) => grants.giveUp(login, bearer, refused),
      };
    },
    isOutdated: (server, bearer) => oauthParts.handedOut.isOutdated(findLogin(server) ?? server, bearer),
    isHandedOut: (server, bearer) => oauthParts.handedOut.isPresent(findLogin(server) ?? server, bearer),
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards its bearer; it was stopped here'),
  };
}
