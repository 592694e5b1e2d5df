import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import type { ClientRequest } from '@toolhost/credentials/client-request';
import { apiKeyHeader } from '@toolhost/credentials/credential';
import { Unauthenticated } from '@toolhost/errors/errors';
import { loadSequentially, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import type { Hono } from 'hono';
import { createAddressLimit, createReturnLimit } from '../edge/address-limit.ts';
import type { HostedServer } from '../gateway/hosted/hosted-server.ts';
import { authenticate, findSessionActor } from '../manage/actors.ts';
import { createLocalSignIn } from '../manage/local-sign-in.ts';
import { createPublishedDocuments, type PublishedServer } from '../manage/published-documents.ts';
import { createSignIn } from '../manage/sign-in.ts';
import { createOAuthRouter, toResourceMetadata } from '../oauth/router.ts';
import { loadOperations } from '../operations/load-operations.ts';
import type { Actor } from '../operations/operation.ts';
import type { ServingRunner } from '../operations/run-operation.ts';
import { resourceFolder } from '../resource-folder.ts';
import { apiPath } from '../routes.ts';
import { findPublicSlugs } from '../store/servers/public-servers.ts';
import { version } from '../version.ts';
import { createManagerCredentials } from './adapters/callers.ts';
import type { Caches } from './caches.ts';
import type { CallLimiters } from './call-limiters.ts';
import type { Foundation } from './foundation.ts';
import { type FullConfig, requiresSignInLink } from './full-config.ts';
import type { Logins } from './logins.ts';
import { createServerHostUrls } from './operation-deps.ts';

/** Routes of everything except the MCP endpoints and the probes. */
export type Web = {
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Routes of the OAuth proxy, for requests from inside the process such as the connection probe. */
  loginRouter: Hono<{ Bindings: HttpBindings }>;
};

type WebDeps = {
  foundation: Foundation;
  caches: Caches;
  logins: Logins;
  limiters: CallLimiters;
  runner: ServingRunner;
};

/** Modules that the routes import. Evaluated together, they would block the event loop for 30 ms. */
const routeModules: readonly (() => Promise<unknown>)[] = [
  () => import('@hono/node-server'),
  () => import('@toolhost/tool-config/server-file'),
  () => import('../manage/rest.ts'),
  () => import('../manage/dashboard.ts'),
];

export const loginRequestsPerMinute = 300;

/** Loads the operations and the routes, in small steps. */
export async function createWeb(deps: WebDeps): Promise<Web> {
  await loadOperations();
  await loadSequentially(routeModules);
  const { createWebRouter } = await import('../manage/router.ts');
  await yieldToEventLoop();
  const { runner, logins } = deps;
  const { config, runtime, membership: processes, observability, onUnexpected } = deps.foundation;
  const { clock } = runtime;
  const { getNetwork, unverifiedCallers, unreadResponses } = deps.limiters.addresses;
  const { oauth, managementLogin } = logins;
  const createPerMinuteLimit = (maxRequests: number) => {
    const addressLimit = createAddressLimit({ permits: maxRequests, clock, processes });
    return (request: ClientRequest) => addressLimit.take(getNetwork(request));
  };
  const limitReturns = createReturnLimit({ getNetwork, signInProvider: managementLogin.id, clock, processes });
  const loginRouter = createOAuthRouter({
    oauth,
    getQueryCharge: unverifiedCallers.getQueryCharge,
    limitReturns,
    isWithinRateLimit: createPerMinuteLimit(loginRequestsPerMinute),
    memory: runner.memory,
    getNetwork,
    onUnexpected,
  });
  const serve = createWebRouter({
    runner,
    authenticate: createFindRestActor(deps),
    unreadResponses,
    clock,
    runningClock: runtime.runningClock,
    unverifiedCallers,
    baseUrl: config.baseUrl,
    apiMetadata: () => toResourceMetadata(managementLogin, config.baseUrl + apiPath),
    signInKind: !config.identity.isBuiltIn ? 'provider' : requiresSignInLink(config) ? 'link' : 'click',
    dashboardFolder: join(resourceFolder, 'dist', 'web'),
    version,
    metrics: observability.webRouterHooks.metrics,
    onResponse: observability.webRouterHooks.onResponse,
    onUnexpected,
    loginRouter,
    publishedDocuments: createPublishedDocuments({
      baseUrl: config.baseUrl,
      ownHosts: oauth.ownHosts,
      getServerHostUrl: createServerHostUrls(config),
      findServer: async (slug, chargeQuery) => toPublishedServer(await deps.caches.servers.find(slug, chargeQuery)),
      findPublicSlugs: () => findPublicSlugs(oauth.db),
      appsChallenges: config.appsChallenges,
      isWithinRateLimit: createPerMinuteLimit(loginRequestsPerMinute),
      getQueryCharge: unverifiedCallers.getQueryCharge,
    }),
    localSignIn: createLocalPages(config, logins, createPerMinuteLimit(loginRequestsPerMinute)),
    canSignOut: createPerMinuteLimit(loginRequestsPerMinute),
    signIn: createSignIn({
      db: oauth.db,
      keyring: oauth.keyring,
      baseUrl: oauth.baseUrl,
      random: oauth.random,
      now: oauth.now,
      log: oauth.log,
      identity: logins.identity,
      welcomePerson: logins.welcomePerson,
      canSignIn: createPerMinuteLimit(loginRequestsPerMinute),
      limitReturns: (request, work) => limitReturns(request, managementLogin.id, work),
    }),
  });
  return { serve, loginRouter };
}

function createLocalPages(
  config: FullConfig,
  { oauth: { db, random, now, baseUrl, log }, welcomeLocalPerson }: Logins,
  isWithinRateLimit: (request: IncomingMessage) => boolean,
) {
  if (!welcomeLocalPerson) return undefined;
  const deps = { db, random, now, baseUrl, log, findIdentity: config.identity.find, isWithinRateLimit };
  return createLocalSignIn({
    ...deps,
    welcomePerson: welcomeLocalPerson,
    requiresLink: requiresSignInLink(config),
  });
}

function toPublishedServer(server: HostedServer | undefined): PublishedServer | undefined {
  if (!server) return undefined;
  const { slug, access, config, info } = server;
  return { slug, access, config, version: (JSON.parse(info) as { version: string }).version };
}

/**
 * Creates a function that finds the actor of a REST request, by its session, its API key, or a token from the sign-in
 * at the management server.
 */
function createFindRestActor({ foundation, caches, logins, limiters }: WebDeps) {
  const credentials = createManagerCredentials(caches, logins);
  return async (request: IncomingMessage): Promise<Actor> => {
    const chargeQuery = limiters.addresses.unverifiedCallers.getQueryCharge(request);
    const { authorization, [apiKeyHeader]: key } = request.headers;
    const isFromDashboard = authorization === undefined && key === undefined;
    const person = isFromDashboard ? await findSessionActor(request, logins.oauth, chargeQuery) : undefined;
    if (person) return person;
    return authenticate(request.headers, credentials, chargeQuery).catch((error: unknown) => {
      if (error instanceof Unauthenticated) foundation.observability.mcpListenerHooks.onRefused(error.refusal);
      throw error;
    });
  };
}
