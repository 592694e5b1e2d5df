import assert from 'node:assert/strict';
import { type Browser, type Changes, createBrowser, next, type Page } from '../browser/browser.ts';
import {
  type Json,
  type Reply,
  type StartOptions,
  startToolhost,
  type TestToolhost,
  type ToolReply,
} from '../toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type HostileProvider, startHostileProvider } from './hostile-provider.ts';
import {
  type Authorization,
  type ClientOptions,
  type OAuthClient,
  registerClient,
  type Tokens,
  tokensOf,
} from './oauth-client.ts';

/** The parameters of the redirect to the client. */
export type Answer = Authorization & { params: URLSearchParams; code: string };

/** The service with an adjustable clock, a provider, an upstream, and servers whose users log in at the provider. */
export type LoginWorld = {
  toolhost: TestToolhost;
  provider: HostileProvider;
  upstream: RecordingUpstream;
  /** Advances the clock of the service. */
  wait(ms: number): void;
  /** Current time of the service, epoch ms. */
  now(): number;
  /** Creates a server with a login and one tool, `run`. Returns its slug. */
  serve(more?: Json, oauth?: Json): Promise<string>;
  /** Changes fields of a server. */
  change(slug: string, fields: Json): Promise<void>;
  issuer(slug: string): string;
  browser(): Browser;
  client(slug: string, options?: Partial<ClientOptions>): Promise<OAuthClient>;
  /** Allows the client and logs in. Returns the page that the provider redirects to. */
  returned(authorization: Authorization, browser?: Browser): Promise<Page>;
  /** Completes a login, which must succeed. */
  logIn(client: OAuthClient, browser?: Browser, changes?: Changes): Promise<Answer>;
  tokens(client: OAuthClient, browser?: Browser): Promise<Tokens>;
  /** Makes the upstream reject the first token that it sees and accept every other. */
  refuseFirstToken(): void;
  /** `tools/list` with a token. */
  list(slug: string, token: string | undefined): Promise<Reply>;
  call(slug: string, token: string): Promise<ToolReply>;
  stop(): Promise<void>;
};

/** The `run` tool of a server. */
export function toolAt(url: string): Json {
  return { name: 'run', description: 'Runs the one request of this test.', method: 'GET', url };
}

/** Creates a function that returns a new client address on every call. */
function addresses(): () => string {
  let count = 0;
  return () => `198.51.${100 + Math.floor(++count / 250)}.${(count % 250) + 1}`;
}

export async function startLoginWorld(options: StartOptions = {}): Promise<LoginWorld> {
  const [provider, upstream] = await Promise.all([startHostileProvider(), startRecordingUpstream()]);
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const toolhost = await startToolhost({
    ...options,
    env: { TRUSTED_PROXIES: '1', ...options.env },
    egress: [...provider.ports, upstream.port, ...(options.egress ?? [])],
    surroundings: { now, ...options.surroundings },
  });
  const nextAddress = addresses();
  let servers = 0;
  const issuer = (slug: string) => `${toolhost.url}/mcp/${slug}`;
  const browser = () => createBrowser(nextAddress());

  const returned: LoginWorld['returned'] = async ({ url }, person = browser()) => {
    const consent = await person.get(url);
    const departure = await person.press(consent, 'Allow and log in');
    const login = await person.get(next(departure));
    return person.get(next(login));
  };
  const logIn: LoginWorld['logIn'] = async (client, person, changes) => {
    const authorization = client.authorization(changes);
    const { href, searchParams: params } = next(await returned(authorization, person));
    assert.ok(href.startsWith(client.redirectUri), href);
    const code = params.get('code') ?? assert.fail(href);
    return { ...authorization, params, code };
  };

  return {
    toolhost,
    provider,
    upstream,
    now,
    wait(ms) {
      aheadMs += ms;
    },
    async serve(more = {}, oauth = {}) {
      const slug = `login-${++servers}`;
      const authentication = { type: 'Bearer' };
      await toolhost.createServer({
        name: `Things ${servers}`,
        slug,
        authentication,
        oauth: provider.oauth(oauth),
        tools: [toolAt(`${upstream.url}/things`)],
        ...more,
      });
      return slug;
    },
    async change(slug, fields) {
      const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body: fields });
      assert.equal(reply.status, 200, reply.text);
    },
    issuer,
    browser,
    client: (slug, more = {}) => registerClient({ issuer: issuer(slug), address: nextAddress(), ...more }),
    returned,
    logIn,
    async tokens(client, person) {
      const { code, verifier } = await logIn(client, person);
      return tokensOf(await client.redeem(code, verifier));
    },
    refuseFirstToken() {
      let first: string | undefined;
      upstream.on('*', ({ headers }) => {
        first ??= headers.authorization;
        return headers.authorization === first ? { status: 401 } : { body: {} };
      });
    },
    list: (slug, token) => toolhost.rpc(slug, token, 'tools/list'),
    call: (slug, token) => toolhost.callTool(slug, token, 'run'),
    async stop() {
      await toolhost.stop();
      await Promise.all([provider.close(), upstream.close()]);
    },
  };
}
