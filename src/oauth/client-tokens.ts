import { holdsOurCredential } from '../domain/credentials/own-credentials.ts';
import type { ClientTokens, TokenRequest } from '../domain/credentials/token-request.ts';
import { runningNow } from '../domain/work/running-time.ts';
import { isUnavailable, OAuthError, OutboundError, plainFailure, ToolFailure } from '../errors.ts';
import type { Answer } from '../outbound/exchange.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import {
  type ClientToken,
  type ClientTokenKey,
  claimClientToken,
  failClientToken,
  findClientToken,
  prepareClientToken,
  saveClientToken,
} from '../store/servers/client-tokens.ts';
import { askTokenEndpoint, checkTokenType, isToken, readFields, shownCode, spanOf } from './provider.ts';

export type ClientTokenParts = AskParts & {
  db: Db;
  keyring: Keyring;
  /** Returns the database time, in epoch ms. */
  now: () => number;
  log: (message: string, fields: { [key: string]: unknown }) => void;
};

const askTimeoutMs = 8000;
/**
 * Duration of a claim. It is longer than a request, so that only one process sends the request, and a crashed process
 * blocks others only for seconds.
 */
const claimMs = askTimeoutMs + 2000;
const waitMs = claimMs + 2000;
const pollMs = 100;
/**
 * Time before its expiry at which a token is renewed. A short-lived token is renewed in the last quarter of its
 * lifetime.
 */
const marginMs = 20_000;
/** Lifetime of a token whose endpoint does not specify one. */
const unstatedMs = 60 * 60_000;
/** Minimum age of a token that is renewed after a 401. The upstream refuses a younger token for another reason. */
const youngMs = 30_000;
/** Pauses after the first failure, and after many failures. */
const pausesMs = { first: 1000, most: 30_000 };

type Held = { value: string; renewAt: number; expiresAt: number | undefined };

/**
 * Gets tokens with client credentials. All processes together send one request per credential at a time, and each
 * process caches the token.
 */
export function createClientTokens(parts: ClientTokenParts): ClientTokens {
  const held = new WeakMap<TokenRequest, Held>();
  const asking = new WeakMap<TokenRequest, Promise<Held>>();

  /** Runs once for all callers that wait in this process. */
  function obtainOnce(request: TokenRequest, refused?: string): Promise<Held> {
    const underWay = asking.get(request);
    if (underWay) return underWay;
    const started = obtain(request, refused, parts).finally(() => asking.delete(request));
    asking.set(request, started);
    started.then(
      (token) => held.set(request, token),
      () => undefined,
    );
    return started;
  }

  return {
    find(request) {
      const known = held.get(request);
      if (known && known.renewAt > parts.now()) return known.value;
      return obtainOnce(request).then(
        ({ value }) => value,
        (error: unknown) => {
          if (known && isValid(known, parts.now()) && error instanceof ToolFailure) return known.value;
          throw error;
        },
      );
    },
    async renew(request, refused) {
      try {
        const { value } = await obtainOnce(request, refused);
        return value === refused ? undefined : value;
      } catch (error) {
        if (error instanceof ToolFailure) return undefined;
        throw error;
      }
    },
  };
}

function isValid({ expiresAt }: Held, now: number): boolean {
  return expiresAt === undefined || expiresAt > now;
}

function keyOf(request: TokenRequest, keyring: Keyring): ClientTokenKey {
  const { workspaceId, serverId, slug: _, location, ...asked } = request;
  return { workspaceId, serverId, location, fingerprint: keyring.mac(JSON.stringify(asked), 'client token') };
}

/**
 * Returns the stored token, or requests a new one. While the database is unavailable, each process requests its own
 * token.
 */
