import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CookieBrowser, createCookieBrowser } from '../support/browser/cookie-browser.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Signs in with one click. Returns the path of the final page. */
async function signIn(browser: CookieBrowser, base: string, returnTo = '/'): Promise<string> {
  const url = `${base}/login?return_to=${encodeURIComponent(returnTo)}`;
  const headers = { 'sec-fetch-site': 'same-origin' };
  const { response } = await browser.open(url, { method: 'POST', headers });
  assert.equal(response.status, 303);
  const target = new URL(response.headers.get('location') ?? '', url);
  assert.equal(target.origin, base);
  return target.pathname;
}

describe('the dashboard sign-in', () => {
  const toolhost = useFixtures().start(() => startToolhost());

  const api = async (browser: CookieBrowser, method: string, path: string, headers: Record<string, string> = {}) => {
    const { response, html } = await browser.open(`${toolhost.url}/api/v1${path}`, { method, headers });
    return { status: response.status, body: JSON.parse(html) as Record<string, unknown> };
  };

  it('redirects to the requested page', async () => {
    const browser = createCookieBrowser();
    assert.equal((await api(browser, 'GET', '/session')).status, 401);
    assert.equal(await signIn(browser, toolhost.url, '/servers'), '/servers');
    const { status, body } = await api(browser, 'GET', '/session');
    assert.equal(status, 200);
    assert.deepEqual((body.workspace as { id: string; role: string }).role, 'owner');
    assert.equal((await api(browser, 'GET', '/servers')).status, 200);
  });

  it('[sec E6] issues a new session with every sign-in and ends it at sign-out', async () => {
    const browser = createCookieBrowser();
    const { host } = new URL(toolhost.url);
    await signIn(browser, toolhost.url);
    const first = browser.cookies(host).get('toolhost-session');
    await signIn(browser, toolhost.url);
    const second = browser.cookies(host).get('toolhost-session');
    assert.notEqual(first, second);
    browser.cookies(host).set('toolhost-session', first ?? '');
    assert.equal((await api(browser, 'GET', '/session')).status, 401, 'the earlier session still works');
    browser.cookies(host).set('toolhost-session', second ?? '');
    const headers = { 'sec-fetch-site': 'same-origin' };
    const signOut = await browser.open(`${toolhost.url}/logout`, { method: 'POST', headers });
    assert.equal(signOut.response.status, 303);
    browser.cookies(host).set('toolhost-session', second ?? '');
    assert.equal((await api(browser, 'GET', '/session')).status, 401);
  });

  it('[sec E6] rejects changes that do not come from its own pages', async () => {
    const browser = createCookieBrowser();
    await signIn(browser, toolhost.url);
    const crossSite = { 'sec-fetch-site': 'cross-site' };
    const cases: [headers: Record<string, string>, status: number][] = [
      [{}, 403],
      [crossSite, 403],
      [{ 'sec-fetch-site': 'same-origin' }, 404],
      [{ origin: toolhost.url }, 404],
    ];
    for (const [headers, status] of cases)
      assert.equal((await api(browser, 'DELETE', '/keys/key_none', headers)).status, status, JSON.stringify(headers));
    const signOut = await browser.open(`${toolhost.url}/logout`, { method: 'POST', headers: crossSite });
    assert.equal(signOut.response.status, 403);
  });

  it('[sec E6] rejects a callback with a foreign state', async () => {
    const other = await createCookieBrowser().open(`${toolhost.url}/login/callback?code=x&state=y`);
    assert.equal(other.response.status, 403);
    assert.match(other.html, /another browser/);
  });

  it('never redirects to another site', async () => {
    for (const target of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)']) {
      assert.equal(await signIn(createCookieBrowser(), toolhost.url, target), '/', target);
    }
  });

  it('refuses to remove the only owner, and lists members to people but not to API keys', async () => {
    const browser = createCookieBrowser();
    await signIn(browser, toolhost.url);
    const { body } = await api(browser, 'GET', '/members');
    const [owner] = body.members as { id: string }[];
    const ownOriginHeaders = { 'sec-fetch-site': 'same-origin' };
    assert.equal((await api(browser, 'DELETE', `/members/${owner?.id}`, ownOriginHeaders)).status, 409);
    assert.equal((await toolhost.rest('GET', '/members')).status, 403, 'an API key could list members');
  });
});
