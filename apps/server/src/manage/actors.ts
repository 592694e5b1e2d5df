import type { QueryCharge, RequestHeaders } from '@toolhost/credentials/client-request';
import { apiKeyHeader, getRequestCredential, getRoleScopes } from '@toolhost/credentials/credential';
import { hashSecret } from '@toolhost/credentials/ids';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { createHostCookie, type HostCookie, readCookie } from '../http/cookies.ts';
import type { Actor } from '../operations/operation.ts';
import type { VerifiedKey } from '../store/api-keys.ts';
import type { Db } from '../store/db.ts';
import { findSession } from '../store/people/sessions.ts';
import { findRole } from '../store/people/users.ts';

/** Verifies credentials for management: API keys, and tokens of a login at the management server. */
export type ManagerCredentials = {
  verifyApiKey: (key: string, chargeQuery: QueryCharge) => MaybePromise<VerifiedKey | undefined>;
  /** Finds the person behind a login token; undefined for anything else. */
  findPersonByToken: (bearer: string, chargeQuery: QueryCharge) => Promise<Actor | undefined>;
};

/** Authenticates an actor. Each operation checks its permissions. @throws Unauthenticated */
export async function authenticate(
  headers: RequestHeaders,
  credentials: ManagerCredentials,
  chargeQuery: QueryCharge,
): Promise<Actor> {
  const bearer = getRequestCredential(headers, [apiKeyHeader]);
  if (bearer === undefined)
    throw new Unauthenticated('missing', 'no credential; send "Authorization: Bearer …" with an API key');
  const person = await credentials.findPersonByToken(bearer, chargeQuery);
  if (person) return person;
  const key = await credentials.verifyApiKey(bearer, chargeQuery);
  if (!key) throw new Unauthenticated('invalid', 'the API key or token is not valid');
  const { id, workspaceId, scopes, servers, limitedBy, createdBy } = key;
  return { kind: 'api_key', id, userId: createdBy, workspaceId, scopes, servers, callLimits: limitedBy };
}

/** Returns true if an actor may manage anything. A key that may only call tools may not use the management server. */
export function canManage(actor: Actor): boolean {
  return actor.scopes.some((scope) => scope !== 'call');
}

export function getSessionCookie(baseUrl: string): HostCookie {
  return createHostCookie('toolhost-session', baseUrl);
}

/**
 * Refuses a request that does not come from a dashboard page, according to the browser's headers.
 * @throws AppError forbidden
 */
export function requireSameOrigin(headers: RequestHeaders, baseUrl: string): void {
  const site = headers['sec-fetch-site'];
  const isSameOrigin = site === undefined ? headers.origin === new URL(baseUrl).origin : site === 'same-origin';
  if (!isSameOrigin)
    throw new AppError('forbidden', 'the request did not come from the dashboard; open the dashboard and retry');
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Finds the person whose session a request carries, with the scopes of their role; undefined without a live session.
 * @throws AppError forbidden if the request changes something and does not come from the dashboard
 */
export async function findSessionActor(
  request: { headers: RequestHeaders; method?: string | undefined },
  deps: { db: Db; now: () => number; baseUrl: string },
  chargeQuery: QueryCharge,
): Promise<Actor | undefined> {
  const cookie = readCookie(request.headers, getSessionCookie(deps.baseUrl).name);
  // Saves a query for values that cannot be a session cookie of Toolhost.
  if (cookie === undefined || !/^[\w-]{16,100}$/.test(cookie)) return undefined;
  const hash = hashSecret(cookie);
  chargeQuery?.();
  const session = await findSession(deps.db, hash, deps.now());
  if (!session) return undefined;
  const role = await findRole(deps.db, session.userId, session.workspaceId);
  if (!role) return undefined;
  if (!safeMethods.has(request.method ?? '')) requireSameOrigin(request.headers, deps.baseUrl);
  const { userId: id, workspaceId } = session;
  return {
    kind: 'user',
    id,
    userId: id,
    workspaceId,
    scopes: getRoleScopes(role),
    servers: undefined,
    role,
    sessionHash: hash,
  };
}
