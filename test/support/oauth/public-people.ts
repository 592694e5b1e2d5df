import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Browser, createBrowser, next, type Page } from '../browser/browser.ts';
import { type Json, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { freePort } from '../upstreams/listener.ts';
import { wire } from '../upstreams/wire.ts';
import { type Claims, type ForgingProvider, startForgingProvider } from './forging-provider.ts';
import { clientWithId } from './oauth-client.ts';

const host = 'tools.example.com';
const base = `https://${host}`;

type Answer = { status: number; text: string; body: Json };

/** A service in production mode, and the users of its identity provider, who sign in one after the other. */
export type PublicPeople = {
  toolhost: TestToolhost;
  /** Signs a person in to the dashboard. Returns their session. */
  signIn(claims: Claims): Promise<string>;
  /** Signs a person's agent in at the management server. Returns its token, and the page that asked for consent. */
  signInAgent(claims: Claims): Promise<{ token: string; consent: Page }>;
  /** Returns the page that asks a person for consent to an agent's use of a server. */
  consentPage(slug: string): Promise<Page>;
  /** Sends a request to the REST API as a dashboard page does. */
  ask(session: string, method: string, path: string, body?: Json): Promise<Answer>;
  /** Sends a request to the REST API as an agent does. */
  askAsAgent(token: string, method: string, path: string): Promise<Answer>;
  stop(): Promise<void>;
};

/** Sends requests for the public URL to the port where the service listens behind its proxy. */
function fetchAt(port: number): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const headers = new Headers(init.headers);
    if (init.body instanceof URLSearchParams) headers.set('content-type', 'application/x-www-form-urlencoded');
    headers.set('host', url.host);
    const to = `http://127.0.0.1:${port}${url.pathname}${url.search}`;
    const sent = { method: init.method ?? 'GET', headers: Object.fromEntries(headers) };
    const reply = await wire(to, sent, init.body ? String(init.body) : undefined);
    const answered = Object.entries(reply.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    );
    return new Response(reply.text, { status: reply.status, headers: answered });
  };
}

export async function startPublicPeople(env: Record<string, string> = {}): Promise<PublicPeople> {
  const provider = await startForgingProvider();
  const port = await freePort();
  const toolhost = await startToolhost({
    env: {
      BASE_URL: base,
      HOST: '127.0.0.1',
      PORT: String(port),
      MASTER_KEY: randomBytes(32).toString('base64'),
      OIDC_ISSUER: provider.url,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
      ...env,
    },
  });
  const send = fetchAt(port);

  async function post(path: string, body: URLSearchParams | Json): Promise<Json> {
    const isForm = body instanceof URLSearchParams;
    const headers = { ...(!isForm && { 'content-type': 'application/json' }) };
    const init = { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) };
    const response = await send(`${base}${path}`, init);
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()) as Json;
  }

  async function rest(method: string, path: string, headers: Record<string, string>, body?: Json): Promise<Answer> {
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await send(`${base}/api/v1${path}`, init);
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, text, body: isJson ? (JSON.parse(text) as Json) : {} };
  }

  /** Registers an agent at a server and opens its consent page in a new browser. */
  async function askConsent(slug: string) {
    const redirectUri = 'https://agent.example/callback';
    const made = await post(`/mcp/${slug}/register`, { client_name: 'Agent', redirect_uris: [redirectUri] });
    const id = String(made.client_id);
    const { url, verifier } = clientWithId(id, { issuer: `${base}/mcp/${slug}` }).authorization();
    const browser = createBrowser(undefined, send);
    return { id, redirectUri, verifier, browser, consent: await browser.get(url) };
  }

  return {
    toolhost,
    consentPage: async (slug) => (await askConsent(slug)).consent,
    async signIn(claims) {
      const browser = createBrowser(undefined, send);
      const departure = next(await browser.get(`${base}/login`));
      const { status, html } = await comeBack({ browser, provider, departure, callback: '/login/callback' }, claims);
      assert.equal(status, 302, html);
      return browser.cookies(host).get('__Host-toolhost-session') ?? assert.fail('no session');
    },
    async signInAgent(claims) {
      const { id, redirectUri, verifier, browser, consent } = await askConsent('manage');
      const departure = next(await browser.press(consent, 'Allow and log in'));
      const returned = await comeBack({ browser, provider, departure, callback: '/mcp/manage/callback' }, claims);
      const form = {
        grant_type: 'authorization_code',
        code: next(returned).searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        client_id: id,
        code_verifier: verifier,
        resource: `${base}/mcp/manage`,
      };
      const { access_token: token } = await post('/mcp/manage/token', new URLSearchParams(form));
      return { token: String(token), consent };
    },
    ask(session, method, path, body) {
      const cookie = `__Host-toolhost-session=${session}`;
      const own = { origin: base, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
      return rest(method, path, { cookie, ...own }, body);
    },
    askAsAgent: (token, method, path) => rest(method, path, { authorization: `Bearer ${token}` }),
    async stop() {
      await toolhost.stop();
      await provider.close();
    },
  };
}

type Return = { browser: Browser; provider: ForgingProvider; departure: URL; callback: string };

/** Returns from the identity provider as a person with these claims. */
async function comeBack({ browser, provider, departure, callback }: Return, claims: Claims): Promise<Page> {
  provider.issue(departure.searchParams.get('nonce') ?? '', { claims });
  const back = new URL(base + callback);
  const state = departure.searchParams.get('state') ?? '';
  back.search = new URLSearchParams({ code: 'x', state, iss: provider.url }).toString();
  return browser.get(back);
}
