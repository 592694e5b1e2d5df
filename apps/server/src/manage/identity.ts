import { AppError, getErrorMessage, isUnavailableError } from '@toolhost/errors/errors';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import type { Configuration, CustomFetch, ServerMetadata } from 'openid-client';
import { isSingleAddress } from '../email-address.ts';
import { toSingleLine } from '../http/page.ts';
import { maxGroupLength } from '../store/people/role-groups.ts';

/** A person as the identity provider knows them. */
export type Identity = {
  issuer: string;
  subject: string;
  /**
   * Email address that the provider has verified. Invitations are bound to addresses, and notifications are sent there.
   */
  email: string | undefined;
  name: string | undefined;
  /** Groups that the provider states in the claim of OIDC_GROUPS_CLAIM; empty if it states none in that form. */
  groups: readonly string[];
  /** Token with which `check` asks about the person again; undefined if the provider issued none. */
  refreshToken: string | undefined;
};

/**
 * Result of a check, with the refresh token to use next time. `person` is undefined if the provider has replaced that
 * token, and then could not say more about the person.
 */
export type CheckedIdentity = { person: Identity | undefined; refreshToken: string };

/** Values that bind the return from the provider to this sign-in. All are secrets of the browser. */
export type SignIn = { state: string; verifier: string; nonce: string };

/** The external identity provider (OpenID Connect) of the dashboard and the management server. */
export type IdentityProvider = {
  host: string;
  /** Builds the URL of the provider's login page. With `offline`, asks for a refresh token, which `check` needs. */
  authorizationUrl(signIn: SignIn, redirectUri: string, options: { offline: boolean }): Promise<URL>;
  /**
   * Validates the authorization response: state, issuer, nonce, signature, audience, expiry.
   * @throws AppError unauthenticated, unavailable
   */
  identify(returned: URL, signIn: SignIn): Promise<Identity>;
  /**
   * Asks the provider about a person again.
   * @throws AppError unauthenticated if the provider refuses the person or names another one, unavailable if it is down
   * or refuses this service
   */
  check(refreshToken: string, previous: { issuer: string; subject: string }): Promise<CheckedIdentity>;
};

export type IdentityOptions = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Origin at which this service reaches the provider, if that is not the issuer's. */
  internalOrigin?: string;
};

/**
 * Finds the settings of the identity provider at the first sign-in. `host` is its name for people. `isBuiltIn` is true
 * for the provider of local mode, which knows one person.
 */
export type IdentitySource = { find: () => Promise<IdentityOptions>; host: string; isBuiltIn: boolean };

/** Maximum number of groups of a person. A claim with more counts as none, because a part could be the wrong part. */
export const maxGroups = 1000;

/** Maximum length of a subject (OpenID Connect Core, 2). */
const maxSubjectLength = 255;

/** Loads the library at the first sign-in, because many processes never need it. */
const loadLibrary = () => import('openid-client');

/**
 * Creates the identity provider. Discovery waits for the first sign-in, so that startup does not need the provider.
 * `groupsClaim` is the name of the claim with a person's groups.
 */
