import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { loginRequestsPerMinute } from '../../apps/server/src/app/web.ts';
import { type Browser, type Changes, createBrowser, getNextUrl, type Page } from '../support/browser/browser.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

describe('the sign-in of local mode', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());
  const getSessionStatus = async (browser: Browser) => (await browser.get(`${toolhost.url}/api/v1/session`)).status;

  it('takes one click on the landing page or on the sign-in page, and returns to the requested page', async () => {
    for (const [path, target] of [
      ['/servers', '/servers'],
      ['/login?return_to=%2Fkeys', '/keys'],
      ['/login?return_to=https%3A%2F%2Fevil.example', '/'],
    ]) {
      const browser = createBrowser();
      const page = await browser.get(toolhost.url + path);
      assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
      assert.equal(page.headers.get('cache-control'), 'no-store');
      const signedIn = await browser.press(page, 'Sign in');
      assert.deepEqual([signedIn.status, signedIn.headers.get('location')], [303, target]);
      assert.equal(await getSessionStatus(browser), 200);
    }
  });

  it('rejects the click on another site', async () => {
    const headers: Changes[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: undefined, 'sec-fetch-site': undefined },
    ];
    for (const change of headers) {
      const browser = createBrowser();
      const page = await browser.get(`${toolhost.url}/login`);
      assert.equal((await browser.press(page, 'Sign in', { headers: change })).status, 403, JSON.stringify(change));
      assert.equal(await getSessionStatus(browser), 401);
    }
  });

  it('limits the sign-ins of an address', async () => {
    const limited = await startToolhost();
    try {
      const statuses = new Set<number>();
      for (let count = 0; count <= loginRequestsPerMinute; count++)
        statuses.add((await fetch(`${limited.url}/login/link/${count}`)).status);
      assert.deepEqual([...statuses], [410, 429]);
    } finally {
      await limited.stop();
    }
  });
});

describe('the identity provider of local mode', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  /** Agrees to the login of an agent, up to the first redirect to the identity provider. */
  async function agree(browser: Browser): Promise<Page> {
    const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage` });
    return browser.press(await browser.get(client.authorization().url), 'Allow and log in');
  }

  /** Follows the redirects to the pages of the identity provider. */
  async function reachInteraction(browser: Browser): Promise<URL> {
    let url = getNextUrl(await agree(browser));
    while (!url.pathname.startsWith('/local-identity/interaction/')) url = getNextUrl(await browser.get(url));
    return url;
  }

  it('logs an agent in without a page of its own, because the person has agreed to the login', async () => {
    const { tokens } = await signInAgent(toolhost);
    assert.equal((await toolhost.rpc('manage', tokens.access_token, 'tools/list')).status, 200);
  });

  it('continues a login only in the browser that began it', async () => {
    const [browser, other] = [createBrowser(), createBrowser()];
    const [url, otherUrl] = [await reachInteraction(browser), await reachInteraction(other)];
    assert.equal((await browser.get(otherUrl)).status, 403);
    assert.equal((await createBrowser().get(url)).status, 400);
    assert.equal((await browser.get(url)).status, 303);
  });

  it('is served on the port of the service, and nowhere else for browsers', async () => {
    const browser = createBrowser();
    const url = await reachInteraction(browser);
    assert.equal(url.origin, toolhost.url);
    const sendRequest = (host: string, target: string) => sendRawRequest(toolhost.url + target, { headers: { host } });
    const { host: ownHost, port } = new URL(toolhost.url);
    for (const host of ['evil.example', '127.0.0.1', '127.0.0.1:1', `evil.example:${port}`, `0.0.0.0:${port}`])
      for (const target of [url.pathname, '/local-identity/auth', '/login', '/login/link/x']) {
        const { status, text } = await sendRequest(host, target);
        assert.equal(status, 421, `${host} ${target}`);
        assert.doesNotMatch(text, /form|issuer/);
      }
    for (const target of ['token', 'jwks', '.well-known/openid-configuration', 'me'])
      assert.equal((await sendRequest(ownHost, `/local-identity/${target}`)).status, 404, target);
  });

  it('signs in through a single forwarded port, below a path', async () => {
    let servicePort = 0;
    const forwarder = createServer((client) => {
      const upstream = connect(servicePort, '127.0.0.1');
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to);
    });
    await once(forwarder.listen(0, '127.0.0.1'), 'listening');
    const base = `http://127.0.0.1:${(forwarder.address() as AddressInfo).port}/tools`;
    servicePort = await findFreePort();
    const forwarded = await startToolhost({ env: { BASE_URL: base, PORT: String(servicePort) } });
    try {
      const browser = createBrowser();
      const signedIn = await browser.press(await browser.get(`${base}/login`), 'Sign in');
      assert.equal(signedIn.headers.get('location'), '/tools/');
      assert.equal((await browser.get(`${base}/api/v1/session`)).status, 200);
      const { tokens } = await signInAgent({ ...forwarded, url: base });
      assert.match(tokens.access_token, /^tha_/);
    } finally {
      await forwarded.stop();
      forwarder.close();
    }
  });
});