async function obtain(request: TokenRequest, refused: string | undefined, parts: ClientTokenParts): Promise<Held> {
  const key = keyOf(request, parts.keyring);
  const until = runningNow() + waitMs;
  try {
    for (;;) {
      const stored = await prepared(key, parts);
      const now = parts.now();
      const usable = usableOf(stored, refused, now);
      if (usable && (usable.renewAt > now || isPausing(stored, now))) return usable;
      if (isPausing(stored, now)) throw pausing(stored, now);
      if (await claimClientToken(parts.db, key, stored.version, { now, until: now + claimMs }))
        return await askAndStore(request, { key, stored }, parts);
      if (runningNow() > until)
        throw plainFailure('no_token', 'a token for the API is being requested; retry in a few seconds');
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    const { value, lifetimeMs } = await askToken(request, parts);
    return lifeOf(value, lifetimeMs, parts.now());
  }
}

async function prepared(key: ClientTokenKey, { db, keyring, now }: ClientTokenParts): Promise<ClientToken> {
  const known = await findClientToken(db, keyring, key);
  if (known) return known;
  await prepareClientToken(db, key, now());
  return (await findClientToken(db, keyring, key)) ?? nothing;
}

/** Placeholder for a row that another process has already replaced, because its configuration differs. */
const nothing: ClientToken = {
  version: -1,
  token: undefined,
  givenAt: undefined,
  renewAt: undefined,
  expiresAt: undefined,
  requestingUntil: undefined,
  retryAt: undefined,
  failures: 0,
  failure: undefined,
};

/** Returns the stored token, unless it has expired or the upstream refused it. */
function usableOf(
  { token, givenAt = 0, renewAt = 0, expiresAt }: ClientToken,
  refused: string | undefined,
  now: number,
): Held | undefined {
  if (token === undefined || (expiresAt !== undefined && expiresAt <= now)) return undefined;
  if (token === refused && givenAt + youngMs <= now) return undefined;
  return { value: token, renewAt, expiresAt };
}

function isPausing({ retryAt }: ClientToken, now: number): boolean {
  return retryAt !== undefined && retryAt > now;
}

function pausing({ failure = '', retryAt = 0 }: ClientToken, now: number): ToolFailure {
  const seconds = Math.ceil((retryAt - now) / 1000);
  return new ToolFailure(
    'no_token',
    `${failure}; the next request is sent in ${seconds} s`,
    [],
    'the token endpoint returned no token',
  );
}

type Claimed = { key: ClientTokenKey; stored: ClientToken };

async function askAndStore(request: TokenRequest, { key, stored }: Claimed, parts: ClientTokenParts): Promise<Held> {
  const { db, keyring } = parts;
  try {
    const { value, lifetimeMs } = await askToken(request, parts);
    const givenAt = parts.now();
    const life = lifeOf(value, lifetimeMs, givenAt);
    await saveClientToken(db, keyring, key, { ...life, givenAt }).catch((error: unknown) => {
      // The token is usable even if it cannot be stored.
      if (!isUnavailable(error)) throw error;
    });
    return life;
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    parts.log('a token endpoint returned no token', { slug: request.slug, failure: error.forRecord });
    const at = parts.now();
    const pause = Math.min(pausesMs.first * 2 ** stored.failures, pausesMs.most);
    await failClientToken(db, key, { at, retryAt: at + pause, failure: error.message });
    const usable = usableOf(stored, undefined, at);
    if (usable) return usable;
    throw error;
  }
}

function lifeOf(value: string, lifetimeMs: number | undefined, now: number): Held {
  const life = lifetimeMs ?? unstatedMs;
  return {
    value,
    renewAt: now + life - Math.min(marginMs, Math.floor(life / 4)),
    expiresAt: lifetimeMs === undefined ? undefined : now + lifetimeMs,
  };
}

type AskParts = { http: HttpClient; userAgent: string };

/** A token from the endpoint. `lifetimeMs` is undefined if the endpoint did not specify it. */
type GivenToken = { value: string; lifetimeMs: number | undefined };

/** Sends one request to a token endpoint (RFC 6749, 4.4.2). @throws ToolFailure no_token */
async function askToken(request: TokenRequest, by: AskParts): Promise<GivenToken> {
  const { workspaceId, tokenUrl, params } = request;
  const { host } = new URL(tokenUrl);
  const form = new URLSearchParams({ ...params, grant_type: 'client_credentials' });
  try {
    const question = { workspaceId, tokenUrl, client: request, form, timeoutMs: askTimeoutMs };
    return readToken(await askTokenEndpoint(question, by), request, host);
  } catch (error) {
    if (error instanceof OutboundError) throw noToken(host, `could not be called: ${error.message}`, error.reason);
    if (error instanceof OAuthError) throw noToken(host, `returned no token: ${error.message}`, error.code);
    throw error;
  }
}

function readToken(answer: Answer, request: TokenRequest, host: string): GivenToken {
  // A redirect is not followed, and its body is not parsed.
  const fields = answer.status >= 300 && answer.status < 400 ? {} : readFields(answer);
  const hasError = fields.error !== undefined && fields.error !== null;
  if (hasError || answer.status < 200 || answer.status > 299) throw refused(answer, fields.error, request, host);
  const { access_token: value, token_type: tokenType } = fields;
  if (!isToken(value)) throw noToken(host, 'responded without a usable access_token', 'no access_token');
  if (holdsOurCredential(value))
    throw noToken(
      host,
      'returned a token in the format of a credential of this service, which is never forwarded',
      'lookalike',
    );
  checkTokenType(tokenType);
  return { value, lifetimeMs: spanOf(fields.expires_in) };
}

const meanings: Record<string, string> = {
  invalid_client: 'it does not accept the client id or client secret',
  unauthorized_client: 'this client may not use client credentials',
  invalid_scope: 'it does not grant the requested scopes',
  unsupported_grant_type: 'it does not support client credentials',
};

/**
 * Creates the failure for a refused request. The endpoint's error code is shown if it is a single word and contains no
 * secret.
 */
function refused({ status }: Answer, error: unknown, request: TokenRequest, host: string): ToolFailure {
  const code = shownCode(typeof error === 'string' ? error : '', [request.clientSecret]);
  const meaning = code === undefined ? undefined : meanings[code];
  const why = meaning ?? (status === 401 || status === 403 ? meanings.invalid_client : undefined);
  const said = [`status ${status}`, ...(code === undefined ? [] : [code])].join(', ');
  return noToken(host, `returned no token (${said})${why === undefined ? '' : `: ${why}`}`, `status ${status}`);
}

function noToken(host: string, what: string, forRecord: string): ToolFailure {
  const message = `no token for the API: the token endpoint ${host} ${what}`;
  return new ToolFailure('no_token', message, [], `the token endpoint returned no token: ${forRecord}`);
}