export function createIdentityProvider(
  { find, host }: Pick<IdentitySource, 'find' | 'host'>,
  groupsClaim: string,
): IdentityProvider {
  let discovered: Promise<Configuration> | undefined;
  const rotatedTokens = new Map<string, string>();

  function getConfiguration(): Promise<Configuration> {
    discovered ??= discover(find, (token, rotated) => rotatedTokens.set(token, rotated)).catch((error: unknown) => {
      discovered = undefined;
      throw findUnavailableError(error) ?? createUnavailableError(error);
    });
    return discovered;
  }

  return {
    host,
    async authorizationUrl({ state, nonce, verifier }, redirectUri, { offline }) {
      const oidc = await loadLibrary();
      const config = await getConfiguration();
      const metadata = config.serverMetadata();
      // Some providers, such as Dex, only state groups if the scope asks for them.
      const scope = metadata.scopes_supported?.includes('groups') ? `${signInScope} groups` : signInScope;
      return oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(offline && getOfflineParameters(metadata, scope)),
      });
    },
    async identify(returned, { state, nonce, verifier }) {
      const oidc = await loadLibrary();
      const config = await getConfiguration();
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const tokens = await oidc.authorizationCodeGrant(config, returned, checks).catch((error: unknown) => {
        if (error instanceof oidc.AuthorizationResponseError && outageErrors.includes(error.error))
          throw createUnavailableError(error);
        throw (
          findUnavailableError(error) ??
          new AppError('unauthenticated', 'the sign-in failed; start again', { cause: error })
        );
      });
      const claims = tokens.claims();
      return toIdentity(claims?.iss, claims, { groupsClaim, refreshToken: tokens.refresh_token });
    },
    async check(refreshToken, previous) {
      const config = await getConfiguration();
      const { issuer } = config.serverMetadata();
      // A token of an earlier provider must not reach the current one.
      if (parseUrl(issuer)?.origin !== parseUrl(previous.issuer)?.origin)
        throw createRefusedError(new Error('the identity provider has changed'));
      const tokens = await refreshTokens(config, refreshToken, rotatedTokens);
      if (typeof tokens === 'string') return { person: undefined, refreshToken: tokens };
      const claims = tokens.claims();
      // The ID token of a refresh may lack claims (OpenID Connect Core, 12.2).
      const isComplete = claims?.email !== undefined && claims[groupsClaim] !== undefined;
      const canAsk = !claims || config.serverMetadata().userinfo_endpoint !== undefined;
      const nextToken = tokens.refresh_token ?? refreshToken;
      const isRotated = nextToken !== refreshToken;
      const userinfo =
        isComplete || !canAsk ? undefined : await readUserinfo(config, tokens.access_token, { ...previous, isRotated });
      if (userinfo === null) return { person: undefined, refreshToken: nextToken };
      const allClaims = { ...userinfo, ...claims, sub: claims?.sub ?? previous.subject };
      const person = toIdentity(claims?.iss ?? issuer, allClaims, { groupsClaim, refreshToken: nextToken });
      if (person.issuer !== previous.issuer || person.subject !== previous.subject)
        throw createRefusedError(new Error('the identity provider named another person'));
      return { person, refreshToken: nextToken };
    },
  };
}

/**
 * Refreshes tokens. Returns only the rotated refresh token if the provider's keys are down, because it must be stored.
 * The library then returns nothing, so `rotatedTokens` contains it by the token that it replaces.
 */
async function refreshTokens(config: Configuration, refreshToken: string, rotatedTokens: Map<string, string>) {
  const oidc = await loadLibrary();
  try {
    return await oidc.refreshTokenGrant(config, refreshToken).catch(throwCheckError);
  } catch (error) {
    const rotatedToken = rotatedTokens.get(refreshToken);
    if (rotatedToken === undefined || !isUnavailableError(error)) throw error;
    return rotatedToken;
  } finally {
    rotatedTokens.delete(refreshToken);
  }
}

/** Reads userinfo. Returns null during an outage if the refresh token was rotated, because the new one must be stored. */
async function readUserinfo(
  config: Configuration,
  accessToken: string,
  { subject, isRotated }: { subject: string; isRotated: boolean },
) {
  const oidc = await loadLibrary();
  try {
    return await oidc.fetchUserInfo(config, accessToken, subject).catch(throwCheckError);
  } catch (error) {
    if (isRotated && isUnavailableError(error)) return null;
    throw error;
  }
}

const signInScope = 'openid email profile';

/**
 * Returns the parameters that ask for a refresh token. A provider that lists no `offline_access` issues one without
 * being asked, or none.
 */
