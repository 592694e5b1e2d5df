import { containsOwnCredential } from '@toolhost/credentials/own-credentials';
import type { ClientTokens, TokenRequest } from '@toolhost/credentials/token-request';
import { isUnavailableError, OAuthError, OutboundError, recordableFailure, ToolFailure } from '@toolhost/errors/errors';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import {
  type ClientToken,
  type ClientTokenKey,
  claimClientToken,
  findClientToken,
  prepareClientToken,
  saveClientToken,
  saveClientTokenFailure,
} from '../store/servers/client-tokens.ts';
import { checkTokenType, getDisplayedCode, isToken, parseFields, toLifetimeMs } from './provider.ts';
import { callTokenEndpoint } from './token-endpoint.ts';

export type ClientTokenDeps = RequestDeps & {
  db: Db;
  keyring: Keyring;
  /** Returns the database time, in epoch ms. */
  now: () => number;
  log: (message: string, fields: { [key: string]: unknown }) => void;
};

const requestTimeoutMs = 8000;
/**
 * Duration of a claim. It is longer than a request, so that only one process sends the request, and a crashed process
 * blocks others only for seconds.
 */
const claimMs = requestTimeoutMs + 2000;
/** Maximum time to wait for the process that has the claim, in ms. */
const waitMs = claimMs + 2000;
const pollMs = 100;
/**
 * Time before its expiry at which a token is renewed. A short-lived token is renewed in the last quarter of its
 * lifetime.
 */
const marginMs = 20_000;
/** Lifetime of a token whose endpoint does not specify one. */
const defaultLifetimeMs = 60 * 60_000;
/** Minimum age of a token that is renewed after a 401. The upstream refuses a younger token for another reason. */
const minRenewalAgeMs = 30_000;
/** Pauses after the first failure, and after many failures. */
const retryPausesMs = { first: 1000, max: 30_000 };

type CachedToken = { value: string; renewAt: number; expiresAt: number | undefined };

/**
 * Gets tokens with client credentials. All processes together send one request per credential at a time, and each
 * process caches the token.
 */
export function createClientTokens(deps: ClientTokenDeps): ClientTokens {
  const cache = new WeakMap<TokenRequest, CachedToken>();
  const inProgress = new WeakMap<TokenRequest, Promise<CachedToken>>();

  /** Runs once for all callers that wait in this process. */
  function obtainOnce(request: TokenRequest, refusedToken?: string): Promise<CachedToken> {
    const running = inProgress.get(request);
    if (running) return running;
    const started = obtain(request, refusedToken, deps).finally(() => inProgress.delete(request));
    inProgress.set(request, started);
    started.then(
      (token) => cache.set(request, token),
      () => undefined,
    );
    return started;
  }

  return {
    getToken(request) {
      const cached = cache.get(request);
      if (cached && cached.renewAt > deps.now()) return cached.value;
      return obtainOnce(request).then(
        ({ value }) => value,
        (error: unknown) => {
          if (cached && isValid(cached, deps.now()) && error instanceof ToolFailure) return cached.value;
          throw error;
        },
      );
    },
    async renewToken(request, refusedToken) {
      try {
        const { value } = await obtainOnce(request, refusedToken);
        return value === refusedToken ? undefined : value;
      } catch (error) {
        if (error instanceof ToolFailure) return undefined;
        throw error;
      }
    },
  };
}

function isValid({ expiresAt }: CachedToken, now: number): boolean {
  return expiresAt === undefined || expiresAt > now;
}

function getTokenKey(request: TokenRequest, keyring: Keyring): ClientTokenKey {
  const { workspaceId, serverId, slug: _, location, ...fingerprintFields } = request;
  return {
    workspaceId,
    serverId,
    location,
    fingerprint: keyring.mac(JSON.stringify(fingerprintFields), 'client token'),
  };
}

/**
 * Returns the stored token, or requests a new one. While the database is unavailable, each process requests its own
 * token.
 */
