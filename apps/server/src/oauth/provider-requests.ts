import { createHash } from 'node:crypto';
import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { OAuthError, OutboundError } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { getPlaceholderNames, interpolatePlaceholders } from '@toolhost/tool-config/http/placeholders';
import { addQueryParameters } from '@toolhost/tool-config/http/read-url';
import type { OAuth } from '@toolhost/tool-config/oauth';
import { isDeclaredOrigin } from '@toolhost/tool-config/oauth-values';
import { getTokenOrigin } from './login-values.ts';
import { durations, type FieldValues, type Provider, type ProviderTokens } from './oauth-deps.ts';
import type { ProviderOptions } from './provider.ts';
import { callTokenEndpoint, callUserinfo } from './token-endpoint.ts';

/** Matches the scheme and the authority of a provider URL, as they are written. */
const authorityPattern = /^https?:\/\/([^/?#]*)/i;

/** Returns the host of a provider URL, which may contain `{{NAME}}`. */
export function getWrittenHost(url: string): string {
  const [, host = ''] = authorityPattern.exec(url) ?? [];
  return getPlaceholderNames(host).length > 0 ? host : new URL(url).host;
}

export function buildAuthorizationUrl(
  oauth: OAuth,
  redirectUri: string,
  { state, verifier, scope, fields }: Parameters<Provider['buildAuthorizationUrl']>[0],
): URL {
  const url = new URL(renderUrl(oauth.authorization_url, fields));
  const pkce = { code_challenge: toChallenge(verifier), code_challenge_method: 'S256' };
  const ownParameters = {
    response_type: 'code',
    ...(oauth.response_mode === 'form_post' && { response_mode: 'form_post' }),
    client_id: oauth.client_id,
    redirect_uri: oauth.redirect_name ?? redirectUri,
    ...(scope !== '' && { scope }),
    state,
    ...(oauth.pkce !== false && pkce),
  };
  url.search = addQueryParameters(url.search.slice(1), Object.entries({ ...oauth.extra_params, ...ownParameters }));
  return url;
}

/** Returns the PKCE challenge of a verifier (RFC 7636, 4.2, S256). */
export function toChallenge(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** Matches one label of a host name. */
const labelPattern = /^(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Fills in the values that a person entered. In a host, a value is one label. @throws OAuthError server_error */
function renderUrl(template: string, fields: FieldValues): string {
  const [authority = ''] = authorityPattern.exec(template) ?? [];
  const getField = (name: string) => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined) throw new OAuthError('server_error', `the login has no value for ${name}`);
    return value;
  };
  const getLabel = (name: string) => {
    const value = getField(name);
    if (!labelPattern.test(value))
      throw new OAuthError('server_error', `${name} is not part of a host name: letters, digits, and hyphens`);
    return value.toLowerCase();
  };
  const rest = interpolatePlaceholders(template.slice(authority.length), (name) => encodeURIComponent(getField(name)));
  return interpolatePlaceholders(authority, getLabel) + rest;
}

/** A token endpoint. `tokenOrigin` is stored for refreshes if the login determined it. */
export type TokenEndpoint = { url: string; tokenOrigin: string | undefined };

/** Returns the token endpoint of a login. @throws OAuthError server_error */
export function getLoginEndpoint(oauth: OAuth, callback: URLSearchParams, fields: FieldValues): TokenEndpoint {
  const origin = getTokenOrigin(oauth, callback);
  if (origin !== undefined) return { url: origin + oauth.token_url_from?.path, tokenOrigin: origin };
  const url = renderUrl(oauth.token_url, fields);
  const isFixed = getPlaceholderNames(oauth.token_url).length === 0;
  return { url, tokenOrigin: isFixed ? undefined : new URL(url).origin };
}

/** Returns the URL that refreshes tokens. @throws OAuthError invalid_grant if its host is no longer allowed */
export function getRefreshUrl(oauth: OAuth, { tokenOrigin }: ProviderTokens): string {
  const { token_url_from: source, token_url, refresh_url = token_url } = oauth;
  const [authority = ''] = authorityPattern.exec(refresh_url) ?? [];
  const isFixed = getPlaceholderNames(authority).length === 0;
  if (!source && isFixed) return refresh_url;
  const isAllowed = source
    ? isDeclaredOrigin(tokenOrigin ?? '', source.hosts)
    : tokenOrigin?.endsWith(authority.slice(authority.lastIndexOf('}}') + 2));
  if (tokenOrigin === undefined || !isAllowed)
    throw new OAuthError('invalid_grant', 'the login belongs to a token endpoint that the server no longer uses');
  return tokenOrigin + (source ? source.path : refresh_url.slice(authority.length));
}

/** Sends a token request. @throws OAuthError if there is no response */
export async function sendTokenRequest(
  { oauth, clientSecret, workspaceId, ...deps }: ProviderOptions,
  tokenUrl: string,
  form: URLSearchParams,
): Promise<UpstreamResponse> {
  const client = { clientId: oauth.client_id, clientSecret, clientAuth: oauth.client_auth ?? 'body' };
  try {
    return await callTokenEndpoint(
      {
        workspaceId,
        tokenUrl,
        client,
        form,
        encoding: oauth.token_request,
        fieldNames: oauth.token_fields,
        timeoutMs: durations.providerTimeout,
      },
      deps,
    );
  } catch (error) {
    // A refresh token in the format of our own can never be sent, so the login is over and must not be retried.
    const isEnded = containsPlainCredential(form.get('refresh_token') ?? '');
    throw toUnreachableError(error, 'token endpoint', isEnded ? 'invalid_grant' : 'server_error');
  }
}

function toUnreachableError(error: unknown, endpoint: string, code: 'invalid_grant' | 'server_error'): unknown {
  if (!(error instanceof OutboundError)) return error;
  if (error.reason === 'own_credential')
    return new OAuthError(code, `the provider's ${endpoint} was not called: ${error.message}`);
  return new OAuthError('temporarily_unavailable', `the provider's ${endpoint} could not be reached`, error.message);
}

/**
 * Reads `userinfo_url` with a new token, which is sent with the scheme that the API expects.
 * @throws OAuthError if there is no JSON response
 */
export async function readUserinfo(
  { oauth, workspaceId, ...deps }: ProviderOptions,
  url: string,
  accessToken: string,
): Promise<unknown> {
  const authorization = `${oauth.token_prefix ?? 'Bearer'} ${accessToken}`.trimStart();
  const request = { workspaceId, url, authorization, timeoutMs: durations.providerTimeout };
  const response = await callUserinfo(request, deps).catch((error: unknown) => {
    throw toUnreachableError(error, 'userinfo_url', 'server_error');
  });
  const { status } = response;
  if (status < 200 || status > 299) {
    const code = status >= 500 || status === 429 ? 'temporarily_unavailable' : 'server_error';
    throw new OAuthError(code, `the provider's userinfo_url responded with status ${status}`);
  }
  try {
    return parseJson(response.body.toString('utf8'));
  } catch {
    throw new OAuthError('server_error', "the provider's userinfo_url returned a response that is not JSON");
  }
}
