import { hash } from 'node:crypto';
import { presentedCredential } from '../../domain/credentials/credential.ts';
import { holdsOurCredential, looksLikeOurs } from '../../domain/credentials/own-credentials.ts';
import { covers } from '../../domain/credentials/scopes.ts';
import type { Lookup, Visit } from '../../domain/visit.ts';
import { type MaybePromise, whenKnown } from '../../domain/work/maybe-promise.ts';
import { Unauthenticated } from '../../errors.ts';
import type { ApiKey } from '../../store/api-keys.ts';
import { addressOf, type HostedServer } from '../hosted/hosted-server.ts';
import type { Admitted, CallerOptions } from './caller.ts';

/**
 * Identifies the caller. The four kinds of credential have disjoint shapes and never fall back to one another.
 * @throws Unauthenticated 401, or 403 when a valid key may not call this server
 */
export function resolveCaller(
  server: HostedServer,
  visit: Visit,
  options: CallerOptions,
  look: Lookup,
): MaybePromise<Admitted> {
  const bearer = presentedCredential(visit.headers, server.credentialHeaders);
  if (bearer === undefined) throw new Unauthenticated('missing', 'no credential: send "Authorization: Bearer …"');
  switch (server.access) {
    case 'oauth':
      return loginCaller(server, bearer, visit, options, look);
    case 'passthrough':
      return tokenCaller(server, bearer, visit, options, look);
    case 'api_key':
      return keyCaller(server, options.verifyApiKey(bearer, look));
    case 'caller_token':
      if (server.config.authentication) return tokenCaller(server, bearer, visit, options, look);
      // Nothing is forwarded, so any credential is accepted; only a key identifies its caller.
      if (looksLikeOurs(bearer)) return keyCaller(server, options.verifyApiKey(bearer, look));
      return anonymousCaller(visit, options);
  }
}

function keyCaller(server: HostedServer, found: MaybePromise<ApiKey | undefined>): MaybePromise<Admitted> {
  return whenKnown(found, (key) => {
    if (key?.workspaceId !== server.workspaceId)
      throw new Unauthenticated('invalid', 'the API key is not valid for this server');
    if (!covers(key.scopes, 'call') || !mayReach(key, server)) {
      throw new Unauthenticated('forbidden', 'the API key may not call this server');
    }
    return () => ({
      kind: 'api_key',
      keyId: key.id,
      id: key.id,
      network: undefined,
      isKnown: true,
      limits: key.limits,
      token: undefined,
    });
  });
}

/** A key for a server is good for its views too, because they are a part of it. */
function mayReach({ servers, views }: ApiKey, server: HostedServer): boolean {
  if (!servers || servers.includes(server.slug)) return true;
  return views !== undefined && server.view !== undefined && views.includes(addressOf(server));
}

async function loginCaller(
  server: HostedServer,
  bearer: string,
  visit: Visit,
  options: CallerOptions,
  look: Lookup,
): Promise<Admitted> {
  // A connection that has been closed by the time of the call has no address.
  const network = options.networkOf(visit);
  const login = await options.findLogin(server, bearer, look);
  if (!login) throw new Unauthenticated('invalid', 'the token is not a valid one of this server; log in again');
  const { grantId: keyId, token, renew, giveUp } = login;
  return () => ({ kind: 'oauth', keyId, id: keyId, network, isKnown: true, token, renew, giveUp });
}

/**
 * Admits a caller that brings a token of the upstream. Only the upstream knows whether the token is good;
 * `known-callers.ts` learns that from its answers.
 * @throws Unauthenticated when the bearer holds a credential of ours, or may no longer be sent
 * @throws AppError tooMany above the limit of the address
 */
function tokenCaller(
  server: HostedServer,
  bearer: string,
  visit: Visit,
  options: CallerOptions,
  look: Lookup,
): MaybePromise<Admitted> {
  const id = `${server.id} ${hash('sha256', bearer, 'base64url')}`;
  const isKnown = options.known.has(id);
  if (!isKnown) {
    // Anybody can make one up, and to search it takes time in proportion to its length.
    const refusal = options.onUnknown(visit, bearer.length);
    if (refusal) throw refusal;
    if (holdsOurCredential(bearer)) throw ownCredential(server, options);
  }
  // A connection that has been closed by the time of the call has no address.
  const network = options.networkOf(visit);
  return unlessOutdated(server, bearer, options, look, () => ({
    kind: server.access === 'passthrough' ? 'oauth' : 'caller_token',
    keyId: undefined,
    id,
    network,
    isKnown,
    known: server.config.authentication && options.known,
    tokenDigest: id,
    token: bearer,
  }));
}

function ownCredential(server: HostedServer, options: CallerOptions): Unauthenticated {
  if (server.access === 'passthrough')
    return new Unauthenticated('invalid', 'this server takes the token of its own provider, not a key of this service');
  options.onMisdirectedKey(server);
  return new Unauthenticated(
    'invalid',
    'this server forwards the bearer to its upstream, so send a token of the upstream itself; an API key of this service is never sent there',
  );
}

/** Sends the token of a login only to destinations that the person agreed to. */
function unlessOutdated(
  server: HostedServer,
  bearer: string,
  options: CallerOptions,
  look: Lookup,
  admitted: Admitted,
): MaybePromise<Admitted> {
  const answer = options.isOutdated(server, bearer, look);
  if (answer === false) return admitted;
  return whenKnown(answer, (isOutdated) => {
    if (!isOutdated) return admitted;
    throw new Unauthenticated(
      'invalid',
      'this server has changed where it sends the token since you logged in, so it is not sent; log in again',
    );
  });
}

/** Admits a caller of a server that forwards nothing; its credential does not identify it. */
function anonymousCaller(visit: Visit, options: CallerOptions): Admitted {
  const network = options.networkOf(visit);
  return () => ({ kind: 'caller_token', keyId: undefined, id: undefined, network, isKnown: false, token: undefined });
}
