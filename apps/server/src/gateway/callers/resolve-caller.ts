import type { ClientRequest, QueryCharge } from '@toolhost/credentials/client-request';
import { getRequestCredential, hasScope } from '@toolhost/credentials/credential';
import { getTenantId, hashPresentedSecret } from '@toolhost/credentials/ids';
import { containsOwnCredential, hasOwnPrefix } from '@toolhost/credentials/own-credentials';
import { Unauthenticated } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { createFairCache } from '@toolhost/limits/fair-cache';
import type { VerifiedKey } from '../../store/api-keys.ts';
import { getServerAddress, type HostedServer } from '../hosted/hosted-server.ts';
import { type Caller, type CallerOptions, type VerifiedCallers, verifiedTtlMs } from './caller.ts';

/**
 * Identifies the caller. The four kinds of credential have disjoint formats, and none is a fallback for another.
 * @throws Unauthenticated 401, or 403 if a valid key may not call this server
 */
export function resolveCaller(
  server: HostedServer,
  request: ClientRequest,
  options: CallerOptions,
  chargeQuery: QueryCharge,
): MaybePromise<Caller> {
  const bearer = getRequestCredential(request.headers, server.credentialHeaders);
  if (bearer === undefined) throw new Unauthenticated('missing', 'credential missing; send "Authorization: Bearer …"');
  switch (server.access) {
    case 'oauth':
      return resolveLoginCaller(server, bearer, options.getNetwork(request), options, chargeQuery);
    case 'login':
      // The formats of our tokens and keys differ.
      return bearer.startsWith('tha_')
        ? resolveLoginCaller(server, bearer, options.getNetwork(request), options, chargeQuery)
        : resolvePersonKey(server, bearer, options, chargeQuery);
    case 'passthrough':
      return resolveTokenCaller(server, bearer, request, options, chargeQuery);
    case 'caller_token':
      if (server.config.authentication) return resolveTokenCaller(server, bearer, request, options, chargeQuery);
      // The server forwards nothing, so any credential is accepted. Only an API key identifies its caller.
      if (!hasOwnPrefix(bearer)) return createAnonymousCaller(options.getNetwork(request));
      break;
    case 'api_key':
  }
  const key = options.verifyApiKey(bearer, chargeQuery);
  return key instanceof Promise
    ? key.then((verifiedKey) => toKeyCaller(server, verifiedKey))
    : toKeyCaller(server, key);
}

function toKeyCaller(server: HostedServer, key: VerifiedKey | undefined): Caller {
  if (key?.workspaceId !== server.workspaceId)
    throw new Unauthenticated('invalid', 'the API key is not valid for this server');
  if (!hasScope(key.scopes, 'call') || !canCallServer(key, server))
    throw new Unauthenticated('forbidden', 'the API key may not call this server');
  const { id, limitedBy: limitedKeys } = key;
  return { kind: 'api_key', keyId: id, id, network: undefined, isVerified: true, limitedKeys, token: undefined };
}

/** Returns true if a key may call a server. A key for a server includes its views, because they are part of it. */
function canCallServer({ servers, views }: VerifiedKey, server: HostedServer): boolean {
  if (!servers || servers.includes(server.slug)) return true;
  return views !== undefined && server.view !== undefined && views.includes(getServerAddress(server));
}

async function resolveLoginCaller(
  server: HostedServer,
  bearer: string,
  network: string,
  options: CallerOptions,
  chargeQuery: QueryCharge,
): Promise<Caller> {
  const login = await options.findLogin(server, bearer, chargeQuery);
  if (!login) throw new Unauthenticated('invalid', 'the token is not valid for this server; log in again');
  const { grantId: keyId, login: upstreamLogin, person } = login;
  const kind = server.access === 'login' ? 'login' : 'oauth';
  return {
    kind,
    keyId,
    id: keyId,
    network,
    isVerified: true,
    token: upstreamLogin?.token,
    login: upstreamLogin,
    person,
  };
}