function getOfflineParameters(metadata: ServerMetadata, scope: string): { [name: string]: string } {
  const { hostname } = new URL(metadata.issuer);
  // Google only issues a refresh token with a consent.
  if (hostname === 'accounts.google.com') return { access_type: 'offline', prompt: 'consent' };
  if (!metadata.scopes_supported?.includes('offline_access')) return {};
  const offlineScope = `${scope} offline_access`;
  // OpenID Connect Core, 11: a provider may ignore offline_access without a consent. Entra does not, and refuses a
  // consent prompt to people whose administrator has consented for them.
  return microsoftHosts.test(hostname) ? { scope: offlineScope } : { scope: offlineScope, prompt: 'consent' };
}

const microsoftHosts = /(?:^|\.)(?:microsoftonline\.(?:com|us|cn)|partner\.microsoftonline\.cn|ciamlogin\.com)$/;

/** Reads the claims about a person. @throws AppError unauthenticated */
function toIdentity(
  issuer: string | undefined,
  claims: { readonly [claim: string]: unknown; readonly sub: string } | undefined,
  { groupsClaim, refreshToken }: { groupsClaim: string; refreshToken: string | undefined },
): Identity {
  // A shortened or cleaned subject could be that of another person.
  if (
    issuer === undefined ||
    !claims ||
    claims.sub === '' ||
    claims.sub.length > maxSubjectLength ||
    hasControlCharacters(claims.sub)
  )
    throw new AppError(
      'unauthenticated',
      'the identity provider did not state who signed in; contact its administrator',
    );
  const { sub: subject, email: address, email_verified: isVerified } = claims;
  const email = isVerified === true && typeof address === 'string' && isSingleAddress(address) ? address : undefined;
  const name = typeof claims.name === 'string' ? toSingleLine(claims.name).slice(0, 200) || undefined : undefined;
  const groups = Object.hasOwn(claims, groupsClaim) ? toGroups(claims[groupsClaim]) : [];
  return { issuer, subject, email, name, groups, refreshToken };
}

/** Returns the groups of a claim; none if it is anything but a list of up to 1,000 names. */
function toGroups(claim: unknown): string[] {
  if (!Array.isArray(claim) || claim.length > maxGroups) return [];
  return claim.every(isGroupName) ? [...new Set(claim)] : [];
}

function isGroupName(entry: unknown): entry is string {
  return typeof entry === 'string' && entry !== '' && entry.length <= maxGroupLength && !hasControlCharacters(entry);
}

function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** `onRotation` is called with a refresh token and the one that replaces it, before the library verifies anything. */
async function discover(
  findOptions: () => Promise<IdentityOptions>,
  onRotation: (token: string, rotatedToken: string) => void,
): Promise<Configuration> {
  const oidc = await loadLibrary();
  const { issuer, clientId, clientSecret, internalOrigin } = await findOptions();
  const url = new URL(issuer);
  // By default, the library trusts the TLS of the token endpoint and does not verify the signature.
  const execute = [oidc.enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])];
  // In local mode, the public URL may lead to a forwarded port, which only the browser can reach.
  const fetchInternally: CustomFetch = async (target, request) => {
    const internalTarget = internalOrigin === undefined ? target : target.replace(url.origin, internalOrigin);
    const response = await fetchFromProvider(internalTarget, request);
    const token = request.body instanceof URLSearchParams ? request.body.get('refresh_token') : null;
    if (token === null) return response;
    const newToken = await readRefreshToken(response.clone());
    if (newToken !== undefined && newToken !== token) onRotation(token, newToken);
    return response;
  };
  const options = { execute, [oidc.customFetch]: fetchInternally };
  return oidc.discovery(url, clientId, undefined, oidc.ClientSecretBasic(clientSecret), options);
}

/** Reads the refresh token of a token response. Returns undefined without one; the library reports what is wrong. */
async function readRefreshToken(response: Response): Promise<string | undefined> {
  const body: unknown = await response.json().catch(() => undefined);
  const { refresh_token: token } = (body ?? {}) as { refresh_token?: unknown };
  return typeof token === 'string' && token !== '' ? token : undefined;
}

