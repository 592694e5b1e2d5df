import { bearerToken, headerValue, isCredential } from '../../domain/credentials/credential.ts';
import { looksLikeOurs } from '../../domain/credentials/own-credentials.ts';
import { covers } from '../../domain/credentials/scopes.ts';
import type { Lookup, RequestHeaders, Visit } from '../../domain/visit.ts';
import { type MaybePromise, whenKnown } from '../../domain/work/maybe-promise.ts';
import { Unauthenticated } from '../../errors.ts';
import type { ApiKey } from '../../store/api-keys.ts';
import { addressOf, type HostedServer } from '../hosted/hosted-server.ts';
import type { Admitted, CallerOptions } from './caller.ts';
import { partyOf } from './known-callers.ts';
import { anonymousCaller, tokenCaller } from './token-caller.ts';

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
  const bearer = presentedCredential(server, visit.headers);
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
  const party = partyOf(options.networkOf(visit));
  const login = await options.findLogin(server, bearer, look);
  if (!login) throw new Unauthenticated('invalid', 'the token is not a valid one of this server; log in again');
  const { grantId: keyId, token, renew, giveUp } = login;
  return () => ({ kind: 'oauth', keyId, id: keyId, network: undefined, party, token, renew, giveUp });
}

/**
 * The one credential of a request: the bearer, or the header that `authentication.header` names (spec 5.4.7).
 * @throws Unauthenticated when the header is malformed or two different credentials were sent
 */
function presentedCredential(server: HostedServer, headers: RequestHeaders): string | undefined {
  const bearer = bearerToken(headers);
  const name = server.callersHeader;
  const other = name === undefined ? undefined : headerValue(headers, name);
  if (other === undefined || other === '') return bearer;
  const bare = other.replace(/^(Bearer|Basic) +/i, '');
  if (bearer !== undefined && bearer !== bare)
    throw new Unauthenticated('invalid', 'two different credentials were sent; send one');
  if (!isCredential(bare))
    throw new Unauthenticated(
      'invalid',
      `the header ${name} must hold one credential of visible ASCII characters without spaces`,
    );
  return bare;
}
