import { keyHeader, presentedCredential, scopesOf } from '../domain/credentials/credential.ts';
import { hashOf } from '../domain/ids.ts';
import type { Lookup, RequestHeaders } from '../domain/visit.ts';
import type { MaybePromise } from '../domain/work/next-turn.ts';
import { AppError, Unauthenticated } from '../errors.ts';
import { type HostCookie, hostCookie, readCookie } from '../http/cookies.ts';
import type { Actor } from '../operations/operation.ts';
import type { VerifiedKey } from '../store/api-keys.ts';
import type { Db } from '../store/db.ts';
import { findSession } from '../store/people/sessions.ts';
import { findRole } from '../store/people/users.ts';

/** Credentials for management: an API key, or a token of the sign-in at the management server. */
export type ManagerCredentials = {
  verifyApiKey: (key: string, look: Lookup) => MaybePromise<VerifiedKey | undefined>;
  /** The person behind a token of the sign-in, or undefined for anything else. */
  findPerson: (bearer: string, look: Lookup) => Promise<Actor | undefined>;
};

/**
 * Authenticates an actor. Each operation checks its permissions.
 * @throws Unauthenticated
 */
export async function authenticate(
  headers: RequestHeaders,
  credentials: ManagerCredentials,
  look: Lookup,
): Promise<Actor> {
  const bearer = presentedCredential(headers, [keyHeader]);
  if (bearer === undefined)
    throw new Unauthenticated('missing', 'no credential: send "Authorization: Bearer …" with an API key');
  const person = await credentials.findPerson(bearer, look);
  if (person) return person;
  const key = await credentials.verifyApiKey(bearer, look);
  if (!key) throw new Unauthenticated('invalid', 'the API key or token is not valid');
  const { id, workspaceId, scopes, servers, limitedBy } = key;
  return { kind: 'api_key', id, workspaceId, scopes, servers, callLimits: limitedBy };
}

/** Whether an actor may manage at all. A key that may only call may not use the management server. */
export function mayManage(actor: Actor): boolean {
  return actor.scopes.some((scope) => scope !== 'call');
}

export function sessionCookie(baseUrl: string): HostCookie {
  return hostCookie('toolhost-session', baseUrl);
}

/**
 * Refuses a request that does not come from a page of ours, as the headers of the browser say.
 * @throws AppError forbidden
 */
export function checkOwnPage(headers: RequestHeaders, baseUrl: string): void {
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined ? headers.origin === new URL(baseUrl).origin : site === 'same-origin';
  if (!isOwn) throw new AppError('forbidden', 'this is only possible from the dashboard itself');
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * The person whose session a request carries, with the scopes of their role, or undefined without a live session.
 * @throws AppError forbidden when it changes something and does not come from the dashboard
 */
export async function sessionActor(
  request: { headers: RequestHeaders; method?: string | undefined },
  parts: { db: Db; now: () => number; baseUrl: string },
  look: Lookup,
): Promise<Actor | undefined> {
  const cookie = readCookie(request.headers, sessionCookie(parts.baseUrl).name);
  // Saves a query for values that cannot be a cookie of ours.
  if (cookie === undefined || !/^[\w-]{16,100}$/.test(cookie)) return undefined;
  const hash = hashOf(cookie);
  look?.();
  const session = await findSession(parts.db, hash, parts.now());
  if (!session) return undefined;
  const role = await findRole(parts.db, session.userId, session.workspaceId);
  if (!role) return undefined;
  if (!safeMethods.has(request.method ?? '')) checkOwnPage(request.headers, parts.baseUrl);
  const { userId: id, workspaceId } = session;
  return { kind: 'user', id, workspaceId, scopes: scopesOf(role), servers: undefined, role, sessionHash: hash };
}