/** Errors with which a login page reports that it is down (RFC 6749, 4.1.2.1), because a redirect has no status. */
const outageErrors = ['temporarily_unavailable', 'server_error'];
/** Errors that concern this service and not the person (RFC 6749, 5.2), such as an expired client secret. */
const serviceErrors = ['invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_request'];

/**
 * Classifies the failure of a check. A response that is no OAuth error states nothing about the person, so it counts as
 * an outage.
 */
async function throwCheckError(error: unknown): Promise<never> {
  const oidc = await loadLibrary();
  if (error instanceof oidc.ResponseBodyError && serviceErrors.includes(error.error))
    throw new AppError(
      'unavailable',
      'the identity provider rejects this service; its operator must check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET',
      { retryAfterS: 60, cause: error },
    );
  const isRefusal =
    (error instanceof oidc.ResponseBodyError && !outageErrors.includes(error.error)) ||
    error instanceof oidc.WWWAuthenticateChallengeError ||
    (error instanceof oidc.ClientError && error.code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED');
  throw isRefusal ? createRefusedError(error) : (findUnavailableError(error) ?? createUnavailableError(error));
}

function createRefusedError(cause: unknown): AppError {
  return new AppError('unauthenticated', 'the identity provider no longer lets this person in; log in again', {
    cause,
  });
}

/**
 * Sends a request to the identity provider. Detects a provider that is down, because the library wraps this failure in
 * the same error as a refused person.
 * @throws AppError unavailable, and Error for a response that is too large
 */
async function fetchFromProvider(...request: Parameters<CustomFetch>): Promise<Response> {
  const response = await boundedFetch(...request).catch((error: unknown) => {
    // In the Fetch standard, these are network errors and timeouts, not the error of a response that is too large.
    throw error instanceof TypeError || error instanceof DOMException ? createUnavailableError(error) : error;
  });
  const { status } = response;
  if (status >= 500 || status === 429 || status === 408) throw createUnavailableError(new Error(`status ${status}`));
  return response;
}

function createUnavailableError(cause: unknown): AppError {
  const message = 'the identity provider does not respond; retry in a few seconds';
  return new AppError('unavailable', message, { retryAfterS: 5, cause });
}

/** Finds the error of `fetchFromProvider` that caused an error of the library. */
function findUnavailableError(error: unknown): AppError | undefined {
  for (let current = error; current instanceof Error; current = current.cause)
    if (current instanceof AppError) return current;
  return undefined;
}

/** Returns the library's own message, for the log only. */
export function getCauseMessage(error: unknown): string {
  return error instanceof Error && error.cause !== undefined ? getErrorMessage(error.cause) : getErrorMessage(error);
}

/** Maximum size of a response. A legitimate response has a few KB; a set of a hundred keys has 50 KB. */
const maxBytes = 256 * 1024;
const timeoutMs = 10_000;
/** Statuses of responses without a body (Fetch Standard, null body status). */
const bodilessStatuses = new Set([204, 205, 304]);

/**
 * Calls `fetch` for the identity provider, whose responses are read into memory completely. Aborts a response that is
 * too large, or incomplete after ten seconds. The library's own timeout would also count time in which this process was
 * stopped.
 * @throws Error for a response that is too large, and errors of `fetch`
 */
async function boundedFetch(...[url, options]: Parameters<CustomFetch>): Promise<Response> {
  const timeoutController = new AbortController();
  const timeoutError = new DOMException(`no complete response within ${timeoutMs / 1000} s`, 'TimeoutError');
  const cancel = setRunningTimeout(timeoutMs, () => timeoutController.abort(timeoutError));
  try {
    const { status, headers, body } = await fetch(url, {
      ...(options as RequestInit),
      signal: timeoutController.signal,
    });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body ?? []) {
      size += chunk.length;
      if (size > maxBytes) throw new Error(`${new URL(url).host} responded with more than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return new Response(bodilessStatuses.has(status) ? null : Buffer.concat(chunks), { status, headers });
  } finally {
    cancel();
  }
}
