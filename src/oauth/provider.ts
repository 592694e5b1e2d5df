import { addedQuery } from '../domain/added-query.ts';
import { authorizationParams, type OAuth, tokenParams } from '../domain/config/oauth.ts';
import { holdsOurCredential, holdsPlainCredential } from '../domain/credentials/own-credentials.ts';
import { isReadAs, withoutOwned } from '../domain/http/parameter-names.ts';
import { parseDotPath } from '../domain/json/dot-path.ts';
import { valueAt } from '../domain/json/value-at.ts';
import { OAuthError, OutboundError } from '../errors.ts';
import type { Answer, HttpClient } from '../outbound/http-client.ts';
import { authenticateClient } from './client-auth.ts';
import { challengeOf } from './credentials.ts';
import { shownCode } from './login/error-codes.ts';
import type { Provider, ProviderTokens } from './login-server.ts';
import { checkTokenType, incomplete, isToken, readFields, spanOf, textBesideToken } from './token-answer.ts';

export type ProviderOptions = {
  oauth: OAuth;
  clientSecret: string;
  workspaceId: string;
  redirectUri: string;
  /** Hosts that the provider's token will be sent to. */
  audience: readonly string[];
  userAgent: string;
  http: HttpClient;
  now: () => number;
};

const timeoutMs = 10_000;
const limitBytes = 256 * 1024;
const formHeaders = ['Content-Type', 'application/x-www-form-urlencoded', 'Accept', 'application/json'];

/** The OAuth provider of a hosted server (spec 2.3, 4.4). */
export function hostedProvider(options: ProviderOptions): Provider {
  const { oauth } = options;
  const request = async (form: Record<string, string>): Promise<ProviderTokens> => {
    const answer = await post(options, new URLSearchParams({ ...oauth.token_params, ...form }));
    const secrets = [options.clientSecret, form.code, form.code_verifier, form.refresh_token];
    return readTokens(answer, {
      oauth,
      secrets: secrets.filter((secret) => secret !== undefined),
      isRefresh: form.refresh_token !== undefined,
      now: options.now(),
    });
  };
  return {
    host: new URL(oauth.authorization_url).host,
    audience: options.audience,
    shownCode: (error) => shownCode(error, [options.clientSecret]),
    async authorizationUrl(request) {
      return authorizationUrl(oauth, options.redirectUri, request);
    },
    async exchange({ code, verifier }) {
      const tokens = await request({
        grant_type: 'authorization_code',
        code,
        redirect_uri: options.redirectUri,
        ...(oauth.pkce !== false && { code_verifier: verifier }),
      });
      return { tokens, userId: undefined, workspaceId: options.workspaceId };
    },
    refresh: (refreshToken) => request({ grant_type: 'refresh_token', refresh_token: refreshToken }),
  };
}

function authorizationUrl(
  oauth: OAuth,
  redirectUri: string,
  { state, verifier, scope }: { state: string; verifier: string; scope: string },
): URL {
  const url = new URL(oauth.authorization_url);
  // Configurations stored by older versions may still hold parameters that only we may set.
  const query = withoutOwned(url.search.slice(1), authorizationParams);
  const extra = Object.entries(oauth.extra_params ?? {}).filter(([name]) => !isReadAs(name, authorizationParams));
  const pkce = { code_challenge: challengeOf(verifier), code_challenge_method: 'S256' };
  const own = {
    response_type: 'code',
    client_id: oauth.client_id,
    redirect_uri: redirectUri,
    ...(scope !== '' && { scope }),
    state,
    ...(oauth.pkce !== false && pkce),
  };
  url.search = addedQuery(query, [...extra, ...Object.entries(own)]);
  return url;
}

/** One POST without a retry: a code can be used only once. */
async function post(options: ProviderOptions, form: URLSearchParams): Promise<Answer> {
  const url = new URL(options.oauth.token_url);
  url.search = withoutOwned(url.search.slice(1), tokenParams);
  const { oauth, clientSecret } = options;
  const client = { clientId: oauth.client_id, clientSecret, clientAuth: oauth.client_auth ?? 'body' };
  try {
    const credentials = authenticateClient(client, form);
    return await options.http.send({
      workspaceId: options.workspaceId,
      origin: url.origin,
      // A connection of its own: an answer with tokens must not arrive on a connection that another caller used.
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: 'POST',
      headers: [...formHeaders, ...credentials, 'User-Agent', options.userAgent],
      body: form.toString(),
      timeoutMs,
      limitBytes,
    });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // A refresh token in the form of ours can never be sent, so the login is over and not to be tried again.
    const isOver = holdsPlainCredential(form.get('refresh_token') ?? '');
    if (error.reason === 'own_credential')
      throw new OAuthError(
        isOver ? 'invalid_grant' : 'server_error',
        `the token endpoint of the provider was not asked: ${error.message}`,
      );
    throw new OAuthError(
      'temporarily_unavailable',
      'the token endpoint of the provider could not be reached',
      error.message,
    );
  }
}

