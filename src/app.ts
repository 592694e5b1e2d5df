import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { base62 } from './domain/api-key.ts';
import type { McpEndpoint } from './domain/mcp.ts';
import { answerEdge, checkEdge } from './edge.ts';
import { AppError } from './errors.ts';
import { createApiKeyCheck } from './gateway/api-key-check.ts';
import { createCallLog } from './gateway/call-log.ts';
import type { Caller } from './gateway/caller.ts';
import { hostedEndpoint } from './gateway/hosted-endpoint.ts';
import { createHostedServers } from './gateway/hosted-servers.ts';
import { createLimits } from './gateway/limits.ts';
import { createMcpDoor } from './gateway/mcp-door.ts';
import { createTryOut } from './gateway/try-out.ts';
import type { Log } from './log.ts';
import { authenticate } from './manage/authenticate.ts';
import { createManagementServer } from './manage/management-server.ts';
import { problemAnswer } from './manage/problem.ts';
import { createWebDoor } from './manage/web-door.ts';
import type { Parts } from './operations/operation.ts';
import type { Runner } from './operations/run-operation.ts';
import type { Resolve } from './outbound/connector.ts';
import { createOutboundDoor } from './outbound/door.ts';
import { urlProblem } from './outbound/egress.ts';
import { mcpSlug, routes, urlOf } from './routes.ts';
import { pruneCalls } from './store/calls.ts';
import { type Database, openDatabase } from './store/database.ts';
import { followChanges } from './store/follow-changes.ts';
import { createKeyring, type Keyring } from './store/sealing.ts';
import { insertWorkspace } from './store/workspaces.ts';
import { version } from './version.ts';

export const localWorkspace = { id: 'local', name: 'Local' };

/** What a process may bring of its own; tests bring their name server and their patience. */
export type Surroundings = { resolve: Resolve; slowReaderMs: number; now: () => number };

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  /** Stops accepting, so that a load balancer looks elsewhere. */
  drain(): void;
  close(): Promise<void>;
};

const day = 24 * 60 * 60 * 1000;
const pruneIntervalMs = 60 * 60 * 1000;
/** How long servers and keys that are remembered serve on while the database does not answer. */
const staleMs = 60_000;

/** Opens the store of a configuration; `exclusive` for a process that serves. */
export async function openStore(config: Config, exclusive: boolean, log: Log, now: () => number): Promise<Database> {
  const database = await openDatabase({
    url: config.databaseUrl,
    file: join(config.dataDir, 'toolhost.sqlite'),
    migrations: join(import.meta.dirname, '..', 'migrations'),
    exclusive,
    now,
    onError: (error) => log.warn({ err: error }, 'a database connection was lost'),
  });
  await insertWorkspace(database.db, { ...localWorkspace, at: now() });
  return database;
}

/** What operations need that does not depend on serving; the command line builds its own with it. */
export function operationParts(
  config: Config & { baseUrl: string },
  keyring: Keyring,
  now: () => number,
): Omit<Parts, 'callTool' | 'previewCall' | 'flushCalls'> {
  const ownHosts = [new URL(config.baseUrl).host];
  return {
    keyring,
    rules: {
      managementSlug: config.managementSlug,
      urlProblem: (url) => urlProblem(url, config.egressAllow, ownHosts),
    },
    serverUrl: (slug) => urlOf(config.baseUrl, routes.mcp, slug),
    callbackUrl: (slug) => urlOf(config.baseUrl, routes.callback, slug),
    now,
    random: randomBytes,
  };
}

