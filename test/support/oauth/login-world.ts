import assert from 'node:assert/strict';
import { type Browser, type Changes, createBrowser, getNextUrl, type Page } from '../browser/browser.ts';
import {
  type Json,
  type Reply,
  type StartOptions,
  startToolhost,
  type TestToolhost,
  type ToolCallResult,
} from '../toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type AdversarialProvider, startAdversarialProvider } from './adversarial-provider.ts';
import {
  type Authorization,
  type ClientOptions,
  expectTokens,
  type OAuthClient,
  registerClient,
  type Tokens,
} from './oauth-client.ts';

/** Age at which a token of the provider, which lasts an hour, has less than 20 s left, so that the service renews it. */
export const nearExpiryMs = 3_582_000;

/** The parameters of the redirect to the client. */
export type LoginResult = Authorization & { params: URLSearchParams; code: string };

/** The service with an adjustable clock, a provider, an upstream, and servers whose users log in at the provider. */
export type LoginWorld = {
  toolhost: TestToolhost;
  provider: AdversarialProvider;
  upstream: RecordingUpstream;
  /** Advances the clock of the service. */
  advanceClock(ms: number): void;
  /** Current time of the service, epoch ms. */
  now(): number;
  /** Creates a server with a login and one tool, `run`. Returns its slug. */
  createServer(overrides?: Json, oauth?: Json): Promise<string>;
  /** Changes fields of a server. */
  updateServer(slug: string, fields: Json): Promise<void>;
  issuer(slug: string): string;
  newBrowser(): Browser;
  registerClient(slug: string, options?: Partial<ClientOptions>): Promise<OAuthClient>;
  /** Creates a server with a login, and registers a client there. */
  createClient(overrides?: Json, oauth?: Json): Promise<{ slug: string; client: OAuthClient }>;
  /** Allows the client and logs in. Returns the page that the provider redirects to. */
  returnFromProvider(authorization: Authorization, browser?: Browser): Promise<Page>;
  /** Completes a login, which must succeed. */
  logIn(client: OAuthClient, browser?: Browser, changes?: Changes): Promise<LoginResult>;
  getTokens(client: OAuthClient, browser?: Browser): Promise<Tokens>;
  /** Makes the upstream reject the first token that it sees and accept every other. */
  rejectFirstToken(): void;
  /** `tools/list` with a token. */
  listTools(slug: string, token: string | undefined): Promise<Reply>;
  callTool(slug: string, token: string): Promise<ToolCallResult>;
  stop(): Promise<void>;
};

/** The `run` tool of a server. */
export function createTool(url: string): Json {
  return { name: 'run', description: 'Runs the one request of this test.', method: 'GET', url };
}

/** Creates a function that returns a new client address on every call. */
function createAddressSequence(): () => string {
  let count = 0;
  return () => `198.51.${100 + Math.floor(++count / 250)}.${(count % 250) + 1}`;
}

export async function startLoginWorld(options: StartOptions = {}): Promise<LoginWorld> {
  const [provider, upstream] = await Promise.all([startAdversarialProvider(), startRecordingUpstream()]);
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const toolhost = await startToolhost({
    ...options,
    env: { TRUSTED_PROXIES: '1', ...options.env },
    egressPorts: [...provider.ports, upstream.port, ...(options.egressPorts ?? [])],
    runtimeOptions: { now, ...options.runtimeOptions },
  });
  const nextAddress = createAddressSequence();
  let servers = 0;
  const issuer = (slug: string) => `${toolhost.url}/mcp/${slug}`;
  const newBrowser = () => createBrowser(nextAddress());

  const returnFromProvider: LoginWorld['returnFromProvider'] = async ({ url }, person = newBrowser()) => {
    const consent = await person.get(url);
    const departure = await person.press(consent, 'Allow and log in');
    const login = await person.get(getNextUrl(departure));
    return person.get(getNextUrl(login));
  };
  const logIn: LoginWorld['logIn'] = async (client, person, changes) => {
    const authorization = client.authorization(changes);
    const { href, searchParams: params } = getNextUrl(await returnFromProvider(authorization, person));
    assert.ok(href.startsWith(client.redirectUri), href);
    const code = params.get('code') ?? assert.fail(href);
    return { ...authorization, params, code };
  };

  const registerAt: LoginWorld['registerClient'] = (slug, overrides = {}) =>
    registerClient({ issuer: issuer(slug), address: nextAddress(), ...overrides });
  const createServer: LoginWorld['createServer'] = async (overrides = {}, oauth = {}) => {
    const slug = `login-${++servers}`;
    const config = {
      name: `Things ${servers}`,
      slug,
      authentication: { type: 'Bearer' },
      oauth: provider.oauth(oauth),
    };
    await toolhost.createServer({ ...config, tools: [createTool(`${upstream.url}/things`)], ...overrides });
    return slug;
  };

  return {
    toolhost,
    provider,
    upstream,
    now,
    advanceClock(ms) {
      offsetMs += ms;
    },
    createServer,
    async createClient(overrides, oauth) {
      const slug = await createServer(overrides, oauth);
      return { slug, client: await registerAt(slug) };
    },
    async updateServer(slug, fields) {
      const reply = await toolhost.rest('PATCH', `/servers/${slug}`, { body: fields });
      assert.equal(reply.status, 200, reply.text);
    },
    issuer,
    newBrowser,
    registerClient: registerAt,
    returnFromProvider,
    logIn,
    async getTokens(client, person) {
      const { code, verifier } = await logIn(client, person);
      return expectTokens(await client.redeem(code, verifier));
    },
    rejectFirstToken() {
      let first: string | undefined;
      upstream.on('*', ({ headers }) => {
        first ??= headers.authorization;
        return headers.authorization === first ? { status: 401 } : { body: {} };
      });
    },
    listTools: (slug, token) => toolhost.rpc(slug, token, 'tools/list'),
    callTool: (slug, token) => toolhost.callTool(slug, token, 'run'),
    async stop() {
      await toolhost.stop();
      await Promise.all([provider.close(), upstream.close()]);
    },
  };
}
