import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { type Browser, type Changes, createBrowser, next, type Page } from '../support/browser/browser.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

describe('[find B8] the identity provider of local mode', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost.stop());

  /** The form that a person stands before. */
  async function formFor(browser: Browser): Promise<Page> {
    let page = await browser.get(`${toolhost.url}/login`);
    while (page.status !== 200) page = await browser.get(next(page));
    return page;
  }

  it('accepts its form when the person sends it, and recognises the browser by its cookie', async () => {
    const browser = createBrowser();
    const departure = await browser.get(`${toolhost.url}/login`);
    const shown = next(await browser.get(next(departure)));
    const address = await browser.get(shown);
    const form = await browser.get(next(address));
    const [cookie] = address.headers.getSetCookie();
    assert.match(
      cookie ?? '',
      /^toolhost-identity-form-[0-9a-f]{16}=[\w-]{43}; Path=\/interaction; HttpOnly; SameSite=Lax; Max-Age=3600$/,
    );
    assert.equal(form.headers.get('x-frame-options'), 'DENY');
    assert.equal(form.headers.get('cache-control'), 'no-store');
    let page = await browser.press(form, 'Continue');
    for (let hops = 0; hops < 6 && page.status !== 200; hops++) page = await browser.get(next(page));
    assert.equal((await browser.get(`${toolhost.url}/api/v1/session`)).status, 200);
  });

  it('refuses a form of another site, another browser or another sign-in', async () => {
    const [browser, other] = [createBrowser(), createBrowser()];
    const form = await formFor(browser);
    const foreign = await formFor(other);
    const actionOf = ({ html }: Page) => /<form method="post" action="([^"]*)"/.exec(html)?.[1] ?? assert.fail(html);
    const withAction = (action: string): Page => ({ ...form, html: form.html.replace(actionOf(form), action) });
    const bare = form.url.pathname;
    const actions = [
      bare,
      `${bare}?form=`,
      `${bare}?form=x`,
      actionOf(foreign).replace(/^[^?]*/, bare),
      actionOf(foreign),
      `${actionOf(form)}x`,
      `${bare}?FORM=${actionOf(form).split('=')[1]}`,
    ];
    const sent = (page: Page, headers?: Changes) => browser.press(page, 'Continue', headers && { headers });
    for (const action of actions) assert.equal((await sent(withAction(action))).status, 403, action);
    const names = [...browser.cookies('127.0.0.1').keys()];
    const formCookie = names.find((name) => name.startsWith('toolhost-identity-form-'));
    const cookies = [...browser.cookies('127.0.0.1')].map(([name, value]) => `${name}=${value}`);
    const headers: Changes[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { cookie: cookies.filter((pair) => !pair.startsWith('toolhost-identity-form')).join('; ') },
      { cookie: [...cookies, `${formCookie}=planted`].join('; ') },
    ];
    for (const change of headers) assert.equal((await sent(form, change)).status, 403, JSON.stringify(change));
    assert.equal((await browser.get(`${toolhost.url}/api/v1/session`)).status, 401);
    assert.ok([302, 303].includes((await sent(form)).status));
  });

  it('accepts the forms of two tabs that were opened at once', async () => {
    const tabs = [createBrowser(), createBrowser()];
    const forms = [];
    for (const tab of tabs) forms.push(await formFor(tab));
    // The browsers of the tests have no paths of cookies, so two stand for the tabs of one. They share what has the path /interaction.
    const shared = tabs.flatMap((tab) =>
      [...tab.cookies('127.0.0.1')].filter(([name]) => name.startsWith('toolhost-identity-form')),
    );
    for (const [index, tab] of tabs.entries()) {
      for (const [name, value] of shared) (tab.cookies('127.0.0.1') as Map<string, string>).set(name, value);
      const { status } = await tab.press(forms[index] ?? assert.fail(), 'Continue');
      assert.ok([302, 303].includes(status), String(status));
    }
  });

  it('answers to its own loopback names only', async () => {
    const { url } = await formFor(createBrowser());
    const ask = (host: string, path: string) =>
      new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port: url.port, path, headers: { host } }, (response) => {
          text(response).then((body) => resolve({ status: response.statusCode, body }), reject);
        });
        sent.on('error', reject).end();
      });
    const paths = ['/.well-known/openid-configuration', '/auth', '/token', url.pathname];
    for (const host of [
      'evil.example',
      `evil.example:${url.port}`,
      '127.0.0.1',
      `127.0.0.1:1`,
      `127.0.0.1.evil.example:${url.port}`,
      `0.0.0.0:${url.port}`,
    ]) {
      for (const path of paths) {
        const { status, body } = await ask(host, path);
        assert.equal(status, 421, `${host} ${path}`);
        assert.doesNotMatch(body, /form|issuer/);
      }
    }
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      assert.equal((await ask(`${name}:${url.port}`, '/.well-known/openid-configuration')).status, 200, name);
    }
  });
});
