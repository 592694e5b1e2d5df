import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import {
  type Browser,
  type Changes,
  getNextUrl,
  getRedirectTarget,
  type Page,
  visibleText,
} from '../support/browser/browser.ts';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import { createChallenge } from '../support/oauth/oauth-client.ts';

const minuteMs = 60_000;

describe('consent', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  beforeEach(() => {
    world.provider.takeLoginRequests();
    world.provider.takeTokenRequests();
  });
  after(() => world.stop());

  /** Allows the client, up to the page that leads to the provider's login page. */
  async function goToProvider(browser: Browser): Promise<Page> {
    return browser.press(await browser.get(client.authorization().url), 'Allow and log in');
  }

  /** Returns the provider's redirect, before it reaches the service. */
  async function getProviderRedirect(browser: Browser): Promise<URL> {
    return getNextUrl(await browser.get(getNextUrl(await goToProvider(browser))));
  }

  function assertRefused(page: Page, status: number): void {
    assert.deepEqual([page.status, getRedirectTarget(page)], [status, undefined], page.html);
    assert.deepEqual(page.headers.getSetCookie(), []);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  }

  it('[sec D1] [mcp 46] asks for consent with the client, the server, and the scopes, before it leads to the provider', async () => {
    const browser = world.newBrowser();
    const page = await browser.get(client.authorization().url);
    assert.deepEqual([page.status, getRedirectTarget(page)], [200, undefined]);
    const text = visibleText(page);
    const hosts = [world.provider.url, world.upstream.url].map((url) => new URL(url).host);
    const parts = ['Test agent', 'agent.example', 'Things 1', world.issuer(slug), 'Local', 'read', 'write', ...hosts];
    for (const part of parts) assert.ok(text.includes(part), `${part}: ${text}`);
    assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    const fixed = ['x-frame-options', 'cache-control', 'x-content-type-options'].map((name) => page.headers.get(name));
    assert.deepEqual(fixed, ['DENY', 'no-store', 'nosniff']);
    const [cookie, ...others] = page.headers.getSetCookie();
    assert.match(cookie ?? '', /^toolhost-consent-[0-9a-f]{16}=\w{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    assert.deepEqual([others, world.provider.takeLoginRequests(), world.provider.takeTokenRequests()], [[], [], []]);

    const departure = await browser.press(page, 'Allow and log in');
    assert.equal(departure.status, 200);
    const { origin, pathname, searchParams } = getNextUrl(departure);
    assert.deepEqual([origin + pathname, searchParams.get('scope')], [`${world.provider.url}/authorize`, 'read write']);
    const loginCookie = departure.headers.getSetCookie()[0] ?? '';
    assert.match(loginCookie, /^toolhost-login-[0-9a-f]{16}=\w{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    assert.ok(!departure.html.includes(loginCookie.split(/[=;]/)[1] ?? ''));
  });

  it('warns when the redirect stays on the device, and does not let a scheme pose as a host', async () => {
    const warning = /a program on this device/;
    assert.doesNotMatch(visibleText(await world.newBrowser().get(client.authorization().url)), warning);
    for (const [redirectUri, shown] of [
      ['http://127.0.0.1:9/cb', '127.0.0.1:9'],
      ['com.evil://claude.ai/cb', 'com.evil://claude.ai'],
      ['com.example.agent:/cb', 'com.example.agent:'],
    ] as const) {
      const local = await world.registerClient(slug, { redirectUri });
      const text = visibleText(await world.newBrowser().get(local.authorization().url));
      assert.match(text, warning);
      assert.ok(text.includes(`Redirects to ${shown} `), text);
    }
  });

  it('[sec D2] [mcp 47] asks for consent for every client and at every login', async () => {
    const browser = world.newBrowser();
    await world.logIn(client, browser);
    world.provider.takeLoginRequests();
    const agents = { 'Test agent': client, 'Second agent': await world.registerClient(slug, { name: 'Second agent' }) };
    for (const [name, agent] of Object.entries(agents)) {
      const page = await browser.get(agent.authorization({ prompt: 'none' }).url);
      assert.deepEqual([page.status, getRedirectTarget(page)], [200, undefined]);
      assert.ok(visibleText(page).includes(name));
    }
    assert.deepEqual(world.provider.takeLoginRequests(), []);
  });

  it('[sec D] [sec D3] [mcp 48] stops a login that returns to a different browser than the one that consented', async () => {
    const [attacker, victim] = [world.newBrowser(), world.newBrowser()];
    const captured = getNextUrl(await goToProvider(attacker));
    // The victim has unfinished logins here and is logged in at the provider.
    await goToProvider(victim);
    const returned = getNextUrl(await victim.get(captured));
    assertRefused(await victim.get(returned), 403);
    assertRefused(await world.newBrowser().get(returned), 403);
    // The login still works for the attacker's own browser.
    assert.ok(getNextUrl(await attacker.get(returned)).searchParams.has('code'));
  });

  it("[sec D3] rejects the cookie of another login in place of the login's own", async () => {
    const [attacker, victim] = [world.newBrowser(), world.newBrowser()];
    const returned = await getProviderRedirect(attacker);
    await goToProvider(victim);
    const [[name] = []] = [...attacker.cookies('127.0.0.1')].filter(([key]) => key.startsWith('toolhost-login-'));
    const values = [...victim.cookies('127.0.0.1').values()];
    for (const value of [...values, '', 'x'])
      assertRefused(await victim.get(returned, { cookie: `${name}=${value}` }), 403);
    const own = attacker.cookies('127.0.0.1').get(name ?? '');
    assertRefused(await victim.get(returned, { cookie: `${name}=${own}; ${name}=planted` }), 403);
  });

  it('[sec D4] [mcp 46] rejects a form other than the one that this service showed to this browser', async () => {
    const [browser, other] = [world.newBrowser(), world.newBrowser()];
    const form = await browser.get(client.authorization().url);
    const [ownCookie] = browser.cookies('127.0.0.1').keys();
    const foreign = await other.get(client.authorization().url);
    const elsewhere = await world.registerClient(await world.createServer());
    const otherServer = await browser.get(elsewhere.authorization().url);
    const sealed = (page: Page) => /name="request" value="([^"]*)"/.exec(page.html)?.[1] ?? assert.fail();
    const own = sealed(form);
    const forged = `${own.slice(0, -4)}${own.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    const fields = [undefined, '', 'x', 'v1.a.b.c', sealed(foreign), sealed(otherServer), forged, own.slice(0, 40)];
    for (const request of fields)
      assertRefused(await browser.press(form, 'Allow and log in', { fields: { request } }), 403);
    const headers: Changes[] = [
      { cookie: undefined },
      { cookie: `${ownCookie}=` },
      { cookie: `${ownCookie}=${[...other.cookies('127.0.0.1').values()][0]}` },
      { cookie: [...other.cookies('127.0.0.1')].map(([name, value]) => `${name}=${value}`).join('; ') },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
    ];
    for (const change of headers)
      assertRefused(await browser.press(form, 'Allow and log in', { headers: change }), 403);
    const types = { 'content-type': 'application/json' };
    assertRefused(await browser.press(form, 'Allow and log in', { headers: types }), 400);
    for (const origin of ['https://evil.example', 'null', world.provider.url]) {
      const page = await browser.press(form, 'Allow and log in', { headers: { origin } });
      assert.deepEqual([page.status, getRedirectTarget(page)], [403, undefined], origin);
    }
    assert.deepEqual(world.provider.takeLoginRequests(), []);
    assert.equal((await browser.press(form, 'Allow and log in')).status, 200);
  });

  it('[sec D4] completes the logins of two tabs that were opened at the same time, each with its own cookie', async () => {
    const browser = world.newBrowser();
    const elsewhere = await world.registerClient(await world.createServer());
    // Neither request carries a cookie, because both are sent before a response arrives.
    const open = ({ url }: { url: URL }) => browser.get(url, { cookie: undefined });
    const tabs = [await open(client.authorization()), await open(elsewhere.authorization())];
    const returned: URL[] = [];
    for (const tab of tabs) {
      const page = await browser.press(tab, 'Allow and log in');
      returned.unshift(getNextUrl(await browser.get(getNextUrl(page))));
    }
    for (const url of returned) {
      const page = await browser.get(url);
      assert.ok(getNextUrl(page).searchParams.has('code'));
      assert.match(page.headers.getSetCookie()[0] ?? '', /^toolhost-login-\w+=; .*Max-Age=0$/);
    }
    assert.deepEqual([...browser.cookies('127.0.0.1').keys()], []);
  });

  it('[find A5] leaves at most the newest 20 form cookies and 20 login cookies in a browser', async () => {
    const browser = world.newBrowser();
    const counted = (prefix: string) =>
      [...browser.cookies('127.0.0.1').keys()].filter((name) => name.startsWith(prefix)).length;
    const forms: Page[] = [];
    for (let n = 0; n < 22; n++) forms.push(await browser.get(client.authorization().url));
    assert.equal(counted('toolhost-consent-'), 20);
    assert.equal((await browser.press(forms.at(-1) ?? assert.fail(), 'Cancel')).status, 200);
    assert.equal(counted('toolhost-consent-'), 19);
    for (let n = 0; n < 22; n++) await goToProvider(browser);
    assert.deepEqual([counted('toolhost-consent-'), counted('toolhost-login-')], [19, 20]);
  });

  it('[sec D4] accepts a form once, even after its login is over, and only for ten minutes', async () => {
    const browser = world.newBrowser();
    const form = await browser.get(client.authorization().url);
    const returned = getNextUrl(await browser.get(getNextUrl(await browser.press(form, 'Allow and log in'))));
    assertRefused(await browser.press(form, 'Allow and log in'), 403);
    assert.equal((await browser.get(returned)).status, 302);
    world.provider.takeTokenRequests();
    assertRefused(await browser.press(form, 'Allow and log in'), 403);
    const late = await browser.get(client.authorization().url);
    world.advanceClock(10 * minuteMs + 1000);
    assertRefused(await browser.press(late, 'Allow and log in'), 403);
  });

  it('reports a canceled login to the client with a page, not with a redirect after a form', async () => {
    const browser = world.newBrowser();
    const { url, state } = client.authorization();
    const page = await browser.press(await browser.get(url), 'Cancel');
    assert.deepEqual([page.status, page.headers.get('location')], [200, null]);
    const { href, searchParams } = getNextUrl(page);
    assert.ok(href.startsWith(`${client.redirectUri}?`));
    const expected = { error: 'access_denied', state, iss: world.issuer(slug) };
    assert.partialDeepStrictEqual(Object.fromEntries(searchParams), expected);
    assert.deepEqual([searchParams.has('code'), world.provider.takeLoginRequests()], [false, []]);
  });

  it('[mcp 42] appends to the query of a redirect URI, which stays as it is written (RFC 6749, 3.1.2)', async () => {
    const uri = 'https://agent.example/cb?a=%20b&flag&x=1+2&&y=%c3%bc%2f';
    const similar = 'https://agent.example/cb?State=NY&error.page=1&x=1;code=2&Code=3';
    for (const [registered, expected] of [
      [uri, uri],
      ['com.example.agent:cb?a=%20b', 'com.example.agent:cb?a=%20b'],
      // The response parameters replace existing ones, however the existing names are encoded.
      ['https://agent.example/cb?code=old&error=x&stat%65=y&iss=z&a=%20b', 'https://agent.example/cb?a=%20b'],
      [similar, similar],
    ] as const) {
      const agent = await world.registerClient(slug, { redirectUri: registered });
      const { href, searchParams } = getNextUrl(await world.returnFromProvider(agent.authorization()));
      assert.equal(href.slice(0, href.indexOf('&code=')), expected);
      assert.deepEqual([...searchParams.keys()].slice(-3), ['code', 'state', 'iss']);
      assert.equal(searchParams.get('iss'), world.issuer(slug));
      const browser = world.newBrowser();
      const cancelled = getNextUrl(await browser.press(await browser.get(agent.authorization().url), 'Cancel'));
      assert.equal(cancelled.href.slice(0, cancelled.href.indexOf('&error=')), expected);
    }
  });

  it('[mcp 42] keeps the state of a redirect URI when the request has none', async () => {
    const agent = await world.registerClient(slug, { redirectUri: 'https://agent.example/cb?state=own&code=old' });
    const { searchParams } = getNextUrl(await world.returnFromProvider(agent.authorization({ state: undefined })));
    assert.equal(searchParams.get('state'), 'own');
    assert.deepEqual([...searchParams.keys()], ['state', 'code', 'iss']);
  });

  it('[sec D12] [mcp 48] accepts a provider response once, with its state, in time, and at its server', async () => {
    const browser = world.newBrowser();
    const returned = await getProviderRedirect(browser);
    const changed = (change: (url: URL) => void) => {
      const url = new URL(returned);
      change(url);
      return browser.get(url);
    };
    assertRefused(await changed((url) => url.searchParams.delete('state')), 400);
    assertRefused(await changed((url) => url.searchParams.set('state', '')), 400);
    assertRefused(await changed((url) => url.searchParams.set('state', 'x'.repeat(43))), 400);
    assertRefused(await changed((url) => url.searchParams.append('state', 'x')), 400);
    const other = await world.createServer();
    assertRefused(await changed((url) => (url.pathname = `/mcp/${other}/callback`)), 400);
    assert.equal((await browser.get(returned)).status, 302);
    world.provider.takeTokenRequests();
    assertRefused(await browser.get(returned), 400);
    const late = await getProviderRedirect(browser);
    world.advanceClock(10 * minuteMs + 1000);
    assertRefused(await browser.get(late), 400);
  });

  it('[mcp 43] [sec D8] [find D5] reports an invalid parameter to the client with the value found and the allowed one, and shows nothing that could be a secret', async () => {
    const agent = await world.registerClient(slug, { redirectUri: 'http://127.0.0.1:9/cb' });
    const issuer = world.issuer(slug);
    const other = await world.createServer();
    const { origin } = new URL(issuer);
    const secret = 'x1'.repeat(30);
    const address = `it must be ${issuer}, the URL of this server, or the URL of one of its views`;
    const fragment = 'resource has a #fragment; remove it (RFC 8707, 2)';
    const [type, request, target] = ['unsupported_response_type', 'invalid_request', 'invalid_target'];
    const method = (found: string) => `code_challenge_method is ${found}; it must be 'S256' (PKCE)`;
    const pkce = (found: string) => `code_challenge is ${found}; it must be 43 characters of base64url (PKCE)`;
    const cases: [change: Changes, error: string, message: string][] = [
      [{ response_type: undefined }, request, `response_type is missing; it must be 'code'`],
      [{ response_type: 'token' }, type, `response_type is 'token'; it must be 'code'`],
      [{ response_type: secret }, type, `response_type is something else; it must be 'code'`],
      [{ response_mode: 'form_post' }, request, `response_mode is 'form_post'; it must be 'query' or absent`],
      [{ response_mode: 'fragment' }, request, `response_mode is 'fragment'; it must be 'query' or absent`],
      [{ request: 'eyJ' }, request, 'request is not supported; send the parameters themselves'],
      [
        { request_uri: 'https://agent.example/' },
        request,
        'request_uri is not supported; send the parameters themselves',
      ],
      [{ code_challenge: undefined, code_challenge_method: undefined }, request, method('missing')],
      [{ code_challenge_method: undefined }, request, method('missing')],
      [{ code_challenge_method: 'plain' }, request, method(`'plain'`)],
      [{ code_challenge: '' }, request, pkce('missing')],
      [{ code_challenge: 'x'.repeat(42) }, request, pkce('42 characters')],
      [{ code_challenge: `${createChallenge('x')}=` }, request, pkce('44 characters')],
      [{ code_challenge: secret }, request, pkce('60 characters')],
      [{ resource: `https://other.example/${secret}` }, target, `resource names another URL; ${address}`],
      [{ resource: `${origin}/mcp/x` }, target, `resource names ${origin}/mcp/x; ${address}`],
      [{ resource: `${origin}/mcp/x/y` }, target, `resource names ${origin}/mcp/x/y; ${address}`],
      [{ resource: `${origin}/files/${secret}` }, target, `resource names another URL; ${address}`],
      [{ resource: `${origin}/mcp/x/y/${secret}` }, target, `resource names another URL; ${address}`],
      [{ resource: `${origin}/mcp/x?k=${secret}` }, target, `resource names ${origin}/mcp/x; ${address}`],
      [{ resource: world.issuer(other) }, target, `resource names ${world.issuer(other)}; ${address}`],
      [{ resource: `${world.issuer(other)}?${issuer}` }, target, `resource names ${world.issuer(other)}; ${address}`],
      [{ resource: origin }, target, `resource names another URL; ${address}`],
      [{ resource: `${issuer}//` }, target, `resource names another URL; ${address}`],
      [{ resource: `${issuer}#` }, target, fragment],
      [{ resource: `${issuer}?a#b` }, target, fragment],
      [{ resource: `${issuer}#${secret}` }, target, fragment],
      [{ resource: 'x' }, target, `resource names something that is not a web address; ${address}`],
      [{ resource: secret }, target, `resource names something that is not a web address; ${address}`],
    ];
    for (const [change, error, message] of cases) {
      const { url, state } = agent.authorization(change);
      const { searchParams } = getNextUrl(await world.newBrowser().get(url));
      const reported = ['error', 'error_description', 'state'].map((name) => searchParams.get(name));
      assert.deepEqual(reported, [error, message, state]);
    }
    for (const [name, message] of [
      ['client_id', 'The parameter "client_id" occurs twice; send each parameter once.'],
      ['state', 'The parameter "state" occurs twice; send each parameter once.'],
      [secret, 'A parameter occurs twice; send each parameter once.'],
    ] as const) {
      const { url } = client.authorization(name === 'client_id' ? {} : { [name]: '1' });
      url.searchParams.append(name, '2');
      const page = await world.newBrowser().get(url);
      assertRefused(page, 400);
      assert.ok(visibleText(page).includes(message), message);
    }
  });

  it('[mcp 45] [sec D11] accepts its own URL as the resource, in any spelling and with any query, but only one resource', async () => {
    const issuer = world.issuer(slug);
    const queries = [`${issuer}?kb=sales`, `${issuer}/?a=1&b=%2F`, `${issuer}?`];
    for (const resource of [undefined, '', issuer, `${issuer}/`, issuer.replace('http', 'HTTP'), ...queries]) {
      const { status } = await world.newBrowser().get(client.authorization({ resource }).url);
      assert.equal(status, 200, String(resource));
    }
    const agent = await world.registerClient(slug, { redirectUri: 'http://127.0.0.1:9/cb' });
    const { url } = agent.authorization();
    url.searchParams.append('resource', world.issuer(await world.createServer()));
    assert.equal(getNextUrl(await world.newBrowser().get(url)).searchParams.get('error'), 'invalid_target');
  });

  it('[sec M9] cancels a login at every step when the server changes what the person consents to', async () => {
    const moved = await world.createServer();
    const [agent, browser] = [await world.registerClient(moved), world.newBrowser()];
    const moveTo = (host: string) => world.updateServer(moved, { tools: [createTool(`https://${host}/things`)] });
    const form = await browser.get(agent.authorization().url);
    await moveTo('collector.example.com');
    assertRefused(await browser.press(form, 'Allow and log in'), 403);
    const shown = await browser.get(agent.authorization().url);
    assert.match(visibleText(shown), /collector\.example\.com/);
    const returned = getNextUrl(await browser.get(getNextUrl(await browser.press(shown, 'Allow and log in'))));
    await moveTo('other.example.com');
    const { searchParams } = getNextUrl(await browser.get(returned));
    assert.deepEqual([searchParams.get('error'), searchParams.has('code')], ['access_denied', false]);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it('[conf 3] cancels a login when a variable of base_url moves the host that its token goes to', async () => {
    const at = (host: string) => ({ variables: { host: { value: host } } });
    const tools = [createTool('/things')];
    const moved = await world.createServer({ base_url: 'https://{{host}}/v1', tools, ...at('api.example.com') });
    const [agent, browser] = [await world.registerClient(moved), world.newBrowser()];
    const form = await browser.get(agent.authorization().url);
    assert.match(visibleText(form), /api\.example\.com/);
    await world.updateServer(moved, at('collector.example.com'));
    assertRefused(await browser.press(form, 'Allow and log in'), 403);
    assert.match(visibleText(await browser.get(agent.authorization().url)), /collector\.example\.com/);
  });
});
