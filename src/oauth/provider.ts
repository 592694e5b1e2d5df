import type { OAuth } from '../domain/oauth.ts';
import { OAuthError, OutboundError } from '../errors.ts';
import type { Answer, OutboundDoor } from '../outbound/door.ts';
import { challengeOf } from './credentials.ts';
import type { Provider, ProviderTokens } from './login-server.ts';

export type ProviderOptions = {
  oauth: OAuth;
  clientSecret: string;
  workspaceId: string;
  redirectUri: string;
  /** Hosts that the provider's token will be sent to. */
  audience: readonly string[];
  door: OutboundDoor;
  now: () => number;
};

const timeoutMs = 10_000;
const limitBytes = 256 * 1024;

/** The OAuth provider of a hosted server (spec 2.3, 4.4). */
export function hostedProvider(options: ProviderOptions): Provider {
  const { oauth } = options;
  const request = async (form: Record<string, string>): Promise<ProviderTokens> => {
    const client = { client_id: oauth.client_id, client_secret: options.clientSecret };
    const answer = await post(options, new URLSearchParams({ ...form, ...client }));
    return readTokens(answer, options.now());
  };
  return {
    host: new URL(oauth.authorization_url).host,
    audience: options.audience,
    async authorizationUrl({ state, verifier }) {
      return authorizationUrl(oauth, options.redirectUri, state, verifier);
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

function authorizationUrl(oauth: OAuth, redirectUri: string, state: string, verifier: string): URL {
  const url = new URL(oauth.authorization_url);
  const params = url.searchParams;
  for (const [name, value] of Object.entries(oauth.extra_params ?? {})) params.set(name, value);
  params.set('response_type', 'code');
  params.set('client_id', oauth.client_id);
  params.set('redirect_uri', redirectUri);
  if (oauth.scopes.length > 0) params.set('scope', oauth.scopes.join(' '));
  params.set('state', state);
  if (oauth.pkce !== false) {
    params.set('code_challenge', challengeOf(verifier));
    params.set('code_challenge_method', 'S256');
  }
  return url;
}

/** One POST, never repeated: a code is good once. */
async function post(options: ProviderOptions, form: URLSearchParams): Promise<Answer> {
  const url = new URL(options.oauth.token_url);
  try {
    return await options.door.send({
      workspaceId: options.workspaceId,
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers: ['Content-Type', 'application/x-www-form-urlencoded', 'Accept', 'application/json'],
      body: form.toString(),
      timeoutMs,
      limitBytes,
    });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    throw new OAuthError(
      'temporarily_unavailable',
      'the token endpoint of the provider could not be reached',
      error.message,
    );
  }
}

/** JSON, or the form encoding that some providers use; some say 200 and mean an error. */
function readTokens(answer: Answer, now: number): ProviderTokens {
  const fields = readFields(answer);
  if (typeof fields.error === 'string') throw refusal(fields.error, `status ${answer.status}`);
  if (answer.status < 200 || answer.status > 299) throw refusal('', `status ${answer.status}`);
  const { access_token: accessToken, refresh_token: refreshToken, scope } = fields;
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken)) {
    throw new OAuthError('server_error', 'the token endpoint answered without access_token');
  }
  const seconds = Number(fields.expires_in);
  return {
    accessToken,
    refreshToken: typeof refreshToken === 'string' && refreshToken !== '' ? refreshToken : undefined,
    expiresAt: Number.isFinite(seconds) && seconds > 0 ? now + seconds * 1000 : undefined,
    scope: typeof scope === 'string' ? scope : undefined,
  };
}

function readFields(answer: Answer): { [name: string]: unknown } {
  const text = answer.body.toString('utf8');
  if (/^application\/x-www-form-urlencoded\b|^text\/plain\b/i.test(String(answer.headers['content-type']))) {
    const form = Object.fromEntries(new URLSearchParams(text));
    if ('access_token' in form || 'error' in form) return form;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as { [name: string]: unknown };
  } catch {
    // Said below, whatever it was instead.
  }
  throw new OAuthError(
    'server_error',
    'the token endpoint answered with something that is neither JSON nor a form',
    `status ${answer.status}`,
  );
}

/** The provider's own words stay out of what clients see. */
function refusal(error: string, detail: string): OAuthError {
  const isOver = error === 'invalid_grant';
  return new OAuthError(
    isOver ? 'invalid_grant' : 'server_error',
    isOver ? 'the provider no longer accepts this login' : 'the token endpoint refused the request',
    `${detail} ${error.slice(0, 100)}`,
  );
}
