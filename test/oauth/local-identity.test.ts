import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { type Browser, type Changes, createBrowser, getNextUrl, type Page } from '../support/browser/browser.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
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

  it('responds only to its own loopback hostnames', async () => {
    const { url } = await openForm(createBrowser());
    const sendRequest = (host: string, path: string) =>
      sendRawRequest(`http://127.0.0.1:${url.port}${path}`, { headers: { host } });
    const paths = ['/.well-known/openid-configuration', '/auth', '/token', url.pathname];
    const withPort = ['evil.example', '127.0.0.1.evil.example', '0.0.0.0'].map((name) => `${name}:${url.port}`);
    for (const host of ['evil.example', '127.0.0.1', `127.0.0.1:1`, ...withPort]) {
      for (const path of paths) {
        const { status, text } = await sendRequest(host, path);
        assert.equal(status, 421, `${host} ${path}`);
        assert.doesNotMatch(text, /form|issuer/);
      }
    }
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'])
      assert.equal((await sendRequest(`${name}:${url.port}`, '/.well-known/openid-configuration')).status, 200, name);
  });
});
