import { createHash } from 'node:crypto';
import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { OAuthError, OutboundError, ToolFailure } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { parseOriginTemplate } from '@toolhost/tool-config/http/origin-template';
import { addQueryParameters } from '@toolhost/tool-config/http/read-url';
import { renderUrlValues } from '@toolhost/tool-config/http/render-origin';
import { isDeclaredOrigin } from '@toolhost/tool-config/oauth-values';
import { getTokenOrigin } from './login-values.ts';
import { durations, type FieldValues, type Provider, type ProviderTokens } from './oauth-deps.ts';
import type { ProviderOptions } from './provider.ts';
import { callTokenEndpoint, callUserinfo } from './token-endpoint.ts';

/** Returns the host of a provider URL, as the configuration writes it. */
export function getWrittenHost(url: string): string {
  return parseOriginTemplate(url)?.host ?? new URL(url).host;
}

export function buildAuthorizationUrl(
  { oauth, redirectUri, urlProblem }: ProviderOptions,
  { state, verifier, scope, fields }: Parameters<Provider['buildAuthorizationUrl']>[0],
): URL {
  const url = new URL(renderUrl(oauth.authorization_url, fields, urlProblem));
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

/**
 * Fills in the values that a person entered. Rejects a host that a configuration may not name, such as this service
 * itself. @throws OAuthError server_error, without the values
 */
function renderUrl(template: string, fields: FieldValues, urlProblem: ProviderOptions['urlProblem']): string {
  if (!template.includes('{{')) return template;
  let url: string;
  try {
    url = renderUrlValues(template, (name) => {
      const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (value === undefined) throw new OAuthError('server_error', `the login has no value for ${name}`);
      return value;
    });
  } catch (error) {
    if (error instanceof ToolFailure) throw new OAuthError('server_error', error.message);
    throw error;
  }
  if (!parseOriginTemplate(template) || urlProblem(new URL(url)) === undefined) return url;
  const message = 'this service may not call the host that the value of the person names; log in again to change it';
  throw new OAuthError('server_error', message);
}

/** A token endpoint. `tokenOrigin` is stored for refreshes if the login determined it. */
export type TokenEndpoint = { url: string; tokenOrigin: string | undefined };

/** Returns the token endpoint of a login. @throws OAuthError server_error */
export function getLoginEndpoint(
  { oauth, urlProblem }: ProviderOptions,
  callback: URLSearchParams,
  fields: FieldValues,
): TokenEndpoint {
  const { token_url_from: source } = oauth;
  if (source) {
    const tokenOrigin = getTokenOrigin(source, callback);
    return { url: tokenOrigin + source.path, tokenOrigin };
  }
  return { url: renderUrl(oauth.token_url, fields, urlProblem), tokenOrigin: undefined };
}

/** Returns the URL that refreshes tokens. @throws OAuthError invalid_grant if its host is no longer allowed */
export function getRefreshUrl(
  { oauth, urlProblem }: ProviderOptions,
  { tokenOrigin, values = {} }: ProviderTokens,
): string {
  const { token_url_from: source, token_url, refresh_url = token_url } = oauth;
  if (!source) return renderUrl(refresh_url, values, urlProblem);
  if (tokenOrigin !== undefined && isDeclaredOrigin(tokenOrigin, source.hosts)) return tokenOrigin + source.path;
  throw new OAuthError('invalid_grant', 'the login belongs to a token endpoint that the server no longer uses');
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
