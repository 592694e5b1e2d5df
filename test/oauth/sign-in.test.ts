import assert from 'node:assert/strict';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { type Browser, createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { type ForgedReturn, getCallbackUrl, startForgedSignIn } from '../support/oauth/forged-sign-in.ts';
import type { ForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import type { TestToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';

const hourS = 3600;

for (const basePath of ['', '/base']) {
  describe(`sign-in at ${basePath || 'the root of a host'}`, async () => {
    const port = String(await findFreePort());
    const env = { PORT: port, BASE_URL: `http://127.0.0.1:${port}${basePath}` };
    const { provider, toolhost, stop } = await startForgedSignIn({ env });
    after(stop);

    it('returns only to a page below the base URL, and to Home instead of any other [sec E8]', async () => {
      const home = `${basePath}/`;
      const pages = [`${home}calls?server=a%26b&tag=c`, `${home}servers/shop/`, home];
      const others = [
        ...['', 'servers', 'javascript:alert(1)', 'http://evil.example/', `${toolhost.url}/servers`],
        ...['//evil.example', '/\\evil.example', '/\t/evil.example', '\t//evil.example', '/.//evil.example'],
        ...[`${home}/evil.example`, `${home}x/..//evil.example`, `${home}..%2fevil`, `${home}%2e%2e%2fevil`],
        ...[`${home}a%5c..%5cevil`, `${home}%252e%252e/evil`],
        ...[`${home}${'a'.repeat(500)}`, `${home}?${'ä'.repeat(200)}`],
      ];
      const outside = ['/../evil', '/%2e%2e/evil', '/.%2E/evil', '/servers/../../evil', '/x\\..\\..\\evil'];
      const siblingPaths = basePath === '' ? [] : ['/servers', '/base', '/basement', '/BASE/servers'];
      const toCases = (target: string, paths: string[]) => paths.map((path) => [path, target] as const);
      const cases = [
        ...pages.flatMap((page) => toCases(page, [page])),
        ...toCases(home, [...others, ...siblingPaths]),
        ...outside.map((path) => [basePath + path, basePath === '' ? '/evil' : home] as const),
        ...toCases(`${home}calls`, [`${home}servers/../calls`]),
      ];
      for (const [returnTo, expected] of cases) {
        const browser = createBrowser();
        const login = `${toolhost.url}/login?return_to=${encodeURIComponent(returnTo)}`;
        const page = await browser.get(getCallbackUrl(provider, getNextUrl(await browser.get(login))));
        assert.equal(page.headers.get('location'), expected, returnTo);
      }
    });
  });
}

describe('responses of the identity provider at a sign-in', async () => {
  const { provider, toolhost, stop } = await startForgedSignIn();
  after(stop);

  /** Goes to the provider and returns with a forged ID token. */
  async function signIn(browser: Browser, options?: ForgedReturn) {
    const departure = getNextUrl(await browser.get(`${toolhost.url}/login`));
    const sent = ['code_challenge_method', 'response_type', 'client_id'].map((name) =>
      departure.searchParams.get(name),
    );
    assert.deepEqual(sent, ['S256', 'code', provider.clientId]);
    const back = getCallbackUrl(provider, departure, options);
    return { back, page: await browser.get(back) };
  }

  const getSession = (browser: Browser) => browser.cookies('127.0.0.1').get('toolhost-session');
  const getStatus = async (browser: Browser) => (await browser.get(`${toolhost.url}/api/v1/session`)).status;

  it('[sec E6] signs in the person that it identifies, once', async () => {
    const browser = createBrowser();
    const { back, page } = await signIn(browser);
    assert.equal(page.status, 302);
    assert.equal(await getStatus(browser), 200);
    assert.equal((await browser.get(back)).status, 403, 'the same response again');
  });

  const now = () => Math.floor(Date.now() / 1000);
  const rejected: [what: string, options: () => ForgedReturn, status?: number][] = [
    ['an ID token with another nonce', () => ({ forgery: { claims: { nonce: 'of-another-sign-in' } } })],
    ['an ID token with no nonce', () => ({ forgery: { claims: { nonce: undefined } } })],
    ['an ID token with another issuer', () => ({ forgery: { claims: { iss: 'https://id.evil.example' } } })],
    ['an ID token with another audience', () => ({ forgery: { claims: { aud: 'another-client' } } })],
    [
      'an ID token with several audiences and another azp',
      () => ({ forgery: { claims: { aud: [provider.clientId, 'x'], azp: 'x' } } }),
    ],
    [
      'an ID token with an expiry in the past',
      () => ({ forgery: { claims: { iat: now() - 2 * hourS, exp: now() - hourS } } }),
    ],
    ['an ID token with no expiry', () => ({ forgery: { claims: { exp: undefined } } })],
    ['an ID token with a not-before time in the future', () => ({ forgery: { claims: { nbf: now() + hourS } } })],
    ['an ID token with no subject', () => ({ forgery: { claims: { sub: undefined } } })],
    ['an ID token with no signature (alg none)', () => ({ forgery: { alg: 'none' } })],
    ['an ID token with a signature of another key', () => ({ forgery: { usesOtherKey: true } })],
    ['an ID token with a symmetric algorithm', () => ({ forgery: { alg: 'HS256' } })],
    ['a response with another state', () => ({ changed: { state: 'of-another-sign-in' } }), 403],
    ['a response of another issuer', () => ({ changed: { iss: 'https://id.evil.example' } })],
    ['an error', () => ({ changed: { error: 'access_denied', error_description: '<b>no</b>' } })],
  ];
  for (const [what, getOptions, status = 401] of rejected) {
    it(`[sec E6] rejects ${what}`, async () => {
      const browser = createBrowser();
      const { page } = await signIn(browser, getOptions());
      assert.equal(page.status, status, page.html);
      if (status === 401) assert.match(page.html, /sign-in failed/i);
      assert.doesNotMatch(page.html, /<b>|access_denied/);
      assert.equal(getSession(browser), undefined);
      assert.equal(await getStatus(browser), 401);
    });
  }

  it('[sec E6] creates no session in a browser that did not start the sign-in', async () => {
    const victim = createBrowser();
    const departure = getNextUrl(await createBrowser().get(`${toolhost.url}/login`));
    const page = await victim.get(getCallbackUrl(provider, departure));
    assert.equal(page.status, 403);
    assert.equal(getSession(victim), undefined);
  });

  const getSignInCookies = (browser: Browser) =>
    [...browser.cookies('127.0.0.1').keys()].filter((name) => name.startsWith('toolhost-sign-in'));

  it('[sec E6] completes the sign-ins of two tabs that were started at the same time, each in its own tab', async () => {
    const browser = createBrowser();
    // Neither request carries a cookie, because both are sent before a response arrives.
    const startSignIn = async () => getNextUrl(await browser.get(`${toolhost.url}/login`, { cookie: undefined }));
    const tabs = [await startSignIn(), await startSignIn()];
    for (const departure of tabs) {
      assert.equal((await browser.get(getCallbackUrl(provider, departure))).status, 302);
      assert.equal(await getStatus(browser), 200);
    }
    assert.deepEqual(getSignInCookies(browser), []);
  });

  it('[sec E6] keeps a pending sign-in when the response of another one arrives', async () => {
    const browser = createBrowser();
    const departure = getNextUrl(await browser.get(`${toolhost.url}/login`));
    const before = getSignInCookies(browser);
    const other = getCallbackUrl(provider, departure, { changed: { state: 'made-up' } });
    assert.equal((await browser.get(other)).status, 403);
    assert.deepEqual(getSignInCookies(browser), before);
    assert.equal((await browser.get(getCallbackUrl(provider, departure))).status, 302);
  });

  it('[find A5] leaves at most the newest five pending sign-ins in a browser, without long paths', async () => {
    const browser = createBrowser();
    const path = (length: number) => `/calls?slug=${'a'.repeat(length - '/calls?slug='.length)}`;
    const startSignIn = (length: number) =>
      browser.get(`${toolhost.url}/login?return_to=${encodeURIComponent(path(length))}`);
    for (let n = 0; n < 8; n++) await startSignIn(500);
    assert.equal(getSignInCookies(browser).length, 5);
    const all = [...browser.cookies('127.0.0.1')].map((pair) => pair.join('=')).join('; ');
    assert.ok(all.length < 8000, String(all.length));
    for (const [length, shown] of [
      [500, path(500)],
      [501, '/'],
    ] as const) {
      const page = await browser.get(getCallbackUrl(provider, getNextUrl(await startSignIn(length))));
      assert.equal(page.headers.get('location'), shown);
    }
  });

  it('[sec E6] creates a new session, whatever was planted in the browser before', async () => {
    const browser = createBrowser();
    await signIn(browser);
    const planted = getSession(browser) ?? '';
    const victim = createBrowser();
    await victim.get(`${toolhost.url}/login`);
    (victim.cookies('127.0.0.1') as Map<string, string>).set('toolhost-session', planted);
    await signIn(victim);
    assert.notEqual(getSession(victim), planted);
    assert.equal(await getStatus(victim), 200);
    assert.equal(await getStatus(browser), 401, 'the planted session has ended');
  });
});

describe('identity provider that is down when a person returns from it', () => {
  let provider: ForgedTokenProvider;
  let toolhost: TestToolhost;
  let stop: () => Promise<unknown>;
  beforeEach(async () => {
    ({ provider, toolhost, stop } = await startForgedSignIn());
  });
  afterEach(() => stop());

  async function startSignIn(options?: ForgedReturn) {
    const browser = createBrowser();
    const departure = getNextUrl(await browser.get(`${toolhost.url}/login`));
    return () => browser.get(getCallbackUrl(provider, departure, options));
  }

  async function startLogin() {
    const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage` });
    const browser = createBrowser();
    const departure = await browser.press(await browser.get(client.authorization().url), 'Allow and log in');
    return async () => getNextUrl(await browser.get(getCallbackUrl(provider, getNextUrl(departure)))).searchParams;
  }

  const outages: [what: string, fail: () => unknown][] = [
    ['refuses connections', () => provider.close()],
    ['responds to the code with 503', () => provider.setResponse('/token', 'down', 503)],
    ['responds to the code with 502', () => provider.setResponse('/token', '{"error":"invalid_grant"}', 502)],
    ['responds to the code with 429', () => provider.setResponse('/token', '{}', 429)],
    ['cannot return its keys', () => provider.setResponse('/keys', 'down', 500)],
  ];
  for (const [what, fail] of outages) {
    it(`asks the person to retry later, without an authentication error, when it ${what} [sec E6]`, async () => {
      const [toDashboard, toClient] = [await startSignIn(), await startLogin()];
      await fail();
      const page = await toDashboard();
      assert.equal(page.status, 503, page.html);
      assert.match(page.html, /identity provider does not respond; retry in a few seconds/i);
      const answer = await toClient();
      assert.deepEqual([answer.get('error'), answer.has('code')], ['temporarily_unavailable', false]);
    });
  }

  it("[find C4] accepts an agent's consent form again after an outage", async () => {
    const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage` });
    const browser = createBrowser();
    const form = await browser.get(client.authorization().url);
    provider.setResponse('/.well-known/openid-configuration', 'down', 503);
    const during = await browser.press(form, 'Allow and log in');
    assert.equal(during.status, 503);
    assert.match(during.html, /temporarily_unavailable/);
    provider.setResponse('/.well-known/openid-configuration');
    const departure = await browser.press(form, 'Allow and log in');
    const answer = getNextUrl(await browser.get(getCallbackUrl(provider, getNextUrl(departure)))).searchParams;
    assert.deepEqual([answer.get('error'), answer.has('code')], [null, true]);
  });

  it('may report the outage itself [sec E6]', async () => {
    for (const error of ['temporarily_unavailable', 'server_error'])
      assert.equal((await (await startSignIn({ changed: { error } }))()).status, 503, error);
  });

  it('is not considered down when it rejects the code or responds with nonsense [sec E6]', async () => {
    const refusals: [text: string, status: number][] = [
      ['{"error":"invalid_grant"}', 400],
      ['{"error":"invalid_client"}', 401],
      ['nonsense', 200],
      ['x'.repeat(300_000), 200],
    ];
    for (const [text, status] of refusals) {
      const [toDashboard, toClient] = [await startSignIn(), await startLogin()];
      provider.setResponse('/token', text, status);
      assert.equal((await toDashboard()).status, 401);
      assert.equal((await toClient()).get('error'), 'server_error');
    }
  });
});
