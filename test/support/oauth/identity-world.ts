import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Browser, createBrowser, getNextUrl } from '../browser/browser.ts';
import { readReply } from '../toolhost/read-reply.ts';
import { type Json, type Reply, type StartOptions, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { findFreePort } from '../upstreams/listener.ts';
import { type HonestProvider, startHonestProvider } from './honest-provider.ts';
import { logInAtProvider } from './log-in.ts';
import { createProductionFetch, productionUrl } from './production-world.ts';

/**
 * A service in production mode whose people sign in at a real identity provider. `provider.setClaims` changes a person's
 * groups, and `provider.removePerson` removes a person.
 */
export type IdentityWorld = {
  toolhost: TestToolhost;
  provider: HonestProvider;
  /** Sends requests for the public URL to the service. */
  send: typeof fetch;
  /** Creates a browser that reaches the service at its public URL, and the provider. */
  createBrowser(): Browser;
  /** Signs a person in to the dashboard. Returns their session. */
  signIn(name: string, browser?: Browser): Promise<string>;
  /** Sends a request to the REST API as a dashboard page does. */
  request(session: string, method: string, path: string, body?: Json): Promise<Reply>;
  stop(): Promise<void>;
};

export async function startIdentityWorld({ env, ...options }: StartOptions = {}): Promise<IdentityWorld> {
  const provider = await startHonestProvider();
  const port = await findFreePort();
  const toolhost = await startToolhost({
    ...options,
    env: {
      BASE_URL: productionUrl,
      HOST: '127.0.0.1',
      PORT: String(port),
      MASTER_KEY: randomBytes(32).toString('base64'),
      ...(await provider.createSignInClient(productionUrl)),
      ...env,
    },
  });
  const send = createProductionFetch(port);
  const createWorldBrowser = () => createBrowser(undefined, send);
  return {
    toolhost,
    provider,
    send,
    createBrowser: createWorldBrowser,
    async signIn(name, browser = createWorldBrowser()) {
      const start = await browser.get(`${productionUrl}/login`);
      const returned = await logInAtProvider(browser, start, name, `${productionUrl}/login/callback`);
      const { status, html } = await browser.get(getNextUrl(returned));
      assert.equal(status, 302, html);
      const { hostname } = new URL(productionUrl);
      return browser.cookies(hostname).get('__Host-toolhost-session') ?? assert.fail('no session');
    },
    async request(session, method, path, body) {
      const headers = {
        cookie: `__Host-toolhost-session=${session}`,
        origin: productionUrl,
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/json',
      };
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      return readReply(await send(`${productionUrl}/api/v1${path}`, init));
    },
    async stop() {
      await toolhost.stop();
      await provider.close();
    },
  };
}
