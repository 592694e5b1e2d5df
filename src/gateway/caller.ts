import type { CallerKind } from '../domain/access.ts';
import { credentialHeader } from '../domain/authentication.ts';
import { bearerToken, headerValue, isCredential } from '../domain/credential.ts';
import { type MaybePromise, whenKnown } from '../domain/maybe-promise.ts';
import type { RequestHeaders } from '../domain/mcp.ts';
import { holdsOurCredential, looksLikeOurs } from '../domain/own-credentials.ts';
import { fillPlaceholders } from '../domain/placeholders.ts';
import { covers } from '../domain/scopes.ts';
import { configSecrets, mask } from '../domain/server-config.ts';
import type { Look, Visit } from '../domain/visit.ts';
import { Unauthenticated } from '../errors.ts';
import type { ApiKey } from '../store/api-keys.ts';
import type { HostedServer } from './hosted-server.ts';
import { secretFor } from './secret-use.ts';

/** Who calls a hosted server, and the token that an upstream origin will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** The API key, the grant of a login, or the key or user that tries out. */
  keyId: string | undefined;
  token: (origin: string) => string | undefined;
  /** After the upstream refused the token of a login: a new one, or undefined when the person must log in again. */
  renew?: () => Promise<string | undefined>;
  /** After the upstream refused the renewed token too: the next request makes the agent log in again. */
  giveUp?: (refused: string) => Promise<void>;
};

/** What one of the tokens that the OAuth proxy issued for a server stands for. */
export type Login = {
  grantId: string;
  token: string;
  renew: () => Promise<string | undefined>;
  giveUp: (refused: string) => Promise<void>;
};

export type CallerOptions = {
  verifyApiKey: (key: string, look: Look) => MaybePromise<ApiKey | undefined>;
  /** Undefined for everything but a live token of this very server. */
  findLogin: (server: HostedServer, bearer: string, look: Look) => Promise<Login | undefined>;
  /** Whether the agent got the bearer by a login, before the server changed where it sends such tokens. */
  isOutdated: (server: HostedServer, bearer: string) => MaybePromise<boolean>;
  /** Told when one of our API keys was about to reach a stranger's upstream. */
  onMisdirectedKey: (server: HostedServer) => void;
};

/**
 * Decides who calls (design 4). The four kinds of credential have disjoint shapes and never fall back to one another.
 * @throws Unauthenticated 401, or 403 when a valid key may not call this server
 */
export function resolveCaller(
  server: HostedServer,
  visit: Visit,
  options: CallerOptions,
  look: Look,
): MaybePromise<Caller> {
  const bearer = presentedCredential(server, visit.headers);
  if (bearer === undefined) throw new Unauthenticated('missing', 'no credential: send "Authorization: Bearer …"');
  switch (server.access) {
    case 'oauth':
      return loginCaller(server, bearer, options, look);
    case 'passthrough':
      if (holdsOurCredential(bearer))
        throw new Unauthenticated(
          'invalid',
          'this server takes the token of its own provider, not a key of this service',
        );
      return unlessOutdated(server, bearer, options, { kind: 'oauth', keyId: undefined, token: () => bearer });
    case 'api_key':
      return keyCaller(server, options.verifyApiKey(bearer, look), (origin) => storedToken(server, origin));
    case 'caller_token':
      return server.config.authentication
        ? forwardingCaller(server, bearer, options)
        : openApiCaller(server, bearer, options, look);
  }
}

function forwardingCaller(server: HostedServer, bearer: string, options: CallerOptions): MaybePromise<Caller> {
  if (holdsOurCredential(bearer)) {
    options.onMisdirectedKey(server);
    throw new Unauthenticated(
      'invalid',
      'this server forwards the bearer to its upstream, so send a token of the upstream itself; an API key of this service is never sent there',
    );
  }
  return unlessOutdated(server, bearer, options, { kind: 'caller_token', keyId: undefined, token: () => bearer });
}

/** A login's own token goes only where the person agreed that it goes. */
function unlessOutdated(
  server: HostedServer,
  bearer: string,
  options: CallerOptions,
  caller: Caller,
): MaybePromise<Caller> {
  const answer = options.isOutdated(server, bearer);
  if (answer === false) return caller;
  return whenKnown(answer, (isOutdated) => {
    if (!isOutdated) return caller;
    throw new Unauthenticated(
      'invalid',
      'this server has changed where it sends the token since you logged in, so it is not sent; log in again',
    );
  });
}

/** On a server that forwards nothing a key identifies the caller, and so does anything else. */
function openApiCaller(server: HostedServer, bearer: string, options: CallerOptions, look: Look): MaybePromise<Caller> {
  if (looksLikeOurs(bearer)) return keyCaller(server, options.verifyApiKey(bearer, look), () => undefined);
  return { kind: 'caller_token', keyId: undefined, token: () => undefined };
}

function keyCaller(
  server: HostedServer,
  found: MaybePromise<ApiKey | undefined>,
  token: Caller['token'],
): MaybePromise<Caller> {
  return whenKnown(found, (key) => {
    if (key?.workspaceId !== server.workspaceId)
      throw new Unauthenticated('invalid', 'the API key is not valid for this server');
    if (!covers(key.scopes, 'call') || (key.servers && !key.servers.includes(server.slug))) {
      throw new Unauthenticated('forbidden', 'the API key may not call this server');
    }
    return { kind: 'api_key', keyId: key.id, token };
  });
}

async function loginCaller(server: HostedServer, bearer: string, options: CallerOptions, look: Look): Promise<Caller> {
  const login = await options.findLogin(server, bearer, look);
  if (!login) throw new Unauthenticated('invalid', 'the token is not a valid one of this server; log in again');
  const { grantId: keyId, token, renew, giveUp } = login;
  return { kind: 'oauth', keyId, token: () => token, renew, giveUp };
}

/** The stored credential of `authentication.token`. */
export function storedToken(server: HostedServer, origin: string): string | undefined {
  const { authentication } = server.config;
  if (authentication?.token === undefined) return undefined;
  if (authentication.token === mask) return secretFor(server, configSecrets.token, origin);
  return fillPlaceholders(authentication.token, (name) => secretFor(server, name, origin));
}

/**
 * The one credential of a request: the bearer, or the header that `authentication.header` names (spec 5.4.7).
 * @throws Unauthenticated when the header is malformed or two different credentials were sent
 */
function presentedCredential(server: HostedServer, headers: RequestHeaders): string | undefined {
  const bearer = bearerToken(headers);
  const name = server.config.authentication && credentialHeader(server.config.authentication)?.toLowerCase();
  const other = name === undefined || name === 'authorization' ? undefined : headerValue(headers, name);
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