/** Authorizes an API key at a server with `login`. It acts for the member who created it, and uses their values. */
async function resolvePersonKey(
  server: HostedServer,
  bearer: string,
  options: CallerOptions,
  chargeQuery: QueryCharge,
): Promise<Caller> {
  const key = await options.verifyApiKey(bearer, chargeQuery);
  const caller = toKeyCaller(server, key);
  if (!key || server.personalNames.size === 0) return caller;
  return { ...caller, person: await options.findKeyPerson(server, key, chargeQuery) };
}

/**
 * Authorizes a caller that brings a token of the upstream. Only the upstream can validate the token;
 * `createVerifiedCallers` learns the verdict from its responses. A login token is sent only to destinations that the
 * person agreed to.
 * @throws Unauthenticated if the bearer token contains one of our credentials, or may no longer be sent
 * @throws AppError tooMany above the limit of the address
 */
function resolveTokenCaller(
  server: HostedServer,
  bearer: string,
  request: ClientRequest,
  options: CallerOptions,
  chargeQuery: QueryCharge,
): MaybePromise<Caller> {
  // The connection may already be closed, and then it has no address.
  const network = options.getNetwork(request);
  const id = `${server.id} ${hashPresentedSecret(bearer)}`;
  const isVerified = options.verifiedCallers.has(id);
  if (!isVerified) {
    // Anyone can make up a token, and searching it takes time proportional to its length.
    const limitError = options.chargeUnknownBearer(request, bearer.length);
    if (limitError) throw limitError;
    if (containsOwnCredential(bearer)) throw createOwnCredentialError(server, options);
  }
  const caller: Caller = {
    kind: server.access === 'passthrough' ? 'oauth' : 'caller_token',
    keyId: undefined,
    id,
    network,
    isVerified,
    verifiedCallers: server.config.authentication && options.verifiedCallers,
    tokenDigest: id,
    token: bearer,
  };
  const isOutdated = options.isOutdated(server, bearer, chargeQuery);
  return isOutdated === false ? caller : rejectIfOutdated(caller, isOutdated);
}

async function rejectIfOutdated(caller: Caller, isOutdated: MaybePromise<boolean>): Promise<Caller> {
  if (!(await isOutdated)) return caller;
  throw new Unauthenticated(
    'invalid',
    'the server has changed the destination of the token since you logged in, so the token was not sent; log in again',
  );
}

/** Authorizes a caller of a server that forwards nothing. Its credential does not identify it. */
function createAnonymousCaller(network: string): Caller {
  return { kind: 'caller_token', keyId: undefined, id: undefined, network, isVerified: false, token: undefined };
}

function createOwnCredentialError(server: HostedServer, options: CallerOptions): Unauthenticated {
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
type VerifiedCredential = { verifiedAt: number; readonly workspaceId: string; readonly network: string | undefined };

/** Maximum number of verified callers. One tenant can use three quarters of it. */
export const maxVerifiedCallers = 27_000;

/**
 * Remembers digests of the caller credentials that an upstream has accepted. All other callers are unverified. `clock`
 * returns monotonic ms.
 */
export function createVerifiedCallers(clock: () => number): VerifiedCallers {
  const credentials = createFairCache<VerifiedCredential>({
    max: maxVerifiedCallers,
    getOwner: ({ workspaceId }) => workspaceId,
    getSubOwner: ({ workspaceId, network }) => `${getTenantId(workspaceId)} ${network}`,
  });
  return {
    has(id) {
      const verified = credentials.get(id);
      return verified !== undefined && clock() - verified.verifiedAt < verifiedTtlMs;
    },
    recordResponse(caller, workspaceId, status) {
      const { id, network } = caller;
      if (id === undefined || (status > 299 && status !== 401)) return;
      caller.isVerified = status !== 401;
      const verified = credentials.get(id);
      if (!caller.isVerified) credentials.delete(id);
      else if (verified) verified.verifiedAt = clock();
      else credentials.set(id, { verifiedAt: clock(), workspaceId, network });
    },
  };
}
