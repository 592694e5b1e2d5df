import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { clientAddress } from './client-address.ts';
import type { Config } from './config.ts';
import { newId } from './domain/ids.ts';
import type { McpEndpoint } from './domain/mcp.ts';
import type { Scope } from './domain/scopes.ts';
import { createFront } from './front.ts';
import { createApiKeyCheck } from './gateway/api-key-check.ts';
import { createCallLog } from './gateway/call-log.ts';
import type { CallToolParts } from './gateway/call-tool.ts';
import type { CallerOptions } from './gateway/caller.ts';
import { hostedEndpoint } from './gateway/hosted-endpoint.ts';
import { createHostedServers } from './gateway/hosted-servers.ts';
import { createLimits } from './gateway/limits.ts';
import { createMcpDoor } from './gateway/mcp-door.ts';
import { createTryOut } from './gateway/try-out.ts';
import type { Log } from './log.ts';
import { createLoginServers } from './login-servers.ts';
import { authenticate } from './manage/authenticate.ts';
import { createIdentityProvider, type IdentityOptions } from './manage/identity.ts';
import { createManagementServer } from './manage/management-server.ts';
import { actorOfPerson, welcome } from './manage/people.ts';
import { createWebDoor } from './manage/web-door.ts';
import { managementLogin as createManagementLogin } from './management-login.ts';
import { createClientDocuments } from './oauth/client-document.ts';
import { createOAuthDoor } from './oauth/door.ts';
import type { LoginServer } from './oauth/login-server.ts';
import type { OAuthParts } from './oauth/parts.ts';
import { createRateLimit } from './oauth/rate-limit.ts';
import { createGrantUse, type GrantUse } from './oauth/use-grant.ts';
import type { Actor, Parts } from './operations/operation.ts';
import type { Runner } from './operations/run-operation.ts';
import type { Resolve } from './outbound/connector.ts';
import { createOutboundDoor, type OutboundDoor } from './outbound/door.ts';
import { urlProblem } from './outbound/egress.ts';
import { routes, urlOf } from './routes.ts';
import { insertAuditEvent } from './store/audit-events.ts';
import { pruneCalls } from './store/calls.ts';
import { type Database, type Db, openDatabase } from './store/database.ts';
import { followChanges } from './store/follow-changes.ts';
import { createKeyring, type Keyring } from './store/sealing.ts';
import { pruneOAuth } from './store/tokens.ts';
import { findWorkspace, insertWorkspace } from './store/workspaces.ts';
import { version } from './version.ts';

export const localWorkspace = { id: 'local', name: 'Local' };

/** What a process may bring of its own; tests bring their name server, their clock and their patience. */
export type Surroundings = { resolve: Resolve; slowReaderMs: number; now: () => number };

/** A configuration with everything that local mode finds out at the start. */
export type FullConfig = Config & {
  baseUrl: string;
  masterKeys: Buffer[];
  /** Finds the identity provider, at the first sign-in; `host` is what people are told. */
  identity: { find: () => Promise<IdentityOptions>; host: string };
};

export type App = {
  handle: (request: IncomingMessage, response: ServerResponse) => void;
  runner: Runner;
  /** Says no to readiness probes, so that a load balancer looks elsewhere. */
  drain(): void;
  close(): Promise<void>;
};

const dayMs = 24 * 60 * 60 * 1000;
const pruneIntervalMs = 60 * 60 * 1000;
/** How long what is remembered serves on while the database does not answer. */
const staleMs = 60_000;
const loginRequestsPerMinute = 300;

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

