import type { CallerKind } from '../domain/access.ts';
import { credentialHeader } from '../domain/authentication.ts';
import { bearerToken, headerValue, isCredential } from '../domain/credential.ts';
import type { KeyLimits } from '../domain/limits.ts';
import { type MaybePromise, whenKnown } from '../domain/maybe-promise.ts';
import type { RequestHeaders } from '../domain/mcp.ts';
import { looksLikeOurs } from '../domain/own-credentials.ts';
import { fillPlaceholders } from '../domain/placeholders.ts';
import { covers } from '../domain/scopes.ts';
import { configSecrets, mask } from '../domain/server-config.ts';
import type { Look, Visit } from '../domain/visit.ts';
import { Unauthenticated } from '../errors.ts';
import type { ApiKey } from '../store/api-keys.ts';
import type { HostedServer } from './hosted-server.ts';
import type { Credential, KnownCallers } from './known-callers.ts';
import { secretFor } from './secret-use.ts';
import { anonymousCaller, tokenCaller } from './token-caller.ts';
import type { TokenIds } from './token-ids.ts';

/** Who calls a hosted server, and the token that an upstream origin will receive, if any. */
export type Caller = {
  kind: CallerKind;
  /** The API key, the grant of a login, or the key or user that tries out. */
  keyId: string | undefined;
  /** Stands for the credential under limits and circuits; undefined where anything is taken for one. */
  id: string | undefined;
  /** Where a caller comes from whose credential is not known to be good; undefined for all others. */
  network: string | undefined;
  /** What the API key is limited to. */
  limits?: KeyLimits | undefined;
  /** What is known of a credential that callers bring; undefined until the upstream has accepted it. */
  credential?: Credential | undefined;
  /** Whether the tool that is called is known to refuse other credentials. */
  isJudged?: boolean;
  /** What such answers are told to; undefined where the upstream does not judge the caller. */
  known?: KnownCallers | undefined;
  /** Asks, once the credential is accepted, whether a login gave it out. */
  askLogin?: (() => Promise<void>) | undefined;
  /** A digest of the token, of those who bring one of the upstream. */
  tokenDigest?: string;
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
  /** Whether a login of the server gave the bearer out, for what it agrees to now. */
  isHandedOut: (server: HostedServer, bearer: string) => Promise<boolean>;
  known: KnownCallers;
  tokenIds: TokenIds;
  /** The address of a request, as limits count it. */
  networkOf: (visit: Visit) => string;
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
      return tokenCaller(server, bearer, visit, options);
    case 'api_key':
      return keyCaller(server, options.verifyApiKey(bearer, look), (origin) => storedToken(server, origin));
    case 'caller_token':
      if (server.config.authentication) return tokenCaller(server, bearer, visit, options);
      // Where nothing is forwarded a key identifies the caller, and so does anything else.
      if (looksLikeOurs(bearer)) return keyCaller(server, options.verifyApiKey(bearer, look), () => undefined);
      return anonymousCaller(visit, options);
  }
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
    return { kind: 'api_key', keyId: key.id, id: key.id, network: undefined, limits: key.limits, token };
  });
}

async function loginCaller(server: HostedServer, bearer: string, options: CallerOptions, look: Look): Promise<Caller> {
  const login = await options.findLogin(server, bearer, look);
  if (!login) throw new Unauthenticated('invalid', 'the token is not a valid one of this server; log in again');
  const { grantId: keyId, token, renew, giveUp } = login;
  return { kind: 'oauth', keyId, id: keyId, network: undefined, token: () => token, renew, giveUp };
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
