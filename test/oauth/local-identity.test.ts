import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { type Browser, type Changes, createBrowser, getNextUrl, type Page } from '../support/browser/browser.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

describe('[find B8] local identity provider', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  /** Opens a sign-in, up to the form. */
  async function openForm(browser: Browser): Promise<Page> {
    let page = await browser.get(`${toolhost.url}/login`);
    while (page.status !== 200) page = await browser.get(getNextUrl(page));
    return page;
  }

  it('accepts its form when the person sends it', async () => {
    const browser = createBrowser();
    const form = await openForm(browser);
    assert.equal(form.headers.get('x-frame-options'), 'DENY');
    assert.equal(form.headers.get('cache-control'), 'no-store');
    let page = await browser.press(form, 'Continue');
    for (let hops = 0; hops < 6 && page.status !== 200; hops++) page = await browser.get(getNextUrl(page));
    assert.equal((await browser.get(`${toolhost.url}/api/v1/session`)).status, 200);
  });

  it('rejects a form of another site, another browser, or another sign-in', async () => {
    const [browser, other] = [createBrowser(), createBrowser()];
    const form = await openForm(browser);
    const foreign = await openForm(other);
    const submit = (page: Page, headers?: Changes) => browser.press(page, 'Continue', headers && { headers });
    assert.equal((await submit(foreign)).status, 403);
    const cookies = [...browser.cookies('127.0.0.1')].map(([name, value]) => `${name}=${value}`);
    const headers: [Changes, status: number][] = [
      [{ 'sec-fetch-site': 'cross-site' }, 403],
      [{ 'sec-fetch-site': 'same-site' }, 403],
      [{ origin: 'https://evil.example' }, 403],
      [{ origin: 'null' }, 403],
      [{ cookie: cookies.filter((pair) => !pair.startsWith('_interaction=')).join('; ') }, 400],
      [{ cookie: cookies.map((pair) => pair.replace(/^_interaction=.*/, '_interaction=planted')).join('; ') }, 400],
    ];
    for (const [change, status] of headers)
      assert.equal((await submit(form, change)).status, status, JSON.stringify(change));
    assert.equal((await browser.get(`${toolhost.url}/api/v1/session`)).status, 401);
  });

  it('is served on the port of the service, and nowhere else for browsers', async () => {
    const browser = createBrowser();
    let page = await browser.get(`${toolhost.url}/login`);
    for (; page.status !== 200; page = await browser.get(getNextUrl(page)))
      assert.equal(getNextUrl(page).origin, toolhost.url);
    const path = new URL(page.url).pathname;
    assert.match(path, /^\/local-identity\/interaction\//);
    const sendRequest = (host: string, target: string) => sendRawRequest(toolhost.url + target, { headers: { host } });
    const { host: ownHost, port } = new URL(toolhost.url);
    for (const host of ['evil.example', '127.0.0.1', '127.0.0.1:1', `evil.example:${port}`, `0.0.0.0:${port}`])
      for (const target of [path, '/local-identity/auth']) {
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
      let page = await browser.get(`${base}/login`);
      while (page.status !== 200) page = await browser.get(getNextUrl(page));
      page = await browser.press(page, 'Continue');
      for (let hops = 0; hops < 6 && page.status !== 200; hops++) page = await browser.get(getNextUrl(page));
      assert.equal((await browser.get(`${base}/api/v1/session`)).status, 200);
    } finally {
      await forwarded.stop();
      forwarder.close();
    }
  });
});