async function obtain(
  request: TokenRequest,
  refusedToken: string | undefined,
  deps: ClientTokenDeps,
): Promise<CachedToken> {
  const key = getTokenKey(request, deps.keyring);
  const deadline = getRunningTimeMs() + waitMs;
  try {
    for (;;) {
      const stored = await findOrCreateRow(key, deps);
      const now = deps.now();
      const usableToken = getUsable(stored, refusedToken, now);
      if (usableToken && (usableToken.renewAt > now || isPausing(stored, now))) return usableToken;
      if (isPausing(stored, now)) throw createPausingError(stored, now);
      if (await claimClientToken(deps.db, key, stored.version, { now, until: now + claimMs }))
        return await requestAndStore(request, { key, stored }, deps);
      if (getRunningTimeMs() > deadline)
        throw recordableFailure('no_token', 'a token for the API is being requested; retry in a few seconds');
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  } catch (error) {
    if (!isUnavailableError(error)) throw error;
    const { value, lifetimeMs } = await requestToken(request, deps);
    return toCachedToken(value, lifetimeMs, deps.now());
  }
}

async function findOrCreateRow(key: ClientTokenKey, { db, keyring, now }: ClientTokenDeps): Promise<ClientToken> {
  const existing = await findClientToken(db, keyring, key);
  if (existing) return existing;
  await prepareClientToken(db, key, now());
  return (await findClientToken(db, keyring, key)) ?? replacedRow;
}

/** Placeholder for a row that another process has already replaced, because its configuration differs. */
const replacedRow: ClientToken = {
  version: -1,
  token: undefined,
  issuedAt: undefined,
  renewAt: undefined,
  expiresAt: undefined,
  requestingUntil: undefined,
  retryAt: undefined,
  failures: 0,
  failure: undefined,
};

/** Returns the stored token, unless it has expired or the upstream refused it. */
function getUsable(
  { token, issuedAt = 0, renewAt = 0, expiresAt }: ClientToken,
  refusedToken: string | undefined,
  now: number,
): CachedToken | undefined {
  if (token === undefined || (expiresAt !== undefined && expiresAt <= now)) return undefined;
  if (token === refusedToken && issuedAt + minRenewalAgeMs <= now) return undefined;
  return { value: token, renewAt, expiresAt };
}

function isPausing({ retryAt }: ClientToken, now: number): boolean {
  return retryAt !== undefined && retryAt > now;
}

function createPausingError({ failure = '', retryAt = 0 }: ClientToken, now: number): ToolFailure {
  const seconds = Math.ceil((retryAt - now) / 1000);
  return new ToolFailure(
    'no_token',
    `${failure}; the next request is sent in ${seconds} s`,
    [],
    'the token endpoint returned no token',
  );
}

type ClaimedToken = { key: ClientTokenKey; stored: ClientToken };

async function requestAndStore(
  request: TokenRequest,
  { key, stored }: ClaimedToken,
  deps: ClientTokenDeps,
): Promise<CachedToken> {
  const { db, keyring } = deps;
  try {
    const { value, lifetimeMs } = await requestToken(request, deps);
    const issuedAt = deps.now();
    const cachedToken = toCachedToken(value, lifetimeMs, issuedAt);
    await saveClientToken(db, keyring, key, { ...cachedToken, issuedAt }).catch((error: unknown) => {
      // The token is usable even if it cannot be stored.
      if (!isUnavailableError(error)) throw error;
    });
    return cachedToken;
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    deps.log('a token endpoint returned no token', { slug: request.slug, failure: error.recordMessage });
    const failedAt = deps.now();
    const pause = Math.min(retryPausesMs.first * 2 ** stored.failures, retryPausesMs.max);
    await saveClientTokenFailure(db, key, { at: failedAt, retryAt: failedAt + pause, failure: error.message });
    const usableToken = getUsable(stored, undefined, failedAt);
    if (usableToken) return usableToken;
    throw error;
  }
}

function toCachedToken(value: string, lifetimeMs: number | undefined, now: number): CachedToken {
  const lifetime = lifetimeMs ?? defaultLifetimeMs;
  return {
    value,
    renewAt: now + lifetime - Math.min(marginMs, Math.floor(lifetime / 4)),
    expiresAt: lifetimeMs === undefined ? undefined : now + lifetimeMs,
  };
}

type RequestDeps = { http: HttpClient; userAgent: string };

/** A token from the endpoint. `lifetimeMs` is undefined if the endpoint did not specify it. */
type IssuedToken = { value: string; lifetimeMs: number | undefined };

/** Sends one request to a token endpoint (RFC 6749, 4.4.2). @throws ToolFailure no_token */
async function requestToken(request: TokenRequest, deps: RequestDeps): Promise<IssuedToken> {
  const { workspaceId, tokenUrl, params } = request;
  const { host } = new URL(tokenUrl);
  const form = new URLSearchParams({ ...params, grant_type: 'client_credentials' });
  try {
    const tokenRequest = { workspaceId, tokenUrl, client: request, form, timeoutMs: requestTimeoutMs };
    return parseToken(await callTokenEndpoint(tokenRequest, deps), request, host);
  } catch (error) {
    if (error instanceof OutboundError)
      throw createNoTokenError(host, `could not be called: ${error.message}`, error.reason);
    if (error instanceof OAuthError) throw createNoTokenError(host, `returned no token: ${error.message}`, error.code);
    throw error;
  }
}

function parseToken(response: UpstreamResponse, request: TokenRequest, host: string): IssuedToken {
  // A redirect is not followed, and its body is not parsed.
  const fields = response.status >= 300 && response.status < 400 ? {} : parseFields(response);
  const hasError = fields.error !== undefined && fields.error !== null;
  if (hasError || response.status < 200 || response.status > 299)
    throw createRefusal(response, fields.error, request, host);
  const { access_token: value, token_type: tokenType } = fields;
  if (!isToken(value)) throw createNoTokenError(host, 'responded without a usable access_token', 'no access_token');
  if (containsOwnCredential(value))
    throw createNoTokenError(
      host,
      'returned a token in the format of a credential of this service, which is never forwarded',
      'lookalike',
    );
  checkTokenType(tokenType);
  return { value, lifetimeMs: toLifetimeMs(fields.expires_in) };
}

const errorMeanings: Record<string, string> = {
  invalid_client: 'it does not accept the client id or client secret',
  unauthorized_client: 'this client may not use client credentials',
  invalid_scope: 'it does not grant the requested scopes',
  unsupported_grant_type: 'it does not support client credentials',
};

/**
 * Creates the failure for a refused request. The endpoint's error code is shown if it is a single word and contains no
 * secret.
 */
function createRefusal({ status }: UpstreamResponse, error: unknown, request: TokenRequest, host: string): ToolFailure {
  const code = getDisplayedCode(typeof error === 'string' ? error : '', [request.clientSecret]);
  const meaning = code === undefined ? undefined : errorMeanings[code];
  const reason = meaning ?? (status === 401 || status === 403 ? errorMeanings.invalid_client : undefined);
  const details = [`status ${status}`, ...(code === undefined ? [] : [code])].join(', ');
  return createNoTokenError(
    host,
    `returned no token (${details})${reason === undefined ? '' : `: ${reason}`}`,
    `status ${status}`,
  );
}

function createNoTokenError(host: string, predicate: string, recordMessage: string): ToolFailure {
  const message = `no token for the API: the token endpoint ${host} ${predicate}`;
  return new ToolFailure('no_token', message, [], `the token endpoint returned no token: ${recordMessage}`);
}
