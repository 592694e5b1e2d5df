import { AppError } from '@toolhost/errors/errors';
import { isSafeUrl } from '@toolhost/mcp-doctor/checks';
import { findIssuer, findResource, formatLoginError } from '@toolhost/mcp-doctor/login';
import { Unreachable, type WebClient, type WebResponse } from '@toolhost/mcp-doctor/web';

/** Tokens that a login returned. */
export type LoginTokens = { accessToken: string; refreshToken: string | undefined; scope: string | undefined };

/** Thrown if the authorization code or the refresh token is no longer valid, so that the user has to log in again. */
export class LoginExpiredError extends AppError {
  constructor(reason: string) {
    super('unauthenticated', reason);
  }
}

/** Posts a form to the token endpoint (RFC 6749, 4.1.3 and 6). @throws LoginExpiredError, AppError */
export async function requestTokens(
  web: WebClient,
  endpoint: string,
  form: { [field: string]: string },
): Promise<LoginTokens> {
  const response = await postForm(web, endpoint, form);
  const { status, json } = response;
  if (status === 400 && json?.error === 'invalid_grant') throw new LoginExpiredError('the login is no longer valid');
  if (status !== 200)
    throw new AppError(
      status >= 500 || status === 429 ? 'unavailable' : 'invalid',
      `${new URL(endpoint).origin} returned no tokens: ${status}${formatLoginError(json)}`,
    );
  const isToken = (value: unknown) => typeof value === 'string' && /^[\x21-\x7e]{1,16384}$/.test(value);
  if (!isToken(json?.access_token) || !/^bearer$/i.test(String(json?.token_type)))
    throw new AppError('unavailable', `${new URL(endpoint).origin} did not return a bearer token`);
  return {
    accessToken: String(json?.access_token),
    refreshToken: isToken(json?.refresh_token) ? String(json?.refresh_token) : undefined,
    scope: typeof json?.scope === 'string' ? json.scope : undefined,
  };
}

/** Revokes a login by one of its tokens (RFC 7009). @throws AppError if the service did not revoke it */
export async function revokeToken(
  web: WebClient,
  endpoint: string,
  { clientId, token }: { clientId: string; token: string },
): Promise<void> {
  const { status, json } = await postForm(web, endpoint, { client_id: clientId, token });
  if (status !== 200)
    throw new AppError(
      'unavailable',
      `${new URL(endpoint).origin} did not end the login: ${status}${formatLoginError(json)}`,
    );
}

function postForm(web: WebClient, endpoint: string, form: { [field: string]: string }): Promise<WebResponse> {
  return fetchOrFail(web, endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  });
}

/** Endpoints and metadata for logging in at a protected resource. */
export type LoginTarget = {
  /** URL of the protected resource that the tokens are for. */
  resource: string;
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint: string;
  revocationEndpoint: string | undefined;
  /** Scopes that the resource advertises. */
  scopes: readonly string[];
  /** True if the authorization response must name the issuer (RFC 9207). */
  hasIssuerParameter: boolean;
};

/**
 * Reads the metadata of a resource that rejected a request without a credential (RFC 9728, RFC 8414).
 * @throws AppError if the metadata is missing, names another resource or issuer, or does not let clients register
 */
export async function discoverLogin(
  web: WebClient,
  resource: string,
  unauthorizedResponse: WebResponse,
): Promise<LoginTarget> {
  const resourceSearch = await findResource(web, resource, unauthorizedResponse);
  const resourceMetadata = resourceSearch.resource;
  if (resourceSearch.verdict.status === 'problem' || !resourceMetadata)
    throw createLoginUnavailableError(resource, resourceSearch.verdict.detail);
  const { verdict, issuer, metadata } = await findIssuer(web, resourceMetadata);
  if (verdict.status === 'problem' || issuer === undefined || !metadata)
    throw createLoginUnavailableError(resource, verdict.detail);
  const registrationEndpoint = toSafeUrl(metadata.registration_endpoint);
  if (registrationEndpoint === undefined)
    throw createLoginUnavailableError(resource, 'it does not let clients register (no registration_endpoint)');
  const revocationEndpoint = toSafeUrl(metadata.revocation_endpoint);
  const scopes = Array.isArray(resourceMetadata.scopes_supported) ? resourceMetadata.scopes_supported : [];
  return {
    resource,
    issuer,
    // `findIssuer` has validated both endpoints.
    authorizationEndpoint: String(metadata.authorization_endpoint),
    tokenEndpoint: String(metadata.token_endpoint),
    registrationEndpoint,
    revocationEndpoint,
    scopes: scopes.filter((scope) => typeof scope === 'string'),
    hasIssuerParameter: metadata.authorization_response_iss_parameter_supported === true,
  };
}

function toSafeUrl(value: unknown): string | undefined {
  return typeof value === 'string' && isSafeUrl(value) ? value : undefined;
}

function createLoginUnavailableError(resource: string, reason: string): AppError {
  return new AppError('invalid', `a login at ${resource} is not possible: ${reason}`);
}

/** Sends a request, and converts a connection failure to an error for users. @throws AppError unavailable */
export async function fetchOrFail(web: WebClient, ...request: Parameters<WebClient['request']>): Promise<WebResponse> {
  try {
    return await web.request(...request);
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    throw new AppError('unavailable', `${new URL(request[0]).origin} cannot be reached: ${error.message}`);
  }
}
