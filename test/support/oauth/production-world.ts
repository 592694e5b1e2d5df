import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Browser, createBrowser, getNextUrl, type Page } from '../browser/browser.ts';
import { readReply } from '../toolhost/read-reply.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { findFreePort } from '../upstreams/listener.ts';
import { sendRawRequest } from '../upstreams/raw-request.ts';
import { type Claims, startForgedTokenProvider } from './forged-token-provider.ts';
import { clientWithId } from './oauth-client.ts';

const host = 'tools.example.com';
export const productionUrl = `https://${host}`;

/** A service in production mode, and the users of its identity provider, who sign in one after the other. */
export type ProductionWorld = {
  toolhost: TestToolhost;
  /** Signs a person in to the dashboard. Returns their session. */
  signIn(claims: Claims): Promise<string>;
  /** Signs a person's agent in at the management server. Returns its token, and the page that asked for consent. */
  signInAgent(claims: Claims): Promise<{ token: string; consent: Page }>;
  /** Returns the page that asks a person for consent to an agent's use of a server. */
  openConsentPage(slug: string): Promise<Page>;
  /** Sends a request to the REST API as a dashboard page does. */
  requestAsUser(session: string, method: string, path: string, body?: Json): Promise<Reply>;
  /** Sends a request to the REST API as an agent does. */
  requestAsAgent(token: string, method: string, path: string): Promise<Reply>;
  stop(): Promise<void>;
};

/** Sends requests for the public URL to the port where the service listens behind its proxy, and others as they are. */
export function createProductionFetch(port: number): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    if (url.host !== host) return fetch(url, init);
    const headers = new Headers(init.headers);
    if (init.body instanceof URLSearchParams) headers.set('content-type', 'application/x-www-form-urlencoded');
    headers.set('host', url.host);
    const to = `http://127.0.0.1:${port}${url.pathname}${url.search}`;
    const options = { method: init.method ?? 'GET', headers: Object.fromEntries(headers) };
    const reply = await sendRawRequest(to, options, init.body ? String(init.body) : undefined);
    const responseHeaders = Object.entries(reply.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    );
    return new Response(reply.text, { status: reply.status, headers: responseHeaders });
  };
}

export async function startProductionWorld(env: Record<string, string> = {}): Promise<ProductionWorld> {
  const provider = await startForgedTokenProvider();
  const port = await findFreePort();
  const toolhost = await startToolhost({
    env: {
      BASE_URL: productionUrl,
      HOST: '127.0.0.1',
      PORT: String(port),
      MASTER_KEY: randomBytes(32).toString('base64'),
      OIDC_ISSUER: provider.url,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
      ...env,
    },
  });
  const send = createProductionFetch(port);

  async function post(path: string, body: URLSearchParams | Json): Promise<Json> {
    const isForm = body instanceof URLSearchParams;
    const headers = { ...(!isForm && { 'content-type': 'application/json' }) };
    const init = { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) };
    const response = await send(`${productionUrl}${path}`, init);
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()) as Json;
  }

  async function requestApi(method: string, path: string, headers: Record<string, string>, body?: Json) {
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return readReply(await send(`${productionUrl}/api/v1${path}`, init));
  }

  /** Registers an agent at a server and opens its consent page in a new browser. */
  async function registerAndAuthorize(slug: string) {
    const redirectUri = 'https://agent.example/callback';
    const registration = await post(`/mcp/${slug}/register`, { client_name: 'Agent', redirect_uris: [redirectUri] });
    const id = String(registration.client_id);
    const { url, verifier } = clientWithId(id, { issuer: `${productionUrl}/mcp/${slug}` }).authorization();
    const browser = createBrowser(undefined, send);
    return { id, redirectUri, verifier, browser, consent: await browser.get(url) };
  }

  /** Returns from the identity provider as a person with these claims. */
  async function returnFromProvider(browser: Browser, departure: URL, callback: string, claims: Claims): Promise<Page> {
    provider.setIdToken(departure.searchParams.get('nonce') ?? '', { claims });
    const state = departure.searchParams.get('state') ?? '';
    return browser.get(`${productionUrl}${callback}?${new URLSearchParams({ code: 'x', state, iss: provider.url })}`);
  }

  return {
    toolhost,
    openConsentPage: async (slug) => (await registerAndAuthorize(slug)).consent,
    async signIn(claims) {
      const browser = createBrowser(undefined, send);
      const departure = getNextUrl(await browser.get(`${productionUrl}/login`));
      const { status, html } = await returnFromProvider(browser, departure, '/login/callback', claims);
      assert.equal(status, 302, html);
      return browser.cookies(host).get('__Host-toolhost-session') ?? assert.fail('no session');
    },
    async signInAgent(claims) {
      const { id, redirectUri, verifier, browser, consent } = await registerAndAuthorize('manage');
      const departure = getNextUrl(await browser.press(consent, 'Allow and log in'));
      const returned = await returnFromProvider(browser, departure, '/mcp/manage/callback', claims);
      const form = {
        grant_type: 'authorization_code',
        code: getNextUrl(returned).searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        client_id: id,
        code_verifier: verifier,
        resource: `${productionUrl}/mcp/manage`,
      };
      const { access_token: token } = await post('/mcp/manage/token', new URLSearchParams(form));
      return { token: String(token), consent };
    },
    requestAsUser(session, method, path, body) {
      const cookie = `__Host-toolhost-session=${session}`;
      const headers = { origin: productionUrl, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
      return requestApi(method, path, { cookie, ...headers }, body);
    },
    requestAsAgent: (token, method, path) => requestApi(method, path, { authorization: `Bearer ${token}` }),
    async stop() {
      await toolhost.stop();
      await provider.close();
    },
  };
}
