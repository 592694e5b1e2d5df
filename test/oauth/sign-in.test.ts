import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, createBrowser, next } from '../support/browser/browser.ts';
import { type Forgery, type ForgingProvider, startForgingProvider } from '../support/oauth/forging-provider.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const hourS = 3600;

describe('answers of the identity provider at a sign-in', () => {
  let provider: ForgingProvider;
  let toolhost: TestToolhost;
  before(async () => {
    provider = await startForgingProvider();
    const env = { OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: provider.clientId, OIDC_CLIENT_SECRET: 'of-the-client' };
    toolhost = await startToolhost({ env });
  });
  after(() => Promise.all([toolhost.stop(), provider.close()]));

  /** Goes to the provider and comes back with the ID token that is forged so. */
  async function signIn(browser: Browser, forgery: Forgery = {}, changed: Record<string, string> = {}) {
    const { searchParams: sent } = next(await browser.get(`${toolhost.url}/login`));
    assert.deepEqual(
      [sent.get('code_challenge_method'), sent.get('response_type'), sent.get('client_id')],
      ['S256', 'code', provider.clientId],
    );
    provider.issue(sent.get('nonce') ?? assert.fail('a sign-in has a nonce'), forgery);
    const back = new URL(`${toolhost.url}/login/callback`);
    const answer = { code: 'of-the-provider', state: sent.get('state') ?? '', iss: provider.url, ...changed };
    back.search = new URLSearchParams(answer).toString();
    return { back, page: await browser.get(back) };
  }

  const sessionOf = (browser: Browser) => browser.cookies('127.0.0.1').get('toolhost-session');
  const statusOf = async (browser: Browser) => (await browser.get(`${toolhost.url}/api/v1/session`)).status;

  it('[sec E6] lets in whom it vouches for, once', async () => {
    const browser = createBrowser();
    const { back, page } = await signIn(browser);
    assert.equal(page.status, 302);
    assert.equal(await statusOf(browser), 200);
    assert.equal((await browser.get(back)).status, 403, 'the same answer again');
  });

  const now = () => Math.floor(Date.now() / 1000);
  const forgeries: [string, () => Forgery][] = [
    ['another nonce', () => ({ claims: { nonce: 'of-another-sign-in' } })],
    ['no nonce', () => ({ claims: { nonce: undefined } })],
    ['another issuer', () => ({ claims: { iss: 'https://id.evil.example' } })],
    ['another audience', () => ({ claims: { aud: 'another-client' } })],
    ['several audiences, meant for another one', () => ({ claims: { aud: [provider.clientId, 'x'], azp: 'x' } })],
    ['an expiry that has passed', () => ({ claims: { iat: now() - 2 * hourS, exp: now() - hourS } })],
    ['no expiry', () => ({ claims: { exp: undefined } })],
    ['a beginning in the future', () => ({ claims: { nbf: now() + hourS } })],
    ['no subject', () => ({ claims: { sub: undefined } })],
    ['no signature (alg none)', () => ({ alg: 'none' })],
    ['a signature of another key', () => ({ isOtherKey: true })],
    ['a symmetric algorithm', () => ({ alg: 'HS256' })],
  ];
  for (const [what, forgery] of forgeries) {
    it(`[sec E6] refuses an ID token with ${what}`, async () => {
      const browser = createBrowser();
      const { page } = await signIn(browser, forgery());
      assert.equal(page.status, 401, page.html);
      assert.match(page.html, /sign-in did not succeed/i);
      assert.equal(sessionOf(browser), undefined);
      assert.equal(await statusOf(browser), 401);
    });
  }

  it('[sec E6] refuses an answer with another state, of another issuer, or an error', async () => {
    for (const changed of [
      { state: 'of-another-sign-in' },
      { iss: 'https://id.evil.example' },
      { error: 'access_denied', error_description: '<b>no</b>' },
    ]) {
      const browser = createBrowser();
      const { page } = await signIn(browser, {}, changed);
      assert.equal(page.status, 401, JSON.stringify(changed));
      assert.doesNotMatch(page.html, /<b>|access_denied/);
      assert.equal(sessionOf(browser), undefined);
    }
  });

  it('[sec E6] gives no session to a browser that did not begin the sign-in', async () => {
    const victim = createBrowser();
    const { searchParams: sent } = next(await createBrowser().get(`${toolhost.url}/login`));
    provider.issue(sent.get('nonce') ?? '');
    const query = new URLSearchParams({ code: 'x', state: sent.get('state') ?? '', iss: provider.url });
    const page = await victim.get(`${toolhost.url}/login/callback?${query}`);
    assert.equal(page.status, 403);
    assert.equal(sessionOf(victim), undefined);
  });

  it('[sec E6] makes a session of its own, whatever was planted in the browser before', async () => {
    const browser = createBrowser();
    await signIn(browser);
    const planted = sessionOf(browser) ?? '';
    const victim = createBrowser();
    await victim.get(`${toolhost.url}/login`);
    (victim.cookies('127.0.0.1') as Map<string, string>).set('toolhost-session', planted);
    await signIn(victim);
    assert.notEqual(sessionOf(victim), planted);
    assert.equal(await statusOf(victim), 200);
    assert.equal(await statusOf(browser), 401, 'the planted session is over');
  });
});
