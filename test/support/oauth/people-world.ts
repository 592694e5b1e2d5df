import assert from 'node:assert/strict';
import { type Browser, getNextUrl, getRedirectTarget, type Page } from '../browser/browser.ts';
import { readReply } from '../toolhost/read-reply.ts';
import type { Json, Reply, StartOptions } from '../toolhost/toolhost.ts';
import { type IdentityWorld, startIdentityWorld } from './identity-world.ts';
import { logInAtProvider } from './log-in.ts';
import { clientWithId, type OAuthClient, type Tokens } from './oauth-client.ts';
import { productionUrl } from './production-world.ts';

/** A person's login in progress: the client, the browser, and the page that the browser shows. */
export type LoginInProgress = { client: OAuthClient; verifier: string; browser: Browser; page: Page };

/** An identity world whose people log in to hosted servers. */
export type PeopleWorld = IdentityWorld & {
  /** Creates a server as the owner. Its tools may call any upstream that `EGRESS_ALLOW` permits. */
  createServer(config: Json): Promise<Reply>;
  owner: string;
  /** Starts a login at a server until the consent page, or the page that refuses the person. */
  startLogin(slug: string, name: string, options?: LoginOptions): Promise<LoginInProgress>;
  /** Completes a login from its last page. Returns the response of the token endpoint. */
  redeem(slug: string, login: LoginInProgress): Promise<Reply>;
  /** Logs a person in, with the values of fields. Returns the tokens, and the id of the client that got them. */
  logIn(slug: string, name: string, options?: LoginOptions & { fields?: Record<string, string> }): Promise<LoggedIn>;
  /** Sends a JSON-RPC request to a server. */
  post(slug: string, token: string | undefined, method: string, params?: Json): Promise<Reply>;
  /** Sends a form to an endpoint of the authorization server. */
  postForm(path: string, form: Record<string, string>): Promise<Reply>;
};

type LoggedIn = Tokens & { clientId: string };
type LoginOptions = { browser?: Browser; redirectUri?: string; resource?: string };

export async function startPeopleWorld(options: StartOptions = {}): Promise<PeopleWorld> {
  const world = await startIdentityWorld(options);
  const owner = await world.signIn('owner');

  async function send(path: string, init: RequestInit): Promise<Reply> {
    return readReply(await world.send(`${productionUrl}${path}`, init));
  }

  async function register(slug: string, redirectUri: string): Promise<OAuthClient> {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ client_name: 'Agent', redirect_uris: [redirectUri] });
    const reply = await send(`/mcp/${slug}/register`, { method: 'POST', headers, body });
    assert.equal(reply.status, 201, reply.text);
    return clientWithId(String(reply.body.client_id), { issuer: `${productionUrl}/mcp/${slug}`, redirectUri });
  }

  const postForm = (path: string, form: Record<string, string>) =>
    send(path, { method: 'POST', body: new URLSearchParams(form) });

  const peopleWorld: PeopleWorld = {
    ...world,
    owner,
    createServer: (config) => world.request(owner, 'POST', '/servers', config),
    async startLogin(slug, name, { browser = world.createBrowser(), redirectUri, resource } = {}) {
      const client = await register(slug, redirectUri ?? 'https://agent.example/callback');
      const { url, verifier } = client.authorization(resource === undefined ? {} : { resource });
      const start = await browser.get(url);
      const callback = `${productionUrl}/login/callback`;
      if (!getRedirectTarget(start)) return { client, verifier, browser, page: start };
      const returned = await logInAtProvider(browser, start, name, callback);
      return { client, verifier, browser, page: await browser.get(getNextUrl(returned)) };
    },
    async redeem(slug, { client, verifier, page }) {
      const { searchParams } = getNextUrl(page);
      const code = searchParams.get('code') ?? assert.fail(searchParams.toString());
      const form = { grant_type: 'authorization_code', code, code_verifier: verifier, client_id: client.id };
      return postForm(`/mcp/${slug}/token`, form);
    },
    async logIn(slug, name, { fields, ...more } = {}) {
      const login = await peopleWorld.startLogin(slug, name, more);
      let page = await login.browser.press(login.page, 'Allow');
      if (fields) page = await login.browser.press(page, 'Save and continue', { fields: toInputs(fields) });
      const reply = await peopleWorld.redeem(slug, { ...login, page });
      assert.equal(reply.status, 200, reply.text);
      return { ...(reply.body as Tokens), clientId: login.client.id };
    },
    post: (slug, token, method, params = {}) =>
      send(`/mcp/${slug}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }),
    postForm,
  };
  return peopleWorld;
}

/** Returns the names of the inputs of fields. */
export function toInputs(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`field.${name}`, value]));
}
