import type { Json } from '../toolhost/toolhost.ts';
import { type CannedResponse, type RecordedRequest, startRecordingUpstream } from '../upstreams/recording-upstream.ts';

/** Responds to a form that is posted to the token endpoint. */
export type TokenHandler = (form: URLSearchParams, request: RecordedRequest) => CannedResponse | 'hold';

/** Returns the parameters of the login page's redirect, except `state`. */
export type LoginResponse = (query: URLSearchParams) => Record<string, string>;

/**
 * An OAuth provider that logs every person in without a form and rotates its refresh tokens, until a test makes it
 * misbehave.
 */
export type AdversarialProvider = {
  readonly url: string;
  /** Ports of the login page and the token endpoint. */
  readonly ports: readonly number[];
  readonly clientSecret: string;
  /** The `oauth` of a server whose users log in here. */
  oauth(more?: Json): Json;
  /** Changes the login page from now on; without an argument, restores the honest one. */
  onLogin(handler?: LoginResponse): void;
  /** Changes the token endpoint from now on; without an argument, restores the honest one. */
  onToken(handler?: TokenHandler): void;
  /** The honest response of the token endpoint. */
  createTokenResponse(form: URLSearchParams): CannedResponse;
  /** The queries of the login page since the last call, oldest first. */
  takeLoginRequests(): URLSearchParams[];
  /** The requests to the token endpoint since the last call, oldest first. */
  takeTokenRequests(): { form: URLSearchParams; request: RecordedRequest }[];
  /** Resolves with the nth request to the token endpoint since the last call. */
  waitForTokenRequest(nth?: number): Promise<RecordedRequest>;
  close(): Promise<void>;
};

const clientId = 'toolhost-at-the-provider';
const clientSecret = 'client-secret-at-the-provider';

export async function startAdversarialProvider(): Promise<AdversarialProvider> {
  const loginPages = await startRecordingUpstream();
  const tokenEndpoint = await startRecordingUpstream();
  let count = 0;
  let handler: TokenHandler = createTokenResponse;
  let login: LoginResponse = createLoginResponse;
  const codes = new Set<string>();
  const refreshTokens = new Set<string>();

  function createLoginResponse(): Record<string, string> {
    const code = `provider-code-${++count}`;
    codes.add(code);
    return { code };
  }

  /** Accepts each code and each refresh token once. */
  function createTokenResponse(form: URLSearchParams): CannedResponse {
    const isCode = form.get('grant_type') === 'authorization_code';
    const isValid = isCode
      ? codes.delete(form.get('code') ?? '')
      : refreshTokens.delete(form.get('refresh_token') ?? '');
    if (!isValid) return { status: 400, body: { error: 'invalid_grant' } };
    const number = ++count;
    refreshTokens.add(`provider-refresh-${number}`);
    const tokens = { access_token: `provider-access-${number}`, refresh_token: `provider-refresh-${number}` };
    return { body: { ...tokens, token_type: 'bearer', expires_in: 3600 } };
  }

  loginPages.on('GET /authorize', ({ url }) => {
    const query = new URL(url, loginPages.url).searchParams;
    const redirect = new URL(query.get('redirect_uri') ?? '');
    const params = { ...login(query), state: query.get('state') ?? '' };
    for (const [name, value] of Object.entries(params)) redirect.searchParams.set(name, value);
    return { status: 302, headers: { location: redirect.href } };
  });
  tokenEndpoint.on('POST /token', (request) => handler(new URLSearchParams(request.body.toString()), request));

  return {
    url: loginPages.url,
    ports: [loginPages.port, tokenEndpoint.port],
    clientSecret,
    oauth: (more = {}) => ({
      authorization_url: `${loginPages.url}/authorize`,
      token_url: `${tokenEndpoint.url}/token`,
      client_id: clientId,
      client_secret: clientSecret,
      scopes: ['read', 'write'],
      ...more,
    }),
    onLogin(newHandler = createLoginResponse) {
      login = newHandler;
    },
    onToken(newHandler = createTokenResponse) {
      handler = newHandler;
    },
    createTokenResponse,
    takeLoginRequests: () => loginPages.take().map(({ url }) => new URL(url, loginPages.url).searchParams),
    takeTokenRequests: () =>
      tokenEndpoint.take().map((request) => ({ form: new URLSearchParams(request.body.toString()), request })),
    waitForTokenRequest: tokenEndpoint.waitForRequest,
    async close() {
      await Promise.all([loginPages.close(), tokenEndpoint.close()]);
    },
  };
}
