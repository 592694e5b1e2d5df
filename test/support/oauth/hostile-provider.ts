import type { Json } from '../toolhost/toolhost.ts';
import { type Answer, type RecordedRequest, startRecordingUpstream } from '../upstreams/recording-upstream.ts';

/** Responds to a form that is posted to the token endpoint. */
export type TokenHandler = (form: URLSearchParams, request: RecordedRequest) => Answer | 'hold';

/** Returns the parameters of the login page's redirect, except `state`. */
export type LoginAnswer = (query: URLSearchParams) => Record<string, string>;

/**
 * An OAuth provider that logs every person in without a form and rotates its refresh tokens, until a test makes it
 * misbehave.
 */
export type HostileProvider = {
  readonly url: string;
  /** Ports of the login page and the token endpoint. */
  readonly ports: readonly number[];
  readonly clientSecret: string;
  /** The `oauth` of a server whose users log in here. */
  oauth(more?: Json): Json;
  /** Changes the login page from now on; without an argument, restores the honest one. */
  onLogin(answer?: LoginAnswer): void;
  /** Changes the token endpoint from now on; without an argument, restores the honest one. */
  onToken(handler?: TokenHandler): void;
  /** The honest response of the token endpoint. */
  honest(form: URLSearchParams): Answer;
  /** The queries of the login page since the last call, oldest first. */
  takeLogins(): URLSearchParams[];
  /** The requests to the token endpoint since the last call, oldest first. */
  takeTokens(): { form: URLSearchParams; request: RecordedRequest }[];
  /** Resolves with the nth request to the token endpoint since the last call. */
  waitForToken(nth?: number): Promise<RecordedRequest>;
  close(): Promise<void>;
};

const clientId = 'toolhost-at-the-provider';
const clientSecret = 'client-secret-at-the-provider';

export async function startHostileProvider(): Promise<HostileProvider> {
  const pages = await startRecordingUpstream();
  const endpoint = await startRecordingUpstream();
  let count = 0;
  let handler: TokenHandler = honest;
  let login: LoginAnswer = honestLogin;
  const codes = new Set<string>();
  const refreshTokens = new Set<string>();

  function honestLogin(): Record<string, string> {
    const code = `provider-code-${++count}`;
    codes.add(code);
    return { code };
  }

  /** Accepts each code and each refresh token once. */
  function honest(form: URLSearchParams): Answer {
    const isCode = form.get('grant_type') === 'authorization_code';
    const isGood = isCode
      ? codes.delete(form.get('code') ?? '')
      : refreshTokens.delete(form.get('refresh_token') ?? '');
    if (!isGood) return { status: 400, body: { error: 'invalid_grant' } };
    const number = ++count;
    refreshTokens.add(`provider-refresh-${number}`);
    const tokens = { access_token: `provider-access-${number}`, refresh_token: `provider-refresh-${number}` };
    return { body: { ...tokens, token_type: 'bearer', expires_in: 3600 } };
  }

  pages.on('GET /authorize', ({ url }) => {
    const query = new URL(url, pages.url).searchParams;
    const back = new URL(query.get('redirect_uri') ?? '');
    const answer = { ...login(query), state: query.get('state') ?? '' };
    for (const [name, value] of Object.entries(answer)) back.searchParams.set(name, value);
    return { status: 302, headers: { location: back.href } };
  });
  endpoint.on('POST /token', (request) => handler(new URLSearchParams(request.body.toString()), request));

  return {
    url: pages.url,
    ports: [pages.port, endpoint.port],
    clientSecret,
    oauth: (more = {}) => ({
      authorization_url: `${pages.url}/authorize`,
      token_url: `${endpoint.url}/token`,
      client_id: clientId,
      client_secret: clientSecret,
      scopes: ['read', 'write'],
      ...more,
    }),
    onLogin(answer = honestLogin) {
      login = answer;
    },
    onToken(next = honest) {
      handler = next;
    },
    honest,
    takeLogins: () => pages.take().map(({ url }) => new URL(url, pages.url).searchParams),
    takeTokens: () =>
      endpoint.take().map((request) => ({ form: new URLSearchParams(request.body.toString()), request })),
    waitForToken: endpoint.waitForRequest,
    async close() {
      await Promise.all([pages.close(), endpoint.close()]);
    },
  };
}
