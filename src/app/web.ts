import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import { keyHeader } from '../domain/credentials/credential.ts';
import type { Processes } from '../domain/limits.ts';
import type { Strangers, Visit } from '../domain/visit.ts';
import { loadInTurns, nextTurn } from '../domain/work/next-turn.ts';
import { createAddressLimit, createReturnLimit } from '../edge/address-limit.ts';
import { Unauthenticated } from '../errors.ts';
import { authenticate, sessionActor } from '../manage/actors.ts';
import type { RestParts } from '../manage/rest.ts';
import { createSignIn } from '../manage/sign-in.ts';
import { createOAuthRouter, resourceMetadata } from '../oauth/router.ts';
import { loadOperations } from '../operations/load-operations.ts';
import type { Actor } from '../operations/operation.ts';
import type { ServingRunner } from '../operations/run-operation.ts';
import { apiPath } from '../routes.ts';
import { version } from '../version.ts';
import { managerCredentials } from './adapters/callers.ts';
import type { Caches } from './caches.ts';
import type { FullConfig } from './full-config.ts';
import type { Logins } from './logins.ts';
import type { Observability } from './observability/observability.ts';

/** Routes of everything except the MCP endpoints and the probes. */
export type Web = {
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Routes of the OAuth proxy, for requests from inside the process such as the connection probe. */
  login: Hono<{ Bindings: HttpBindings }>;
};

type WebParts = {
  config: FullConfig;
  caches: Caches;
  logins: Logins;
  runner: ServingRunner;
  observability: Observability;
  strangers: Strangers;
  networkOf: (visit: Visit) => string;
  unread: RestParts['unread'];
  /** Monotonic ms. */
  clock: () => number;
  /** Monotonic ms in which this process ran. */
  runningClock: () => number;
  processes: Processes;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** Modules that the routes import. Evaluated together, they would block the event loop for 30 ms. */
const partsOfRoutes: readonly (() => Promise<unknown>)[] = [
  () => import('@hono/node-server'),
  () => import('../operations/applying/server-file.ts'),
  () => import('../manage/rest.ts'),
  () => import('../manage/dashboard.ts'),
];

export const loginRequestsPerMinute = 300;

/** Loads the operations and the routes, in small steps. */
export async function createWeb(parts: WebParts): Promise<Web> {
  await loadOperations();
  await loadInTurns(partsOfRoutes);
  const { createWebRouter } = await import('../manage/router.ts');
  await nextTurn();
  const { config, runner, observability, unread, strangers, networkOf, clock, processes, onUnexpected } = parts;
  const { oauthParts, identity, welcome, managementLogin } = parts.logins;
  const perMinute = (turns: number) => {
    const limit = createAddressLimit({ perMinute: turns, clock, processes });
    return (request: Visit) => limit.take(networkOf(request));
  };
  const returns = createReturnLimit({ networkOf, ownProvider: managementLogin.id, clock, processes });
  const login = createOAuthRouter({
    ...oauthParts,
    lookFor: strangers.lookFor,
    returns,
    mayAsk: perMinute(loginRequestsPerMinute),
    memory: runner.memory,
    networkOf,
    onUnexpected,
  });
  const serve = createWebRouter({
    runner,
    actorOf: restActor(parts),
    unread,
    clock,
    runningClock: parts.runningClock,
    strangers,
    baseUrl: config.baseUrl,
    apiMetadata: () => resourceMetadata(managementLogin, config.baseUrl + apiPath),
    dashboardFolder: join(import.meta.dirname, '..', '..', 'dist', 'web'),
    version,
    onUnexpected,
    ...observability.ofWebRouter,
    login,
    maySignOut: perMinute(loginRequestsPerMinute),
    signIn: createSignIn({
      ...oauthParts,
      identity,
      welcome,
      mayAsk: perMinute(loginRequestsPerMinute),
      returns: (request, work) => returns(request, managementLogin.id, work),
    }),
  });
  return { serve, login };
}

/**
 * Creates a function that finds the actor of a REST request, by its session, its API key, or a token from the sign-in
 * at the management server.
 */
function restActor({ caches, logins, observability, strangers }: WebParts) {
  const credentials = managerCredentials(caches, logins);
  return async (request: IncomingMessage): Promise<Actor> => {
    const look = strangers.lookFor(request);
    const { authorization, [keyHeader]: key } = request.headers;
    const isOfPage = authorization === undefined && key === undefined;
    const person = isOfPage ? await sessionActor(request, logins.oauthParts, look) : undefined;
    if (person) return person;
    return authenticate(request.headers, credentials, look).catch((error: unknown) => {
      if (error instanceof Unauthenticated) observability.ofMcpListener.onRefused(error.refusal);
      throw error;
    });
  };
}