/** Builds every part and introduces them to one another. */
export async function createApp(
  config: Config & { baseUrl: string; masterKeys: Buffer[] },
  log: Log,
  surroundings: Surroundings,
): Promise<App> {
  const { now } = surroundings;
  const database = await openStore(config, true, log, now);
  const { db } = database;
  const userAgent = `Toolhost/${version} (+${config.baseUrl})`;
  const keyring = createKeyring(config.masterKeys);
  const onUnexpected = (error: unknown, requestId: string) => log.error({ err: error, requestId }, 'unexpected error');

  const changes = followChanges({
    db,
    now,
    staleMs,
    onChanges: (list) => {
      for (const change of list) change.kind === 'key' ? keys.forget(change.ref) : servers.forget(change.ref);
    },
    onError: (error) => log.warn({ err: error }, 'could not look for changes'),
  });
  const keys = createApiKeyCheck(db, now, changes.isFresh);
  const servers = createHostedServers({ db, keyring, isFresh: changes.isFresh, userAgent });
  const callLog = createCallLog({
    db,
    onError: (error) => log.warn({ err: error }, 'could not write call records'),
    onDropped: (rows) => log.error({ rows }, 'call records were given up'),
  });
  const door = createOutboundDoor({ allow: config.egressAllow, resolve: surroundings.resolve });
  const limits = createLimits({
    callsPerSecond: config.callsPerSecond,
    concurrentPerServer: config.concurrentCalls,
    concurrentPerKey: config.concurrentCallsPerKey,
    clock: () => performance.now(),
  });
  const callParts = { door, limits, record: callLog.add, now, onUnexpected };
  const endpointParts = {
    ...callParts,
    callers: {
      verifyApiKey: keys.verify,
      upstreamToken: async (): Promise<Caller | undefined> => undefined,
      onMisdirectedKey: (server: { slug: string }) =>
        log.warn(
          { slug: server.slug },
          'an API key was sent to a server that forwards its bearer; it was stopped here',
        ),
    },
    resourceMetadataUrl: (slug: string) => urlOf(config.baseUrl, routes.resourceMetadata, slug),
  };
  const runner: Runner = {
    db,
    parts: { ...operationParts(config, keyring, now), ...createTryOut(servers, callParts), flushCalls: callLog.flush },
    onCommitted: changes.look,
  };
  const management = createManagementServer(runner, version, keys.verify);

  async function findEndpoint(slug: string): Promise<McpEndpoint | undefined> {
    if (slug === config.managementSlug) return management;
    const server = await servers.find(slug);
    return server && hostedEndpoint(server, endpointParts);
  }

  let draining = false;
  const serveMcp = createMcpDoor({
    find: findEndpoint,
    serverUrl: runner.parts.serverUrl,
    onUnexpected,
    slowReaderMs: surroundings.slowReaderMs,
  });
  const serveWeb = createWebDoor({
    runner,
    actorOf: (headers) => authenticate(headers, keys.verify),
    baseUrl: config.baseUrl,
    managementUrl: runner.parts.serverUrl(config.managementSlug),
    version,
    onUnexpected,
    isReady: async () =>
      !draining &&
      (changes.isFresh() ||
        (await changes.look().then(
          () => true,
          () => false,
        ))),
  });
  const edge = edgeRules(config);
  const newRequestId = requestIds();

  const pruning = setInterval(() => {
    pruneCalls(db, now() - config.callRetentionDays * day).catch((error) =>
      log.warn({ err: error }, 'could not prune calls'),
    );
  }, pruneIntervalMs);
  pruning.unref();

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const requestId = newRequestId();
    response.setHeader('X-Request-Id', requestId);
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    try {
      checkEdge(request, path, edge);
    } catch (error) {
      refuseAtEdge(response, error, requestId, path, onUnexpected);
      return;
    }
    if (answerEdge(request, response, requestId)) return;
    const slug = mcpSlug(path);
    if (slug === undefined) void serveWeb(request, response);
    else void serveMcp(request, response, slug, requestId);
  }

  return {
    handle,
    runner,
    drain() {
      draining = true;
    },
    async close() {
      clearInterval(pruning);
      await changes.stop();
      await callLog.stop();
      await door.close();
      await database.close();
    },
  };
}

/** The hosts and origins that are ours: those of the base URL, and in local mode every name of this machine. */
function edgeRules(config: Config & { baseUrl: string }) {
  const { host, port, protocol } = new URL(config.baseUrl);
  const local =
    config.mode === 'local' ? ['localhost', '127.0.0.1', '[::1]'].map((name) => (port ? `${name}:${port}` : name)) : [];
  const hosts = new Set([host, ...local]);
  return { hosts, origins: new Set([...[...hosts].map((name) => `${protocol}//${name}`), ...config.allowedOrigins]) };
}

/** Short and unique: a random part for the process, a counter within it. */
function requestIds(): () => string {
  const prefix = base62(randomBytes(8), 10);
  let count = 0;
  return () => `${prefix}${(++count).toString(36)}`;
}

/** A request that was refused before any part saw it; its connection is not trusted with another one. */
function refuseAtEdge(
  response: ServerResponse,
  error: unknown,
  requestId: string,
  path: string,
  onUnexpected: (error: unknown, requestId: string) => void,
): void {
  response.setHeader('Connection', 'close');
  if (path.startsWith('/mcp/') && error instanceof AppError) {
    response.writeHead(error.status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32600, message: error.message } }));
    return;
  }
  const answer = problemAnswer(error, requestId, onUnexpected);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  void answer.text().then((text) => response.end(text));
}