/**
 * Reads JSON, or the form encoding that some providers use. Some providers answer errors with status 200. Passthrough
 * requires all three fields, because the agent gets them (spec 4.4). Otherwise a missing type means bearer.
 */
function readTokens(answer: Answer, { oauth, secrets, isRefresh, now }: Reading): ProviderTokens {
  const whole = readFields(answer);
  if (whole.error !== undefined && whole.error !== null) throw refusal(answer, whole.error, { oauth, secrets });
  if (answer.status < 200 || answer.status > 299) throw refusal(answer, undefined, { oauth, secrets });
  const fields = fieldsAt(whole, oauth.token_path, isRefresh);
  const { access_token: accessToken, token_type: tokenType } = fields;
  if (!isToken(accessToken)) throw incomplete('access_token');
  const expiresInMs = spanOf(fields.expires_in);
  const isPassthrough = oauth.token_mode === 'passthrough';
  // The gateway would refuse such a token, and the agent would log in again and again. One that callers do not present is
  // refused only when a request with it is sent.
  if (isPassthrough ? holdsOurCredential(accessToken) : holdsPlainCredential(accessToken)) throw lookalike();
  if (isPassthrough) {
    if (typeof tokenType !== 'string' || tokenType === '') throw incomplete('token_type');
    if (expiresInMs === undefined) throw incomplete('expires_in');
  }
  checkTokenType(tokenType);
  return {
    accessToken,
    refreshToken: textBesideToken(fields, 'refresh_token') || undefined,
    expiresAt: expiresInMs === undefined ? undefined : now + expiresInMs,
    scope: textBesideToken(fields, 'scope'),
  };
}

type Asked = { oauth: OAuth; secrets: readonly string[] };
type Reading = Asked & { isRefresh: boolean; now: number };

/**
 * The fields beside the token at a path of an answer: of the object there, or of the object that holds the token there. A
 * refresh may answer without the path, because its refresh token belongs to one access token (Slack).
 */
function fieldsAt(whole: { [name: string]: unknown }, path: string | undefined, isRefresh: boolean) {
  if (path === undefined) return whole;
  const keys = parseDotPath(path);
  const found = valueAt(whole, keys);
  if (typeof found === 'string') return { ...(valueAt(whole, keys.slice(0, -1)) as object), access_token: found };
  if (typeof found === 'object' && found !== null) return found as { [name: string]: unknown };
  if (isRefresh) return whole;
  throw incomplete(path);
}

function lookalike(): OAuthError {
  return new OAuthError(
    'server_error',
    'the token that the provider gave has the form of a credential of this service, so it cannot be passed on',
  );
}

/** Errors that do not end the login: it may work again once the provider or its settings do. */
const passing = new Set([
  'temporarily_unavailable',
  'server_error',
  'slow_down',
  'invalid_client',
  'unauthorized_client',
]);

const aboutClient = new Set(['invalid_client', 'unauthorized_client']);

/** Codes that our own sentence already states. */
const statedCodes = new Set([...aboutClient, 'temporarily_unavailable']);

/** Clients see only the provider's error code. Providers have many codes for a login that has ended. */
function refusal({ status }: Answer, error: unknown, { oauth, secrets }: Asked): OAuthError {
  const code = typeof error === 'string' ? error : '';
  const shown = shownCode(code, secrets);
  const suffix = shown === undefined || statedCodes.has(shown) ? '' : ` and says ${shown}`;
  const detail = `status ${status} ${shown ?? 'of an unusual form'}`;
  if (status >= 500 || status === 429 || status === 408 || code === 'temporarily_unavailable') {
    return new OAuthError(
      'temporarily_unavailable',
      `the token endpoint of the provider is not available${suffix}`,
      detail,
    );
  }
  const isOver = code === '' ? status === 400 || status === 401 : !passing.has(code);
  if (isOver) return new OAuthError('invalid_grant', `the provider does not accept this login${suffix}`, detail);
  const what = aboutClient.has(code) ? 'the client id or the client secret of this server' : 'the request';
  // Both ways are common, and an endpoint that wants the other one says only this.
  const advice =
    code === 'invalid_client' && oauth.client_auth === undefined ? '; it may want "client_auth": "basic" in oauth' : '';
  const message = `the token endpoint refused ${what} with status ${status}${suffix}${advice}`;
  return new OAuthError('server_error', message, detail);
}
