import { AppError, getErrorMessage } from '@toolhost/errors/errors';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import type { Configuration, CustomFetch } from 'openid-client';
import { isSingleAddress } from '../email-address.ts';
import { toSingleLine } from '../http/page.ts';

/** A person as the identity provider knows them. */
export type Identity = {
  issuer: string;
  subject: string;
  /**
   * Email address that the provider has verified. Invitations are bound to addresses, and notifications are sent there.
   */
  email: string | undefined;
  name: string | undefined;
};

/** Values that bind the return from the provider to this sign-in. All are secrets of the browser. */
export type SignIn = { state: string; verifier: string; nonce: string };

/** The external identity provider (OpenID Connect) of the dashboard and the management server. */
export type IdentityProvider = {
  host: string;
  authorizationUrl(signIn: SignIn, redirectUri: string): Promise<URL>;
  /**
   * Validates the authorization response: state, issuer, nonce, signature, audience, expiry.
   * @throws AppError unauthenticated, unavailable
   */
  identify(returned: URL, signIn: SignIn): Promise<Identity>;
};

export type IdentityOptions = { issuer: string; clientId: string; clientSecret: string };

/** Finds the settings of the identity provider at the first sign-in. `host` is its name for people. */
export type IdentitySource = { find: () => Promise<IdentityOptions>; host: string };

/** Maximum length of a subject (OpenID Connect Core, 2). */
const maxSubjectLength = 255;

/** Loads the library at the first sign-in, because many processes never need it. */
const loadLibrary = () => import('openid-client');

/** Creates the identity provider. Discovery waits for the first sign-in, so that startup does not need the provider. */
export function createIdentityProvider(findOptions: () => Promise<IdentityOptions>, host: string): IdentityProvider {
  let discovered: Promise<Configuration> | undefined;

  function getConfiguration(): Promise<Configuration> {
    discovered ??= discover(findOptions).catch((error: unknown) => {
      discovered = undefined;
      throw findUnavailableError(error) ?? createUnavailableError(error);
    });
    return discovered;
  }

  return {
    host,
    async authorizationUrl({ state, nonce, verifier }, redirectUri) {
      const oidc = await loadLibrary();
      return oidc.buildAuthorizationUrl(await getConfiguration(), {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
    },
    async identify(returned, { state, nonce, verifier }) {
      const oidc = await loadLibrary();
      const config = await getConfiguration();
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const tokens = await oidc.authorizationCodeGrant(config, returned, checks).catch((error: unknown) => {
        if (error instanceof oidc.AuthorizationResponseError && providerErrors.includes(error.error))
          throw createUnavailableError(error);
        throw (
          findUnavailableError(error) ??
          new AppError('unauthenticated', 'the sign-in failed; start again', { cause: error })
        );
      });
      const claims = tokens.claims();
      // A shortened or cleaned subject could be that of another person.
      if (!claims || claims.sub === '' || claims.sub.length > maxSubjectLength || hasControlCharacters(claims.sub))
        throw new AppError(
          'unauthenticated',
          'the identity provider did not state who signed in; contact its administrator',
        );
      const { iss: issuer, sub: subject, email: address, email_verified: isVerified } = claims;
      const email =
        isVerified === true && typeof address === 'string' && isSingleAddress(address) ? address : undefined;
      const name = typeof claims.name === 'string' ? toSingleLine(claims.name).slice(0, 200) || undefined : undefined;
      return { issuer, subject, email, name };
    },
  };
}

function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

async function discover(findOptions: () => Promise<IdentityOptions>): Promise<Configuration> {
  const oidc = await loadLibrary();
  const { issuer, clientId, clientSecret } = await findOptions();
  const url = new URL(issuer);
  // By default, the library trusts the TLS of the token endpoint and does not verify the signature.
  const execute = [oidc.enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])];
  const options = { execute, [oidc.customFetch]: fetchFromProvider };
  return oidc.discovery(url, clientId, undefined, oidc.ClientSecretBasic(clientSecret), options);
}

/** Errors with which a login page reports that it is down (RFC 6749, 4.1.2.1), because a redirect has no status. */
const providerErrors = ['temporarily_unavailable', 'server_error'];

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