/** What operations need that does not depend on serving; the command line has nothing else. */
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
export async function createApp(config: FullConfig, log: Log, surroundings: Surroundings): Promise<App> {
  const { now } = surroundings;
  const database = await openStore(config, true, log, now);
  const { db } = database;
  const keyring = createKeyring(config.masterKeys);
  const door = createOutboundDoor({ allow: config.egressAllow, resolve: surroundings.resolve });
  const onUnexpected = (error: unknown, requestId: string) => log.error({ err: error, requestId }, 'unexpected error');
  const remembered = remember(config, database, keyring, door, log, now);
  const { keys, servers, grants, changes, findLogin, oauthParts, management: managementLogin } = remembered;
  const callLog = createCallLog({
    db,
    onError: (error) => log.warn({ err: error }, 'could not write call records'),
    onDropped: (rows) => log.error({ rows }, 'call records were given up'),
  });
  const callParts: CallToolParts = { door, limits: limitsOf(config), record: callLog.add, now, onUnexpected };
  const callers: CallerOptions = {
    verifyApiKey: keys.verify,
    async findLogin(server, bearer) {
      const login = findLogin(server);
      const open = login && (await grants.open(login, bearer));
      if (!login || !open) return undefined;
      const { accessToken } = open.tokens;
      return { grantId: open.grant.id, token: accessToken, renew: () => grants.renew(login, bearer, accessToken) };
    },
    onMisdirectedKey: ({ slug }) =>
      log.warn({ slug }, 'an API key was sent to a server that forwards its bearer; it was stopped here'),
  };
  const runner: Runner = {
    db,
    parts: { ...operationParts(config, keyring, now), ...createTryOut(servers, callParts), flushCalls: callLog.flush },
    onCommitted: changes.look,
  };
  const resourceMetadataUrl = (slug: string) => urlOf(config.baseUrl, routes.resourceMetadata, slug);
  const management = createManagementServer(
    runner,
    version,
    { verifyApiKey: keys.verify, findPerson: (bearer) => findPerson(bearer, managementLogin, grants, db) },
    { resourceMetadata: resourceMetadataUrl(config.managementSlug), scopes: managementLogin.scopes },
  );
  const endpointParts = {
    ...callParts,
    callers,
    resourceMetadataUrl,
  };
  const find = async (slug: string): Promise<McpEndpoint | undefined> => {
    if (slug === config.managementSlug) return management;
    const server = await servers.find(slug);
    return server && hostedEndpoint(server, endpointParts);
  };
  let draining = false;
  const handle = createFront({
    config,
    random: randomBytes,
    serveMcp: createMcpDoor({
      find,
      serverUrl: runner.parts.serverUrl,
      onUnexpected,
      slowReaderMs: surroundings.slowReaderMs,
    }),
    serveWeb: createWebDoor({
      runner,
      // Tokens of the sign-in are good for the management server alone: that is their audience.
      actorOf: (headers) => authenticate(headers, { verifyApiKey: keys.verify, findPerson: async () => undefined }),
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
      login: createOAuthDoor({
        ...oauthParts,
        rate: createRateLimit(loginRequestsPerMinute),
        addressOf: (c) => clientAddress(c.env.incoming, config.trustedProxies),
        onUnexpected,
      }),
    }),
    onUnexpected,
  });
  const pruning = startPruning(config, database, log, now);
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

/** What this process remembers of the database, and the follower that makes it forget what others change. */
function remember(
  config: FullConfig,
  { db }: Database,
  keyring: Keyring,
  door: OutboundDoor,
  log: Log,
  now: () => number,
) {
  const changes = followChanges({
    db,
    now,
    staleMs,
    onChanges: (list) => {
      for (const { kind, ref } of list) forget[kind](ref);
    },
    onError: (error) => log.warn({ err: error }, 'could not look for changes'),
  });
  const keys = createApiKeyCheck(db, now, changes.isFresh);
  const userAgent = `Toolhost/${version} (+${config.baseUrl})`;
  const servers = createHostedServers({ db, keyring, isFresh: changes.isFresh, userAgent });
  const findLogin = createLoginServers({ baseUrl: config.baseUrl, door, now });
  const management = createManagementLogin({
    slug: config.managementSlug,
    issuer: urlOf(config.baseUrl, routes.mcp, config.managementSlug),
    redirectUri: urlOf(config.baseUrl, routes.callback, config.managementSlug),
    identity: createIdentityProvider(config.identity.find, config.identity.host),
    welcome: (identity) =>
      db.transaction().execute((transaction) =>
        welcome(identity, {
          db: transaction,
          random: randomBytes,
          now,
          commonWorkspace: config.mode === 'local' ? localWorkspace.id : undefined,
        }),
      ),
  });
  const oauthParts: OAuthParts = {
    db,
    keyring,
    door,
    documents: createClientDocuments(door),
    random: randomBytes,
    now,
    baseUrl: config.baseUrl,
    async findServer(slug) {
      if (slug === config.managementSlug) return management;
      const server = await servers.find(slug);
      const login = server && findLogin(server);
      const workspace = login && (await findWorkspace(db, login.workspaceId));
      return login && { ...login, operator: workspace?.name ?? login.workspaceId };
    },
    onCommitted: changes.look,
    audit: ({ server, name, detail, requestId }) =>
      insertAuditEvent(db, {
        id: newId(randomBytes, 'aud'),
        workspace_id: server.workspaceId,
        at: now(),
        actor_kind: 'client',
        actor_id: 'oauth',
        operation: name,
        target: server.slug,
        detail: JSON.stringify(detail),
        request_id: requestId,
      }),
    log: (message, fields) => log.info(fields, message),
  };
  const grants = createGrantUse(oauthParts, changes.isFresh);
  const forget = { server: servers.forget, key: keys.forget, grant: grants.forget };
  return { keys, servers, grants, changes, findLogin, oauthParts, management };
}

/** Who is behind a token of the management server's sign-in. */
async function findPerson(bearer: string, login: LoginServer, grants: GrantUse, db: Db): Promise<Actor | undefined> {
  const open = await grants.open(login, bearer);
  if (!open || open.grant.user_id === null) return undefined;
  const granted = open.grant.scope.split(' ') as Scope[];
  return actorOfPerson(db, { userId: open.grant.user_id, workspaceId: open.grant.workspace_id, granted });
}

function limitsOf(config: Config) {
  return createLimits({
    callsPerSecond: config.callsPerSecond,
    concurrentPerServer: config.concurrentCalls,
    concurrentPerKey: config.concurrentCallsPerKey,
    clock: () => performance.now(),
  });
}

/** Forgets what is past its time, once an hour. */
function startPruning(config: Config, { db }: Database, log: Log, now: () => number): NodeJS.Timeout {
  const prune = async () => {
    await pruneCalls(db, now() - config.callRetentionDays * dayMs);
    await pruneOAuth(db, now(), dayMs);
  };
  const timer = setInterval(() => {
    prune().catch((error) => log.warn({ err: error }, 'could not prune old rows'));
  }, pruneIntervalMs);
  timer.unref();
  return timer;
}
