import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../files.ts';
import { type Browser, createBrowser, getNextUrl, type Page } from '../browser/browser.ts';
import { startForgedTokenProvider } from '../oauth/forged-token-provider.ts';
import { clientWithId } from '../oauth/oauth-client.ts';
import { readReply } from '../toolhost/read-reply.ts';
import { type Json, type Reply, startToolhost, type TestToolhost, type ToolCallResult } from '../toolhost/toolhost.ts';
import { findFreePort } from '../upstreams/listener.ts';
import { fetchAt, type Internet, startInternet } from './internet.ts';
import type { Account } from './oauth-site.ts';
import type { ProviderStub } from './provider-stub.ts';

const host = 'tools.example.com';
const base = `https://${host}`;

/** A service in production mode that reaches the hosts of providers by their real names. */
export type ProviderWorld = {
  toolhost: TestToolhost;
  internet: Internet;
  /** Creates the server of a file in examples/logins, and registers its callback at the provider. */
  createServer(stub: ProviderStub): Promise<void>;
  /** Logs an account in as its own person. Returns the token of the agent, and the page that led to the provider. */
  logIn(stub: ProviderStub, account: Account): Promise<{ token: string; departure: Page }>;
  /** Opens the callback of a server in a new browser, with a form if there is one. Returns the page's status and text. */
  openCallback(stub: ProviderStub, query: string, form?: URLSearchParams): Promise<{ status: number; text: string }>;
  /** Reads a list of the management API as text. */
  readList(path: string): Promise<string>;
  /** Calls the tool of the file. Returns the name of the account that the API saw. */
  call(stub: ProviderStub, token: string): Promise<unknown>;
  stop(): Promise<void>;
};

export async function startProviderWorld(stubs: readonly ProviderStub[]): Promise<ProviderWorld> {
  const internet = await startInternet(Object.assign({}, ...stubs.map(({ sites }) => sites)));
  const identity = await startForgedTokenProvider();
  const port = await findFreePort();
  const toolhost = await startToolhost({
    env: {
      BASE_URL: base,
      HOST: '127.0.0.1',
      PORT: String(port),
      MASTER_KEY: randomBytes(32).toString('base64'),
      OIDC_ISSUER: identity.url,
      OIDC_CLIENT_ID: identity.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
      EGRESS_PROXY: internet.proxyUrl,
    },
    // Only the proxy knows the names of the providers.
    runtimeOptions: {
      resolve: (_, callback) => callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []),
    },
  });
  const key = await toolhost.createKey();
  const send: typeof fetch = (input, init) =>
    new URL(String(input)).host === host ? fetchAt(port, String(input), init) : internet.fetch(input, init);
  const post = async (path: string, body: Json | URLSearchParams, bearer?: string): Promise<Reply> => {
    const isForm = body instanceof URLSearchParams;
    const headers = {
      accept: 'application/json, text/event-stream',
      ...(!isForm && { 'content-type': 'application/json' }),
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    };
    return readReply(await send(base + path, { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) }));
  };
  const getSlug = ({ file }: ProviderStub) => readConfig(file).slug as string;

  /** Goes from the consent page to the provider, and back. Returns the pages before and after it. */
  async function visitProvider(stub: ProviderStub, account: Account, browser: Browser, url: URL) {
    const consent = await browser.get(url);
    let departure = await browser.press(consent, 'Allow and log in');
    const fields = stub.getFields?.(account);
    if (fields) departure = await browser.press(departure, 'Save and continue', { fields });
    stub.oauth.logInAs(account);
    const page = await browser.get(getNextUrl(departure));
    internet.check();
    if (page.status === 302) return { departure, returned: await browser.get(getNextUrl(page)) };
    // A form of the provider comes from its own site.
    const headers = { origin: page.url.origin, 'sec-fetch-site': 'cross-site' };
    return { departure, returned: await browser.press(page, 'Continue', { headers }) };
  }

  return {
    toolhost,
    internet,
    async createServer(stub) {
      const { secrets, ...config } = readConfig(stub.file);
      const oauth = {
        ...(config.oauth as Json),
        ...(secrets !== undefined && { client_secret: `secret-of-${stub.file}` }),
      };
      const reply = await post('/api/v1/servers', { ...config, oauth }, key);
      assert.equal(reply.status, 201, reply.text);
      stub.oauth.register(`${base}/mcp/${getSlug(stub)}/callback`);
    },
    async logIn(stub, account) {
      const slug = getSlug(stub);
      const issuer = `${base}/mcp/${slug}`;
      const redirect_uri = 'https://agent.example/callback';
      const registered = await post(`/mcp/${slug}/register`, { client_name: 'Agent', redirect_uris: [redirect_uri] });
      const client_id = String(registered.body.client_id);
      const { url, verifier } = clientWithId(client_id, { issuer }).authorization();
      const browser = createBrowser(undefined, send);
      const { departure, ...visit } = await visitProvider(stub, account, browser, url);
      let { returned } = visit;
      internet.check();
      const choice = stub.getChoice?.(account);
      if (choice !== undefined) {
        const options = [...returned.html.matchAll(/value="(\d+)"[^>]*><span><bdi>([^<]*)/g)];
        const index = options.find(([, , name]) => name === choice)?.[1];
        returned = await browser.press(returned, 'Continue', { fields: { account: index } });
      }
      const code = getNextUrl(returned).searchParams.get('code') ?? assert.fail(getNextUrl(returned).href);
      const grant = { grant_type: 'authorization_code', code, redirect_uri, client_id, code_verifier: verifier };
      const { body } = await post(`/mcp/${slug}/token`, new URLSearchParams({ ...grant, resource: issuer }));
      return { token: String(body.access_token), departure };
    },
    async call(stub, token) {
      const [name, args] = stub.call;
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      const { body, text } = await post(`/mcp/${getSlug(stub)}`, message, token);
      internet.check();
      const result = body.result as ToolCallResult | undefined;
      assert.ok(result && result.isError !== true, text);
      return (JSON.parse(result.content[0]?.text ?? '') as Json).account;
    },
    async openCallback(stub, query, form) {
      const init = { headers: { accept: 'text/html', origin: 'https://provider.example' } };
      const url = `${base}/mcp/${getSlug(stub)}/callback${query}`;
      return readReply(await (form ? send(url, { ...init, method: 'POST', body: form }) : send(url)));
    },
    async readList(path) {
      const headers = { authorization: `Bearer ${key}` };
      return (await send(`${base}/api/v1${path}`, { headers })).text();
    },
    async stop() {
      await toolhost.stop();
      await Promise.all([internet.close(), identity.close()]);
    },
  };
}

/** Reads a server file of examples/logins. */
export function readConfig(file: string): Json {
  return parse(readFileSync(join(root, 'examples', 'logins', `${file}.yaml`), 'utf8')) as Json;
}
