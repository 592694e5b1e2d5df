import { hash } from 'node:crypto';
import { covers, presentedCredential } from '../../domain/credentials/credential.ts';
import { holdsOurCredential, looksLikeOurs } from '../../domain/credentials/own-credentials.ts';
import { tenantOf } from '../../domain/ids.ts';
import type { Lookup, Visit } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/next-turn.ts';
import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { Unauthenticated } from '../../errors.ts';
import type { VerifiedKey } from '../../store/api-keys.ts';
import { addressOf, type HostedServer } from '../hosted/hosted-server.ts';
import { type Caller, type CallerOptions, type KnownCallers, knownMs } from './caller.ts';

/**
 * Identifies the caller. The four kinds of credential have disjoint formats, and none is a fallback for another.
 * @throws Unauthenticated 401, or 403 if a valid key may not call this server
 */
export function resolveCaller(
  server: HostedServer,
  visit: Visit,
  options: CallerOptions,
  look: Lookup,
): MaybePromise<Caller> {
  const bearer = presentedCredential(visit.headers, server.credentialHeaders);
  if (bearer === undefined) throw new Unauthenticated('missing', 'credential missing; send "Authorization: Bearer …"');
  switch (server.access) {
    case 'oauth':
      return loginCaller(server, bearer, options.networkOf(visit), options, look);
    case 'passthrough':
      return tokenCaller(server, bearer, visit, options, look);
    case 'caller_token':
      if (server.config.authentication) return tokenCaller(server, bearer, visit, options, look);
      // The server forwards nothing, so any credential is accepted. Only an API key identifies its caller.
      if (!looksLikeOurs(bearer)) return anonymousCaller(options.networkOf(visit));
      break;
    case 'api_key':
  }
  const key = options.verifyApiKey(bearer, look);
  return key instanceof Promise ? key.then((found) => callerOfKey(server, found)) : callerOfKey(server, key);
}

function callerOfKey(server: HostedServer, key: VerifiedKey | undefined): Caller {
  if (key?.workspaceId !== server.workspaceId)
    throw new Unauthenticated('invalid', 'the API key is not valid for this server');
  if (!covers(key.scopes, 'call') || !mayReach(key, server))
    throw new Unauthenticated('forbidden', 'the API key may not call this server');
  const { id, limitedBy: limits } = key;
  return { kind: 'api_key', keyId: id, id, network: undefined, isKnown: true, limits, token: undefined };
}

/** Returns true if a key may call a server. A key for a server includes its views, because they are part of it. */
function mayReach({ servers, views }: VerifiedKey, server: HostedServer): boolean {
  if (!servers || servers.includes(server.slug)) return true;
  return views !== undefined && server.view !== undefined && views.includes(addressOf(server));
}

async function loginCaller(
  server: HostedServer,
  bearer: string,
  network: string,
  options: CallerOptions,
  look: Lookup,
): Promise<Caller> {
  const login = await options.findLogin(server, bearer, look);
  if (!login) throw new Unauthenticated('invalid', 'the token is not valid for this server; log in again');
  const { grantId: keyId, token } = login;
  return { kind: 'oauth', keyId, id: keyId, network, isKnown: true, token, login };
}

/**
 * Authorizes a caller that brings a token of the upstream. Only the upstream can validate the token;
 * `createKnownCallers` learns the verdict from its responses. A login token is sent only to destinations that the
 * person agreed to.
 * @throws Unauthenticated if the bearer token contains one of our credentials, or may no longer be sent
 * @throws AppError tooMany above the limit of the address
 */
function tokenCaller(
  server: HostedServer,
  bearer: string,
  visit: Visit,
  options: CallerOptions,
  look: Lookup,
): MaybePromise<Caller> {
  // The connection may already be closed, and then it has no address.
  const network = options.networkOf(visit);
  const id = `${server.id} ${hash('sha256', bearer, 'base64url')}`;
  const isKnown = options.known.has(id);
  if (!isKnown) {
    // Anyone can make up a token, and searching it takes time proportional to its length.
    const refusal = options.onUnknown(visit, bearer.length);
    if (refusal) throw refusal;
    if (holdsOurCredential(bearer)) throw ownCredential(server, options);
  }
  const caller: Caller = {
    kind: server.access === 'passthrough' ? 'oauth' : 'caller_token',
    keyId: undefined,
    id,
    network,
    isKnown,
    known: server.config.authentication && options.known,
    tokenDigest: id,
    token: bearer,
  };
  const isOutdated = options.isOutdated(server, bearer, look);
  return isOutdated === false ? caller : unlessOutdated(caller, isOutdated);
}

async function unlessOutdated(caller: Caller, isOutdated: MaybePromise<boolean>): Promise<Caller> {
  if (!(await isOutdated)) return caller;
  throw new Unauthenticated(
    'invalid',
    'the server has changed the destination of the token since you logged in, so the token was not sent; log in again',
  );
}

/** Authorizes a caller of a server that forwards nothing. Its credential does not identify it. */
function anonymousCaller(network: string): Caller {
  return { kind: 'caller_token', keyId: undefined, id: undefined, network, isKnown: false, token: undefined };
}

function ownCredential(server: HostedServer, options: CallerOptions): Unauthenticated {
  if (server.access === 'passthrough')
    return new Unauthenticated(
      'invalid',
      'this server accepts tokens of its own OAuth provider, not API keys of this service; log in with your MCP client',
    );
  options.onMisdirectedKey(server);
  return new Unauthenticated(
    'invalid',
    'this server forwards the bearer token to its upstream, and an API key of this service is never sent there; send a token of the upstream instead',
  );
}

/**
 * Time at which the upstream last accepted a credential, in monotonic ms, with the server's workspace and the caller's
 * network.
 */
type Known = { at: number; readonly workspaceId: string; readonly network: string | undefined };

/** Maximum number of verified callers. One tenant can use three quarters of it. */
export const mostKnown = 27_000;

/**
 * Remembers digests of the caller credentials that an upstream has accepted. All other callers are unverified. `clock`
 * returns monotonic ms.
 */
export function createKnownCallers(clock: () => number): KnownCallers {
  const all = createOwnedMemory<Known>({
    max: mostKnown,
    ownerOf: ({ workspaceId }) => workspaceId,
    partyOf: ({ workspaceId, network }) => `${tenantOf(workspaceId)} ${network}`,
  });
  return {
    has(id) {
      const known = all.get(id);
      return known !== undefined && clock() - known.at < knownMs;
    },
    noteAnswer(caller, workspaceId, status) {
      const { id, network } = caller;
      if (id === undefined || (status > 299 && status !== 401)) return;
      caller.isKnown = status !== 401;
      const known = all.get(id);
      if (!caller.isKnown) all.delete(id);
      else if (known) known.at = clock();
      else all.set(id, { at: clock(), workspaceId, network });
    },
  };
}
