import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { getNextUrl, visibleText } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('values and quirks of a login', async () => {
  const userinfo = await startRecordingUpstream();
  const world = await startLoginWorld({ egressPorts: [userinfo.port] });
  const userinfo_url = `${userinfo.url}/accounts`;
  const refuse = () => assert.fail('the token endpoint was called');
  beforeEach(() => {
    world.provider.onLogin();
    world.provider.onToken();
    world.provider.takeTokenRequests();
    userinfo.take();
    world.upstream.take();
  });
  after(async () => {
    await world.stop();
    await userinfo.close();
  });

  /** Starts a login that must fail. Returns the error that the client receives. */
  async function failLogin(oauth: Json): Promise<string> {
    const { client } = await world.createClient({}, oauth);
    const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
    assert.equal(searchParams.get('code'), null);
    return searchParams.get('error_description') ?? '';
  }

  it('reads the code from code_parameter, and repeats callback_values in the token request and in every refresh', async () => {
    world.provider.onLogin(() => ({ spapi_oauth_code: 'the-code', device_id: 'device-1' }));
    const forms: URLSearchParams[] = [];
    world.provider.onToken((form) => {
      forms.push(form);
      return { body: { access_token: `at-${forms.length}`, refresh_token: `rt-${forms.length}`, expires_in: 600 } };
    });
    const oauth = { code_parameter: 'spapi_oauth_code', callback_values: ['device_id'] };
    const { slug, client } = await world.createClient({}, oauth);
    const { access_token } = await world.getTokens(client);
    for (const _ of [1, 2]) {
      world.advanceClock(601_000);
      await world.callTool(slug, access_token);
    }
    assert.equal(forms[0]?.get('code'), 'the-code');
    assert.deepEqual(
      forms.map((form) => [form.get('grant_type'), form.get('device_id')]),
      [
        ['authorization_code', 'device-1'],
        ['refresh_token', 'device-1'],
        ['refresh_token', 'device-1'],
      ],
    );
  });

  it('sends the login token with token_prefix, or alone', async () => {
    for (const [token_prefix, expected] of [
      ['OAuth', /^OAuth provider-access-\d+$/],
      ['', /^provider-access-\d+$/],
    ] as const) {
      const { slug, client } = await world.createClient({}, { token_prefix });
      const { access_token } = await world.getTokens(client);
      await world.callTool(slug, access_token);
      assert.match(world.upstream.take()[0]?.headers.authorization ?? '', expected);
    }
  });

  it('ends a login before the code is sent if the callback names another token endpoint, or lacks a value', async () => {
    const token_url = 'https://accounts.example.com/token';
    const token_url_from = { from: 'callback.server', hosts: ['accounts.example.com'], path: '/token' };
    world.provider.onToken(refuse);
    const servers = ['https://accounts.example.org', 'http://accounts.example.com', 'https://accounts.example.com/'];
    for (const server of [...servers, 'https://accounts.example.com:8443', 'https://a@accounts.example.com', '']) {
      world.provider.onLogin(() => ({ code: 'c', server }));
      assert.match(await failLogin({ token_url, token_url_from }), /named a token endpoint that this server does not/);
    }
    world.provider.onLogin(() => ({ code: 'c' }));
    assert.match(await failLogin({ callback_values: ['device_id'] }), /sent no usable device_id in the callback/);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it('ends a login without a value, or with one that its hosts and its pattern do not allow', async () => {
    const hosts = ['*.my.example.com'];
    const origins = [
      'https://evil.example',
      'https://a.b.my.example.com',
      'https://xn--a.my.example.com',
      'http://a.my.example.com',
    ];
    const cases: [source: unknown, token: Json][] = [
      ['token.team.id', {}],
      ['token.team.id', { team: { id: '..' } }],
      ['token.team.id', { team: { id: 'a\nb' } }],
      ['token.team.id', { team: { id: { x: 1 } } }],
      ['token.team.id', { team: { id: 12345678901234567890n.toString().repeat(60) } }],
      ...origins.map((origin): [unknown, Json] => [{ from: 'token.url', hosts }, { url: origin }]),
      [{ from: 'token.url', hosts }, { url: 'https://a.my.example.com/path' }],
      [{ from: 'token.context', pattern: 'stores/([a-z]+)' }, { context: 'stores/1' }],
      [{ from: 'token.context', pattern: '(a*)*b' }, { context: 'a'.repeat(999) }],
    ];
    for (const [source, more] of cases) {
      world.provider.onToken(() => ({ body: { access_token: 'at', token_type: 'bearer', ...more } }));
      const isPattern = typeof source === 'object' && JSON.stringify(source).includes('*)*');
      const value = isPattern ? { from: 'token.context', pattern: '((?:a*)*)b' } : source;
      assert.match(
        await failLogin({ values: { site: value } }),
        /sent no usable value for site$/,
        JSON.stringify(more),
      );
    }
  });

  it('lets a person with several accounts choose one, and uses the only one without asking', async () => {
    const oauth = { userinfo_url, values: { tenant: 'userinfo.0.tenantId' } };
    const entries = [
      { tenantId: 't-1', tenantName: 'Acme <b>Ltd</b>' },
      { tenantName: 'without an id' },
      { tenantId: 't-2', tenantName: 'Globex' },
    ];
    userinfo.on('GET /accounts', () => ({ body: entries }));
    const { client } = await world.createClient({}, oauth);
    const browser = world.newBrowser();
    const { url, verifier } = client.authorization();
    const page = await world.returnFromProvider({ url, verifier, state: '' }, browser);
    assert.match(userinfo.take()[0]?.headers.authorization ?? '', /^Bearer provider-access-\d+$/);
    assert.match(visibleText(page), /Choose an account .* Acme <b>Ltd<\/b> .*Globex/);
    assert.ok(!page.html.includes('<b>Ltd') && !page.html.includes('<script'));
    assert.ok(!visibleText(page).includes('without an id'));

    // Another browser, another site, and a second time are refused.
    const fields = { account: '1' };
    assert.equal((await world.newBrowser().press(page, 'Continue', { fields })).status, 403);
    const headers = { 'sec-fetch-site': 'cross-site' };
    assert.equal((await browser.press(page, 'Continue', { fields, headers })).status, 403);
    const done = await browser.press(page, 'Continue', { fields });
    const code = getNextUrl(done).searchParams.get('code') ?? assert.fail(done.html);
    assert.equal((await client.redeem(code, verifier)).status, 200);
    assert.equal((await browser.press(page, 'Continue', { fields })).status, 403);

    const canceled = await world.returnFromProvider(client.authorization(), browser);
    const { searchParams } = getNextUrl(await browser.press(canceled, 'Cancel'));
    assert.equal(searchParams.get('error'), 'access_denied');

    entries.length = 1;
    await world.logIn(client);
  });

  it('shows at most 100 accounts, and ends the login if there is none or userinfo fails', async () => {
    const oauth = { userinfo_url, values: { account: 'userinfo.accounts.0.id' } };
    const accounts = Array.from({ length: 120 }, (_, id) => ({ id: id + 1, name: `Account ${id + 1}` }));
    userinfo.on('GET /accounts', () => ({ body: { accounts } }));
    const { client } = await world.createClient({}, oauth);
    const page = await world.returnFromProvider(client.authorization());
    assert.equal([...page.html.matchAll(/type="radio"/g)].length, 100);
    const failures: [Json, RegExp][] = [
      [{ body: { accounts: [] } }, /has no account at the provider/],
      [{ body: 'no JSON' }, /is not JSON/],
      [{ status: 403, body: {} }, /responded with status 403/],
      [{ status: 503, body: {} }, /responded with status 503/],
    ];
    for (const [response, expected] of failures) {
      userinfo.on('GET /accounts', () => response);
      assert.match(await failLogin(oauth), expected);
    }
  });

  it('checks values again after a refresh, and ends the login if one is no longer allowed', async () => {
    let url = 'https://a.my.example.com';
    let count = 0;
    world.provider.onToken(() => ({
      body: { access_token: `at-${++count}`, refresh_token: 'rt', expires_in: 600, ...(url && { url }) },
    }));
    const { slug, client } = await world.createClient(
      {},
      { values: { site: { from: 'token.url', hosts: ['*.my.example.com'] } } },
    );
    const { access_token } = await world.getTokens(client);
    const isAccepted = async () => {
      world.advanceClock(601_000);
      return (await world.listTools(slug, access_token)).status === 200;
    };
    url = '';
    assert.ok(await isAccepted());
    url = 'https://b.my.example.com';
    assert.ok(await isAccepted());
    url = 'https://evil.example';
    assert.ok(!(await isAccepted()));
  });

  it('requires the client secret again when token_url_from adds a host', async () => {
    const token_url = 'https://accounts.example.com/token';
    const token_url_from = { from: 'callback.server', hosts: ['accounts.example.com'], path: '/token' };
    const slug = await world.createServer({}, { token_url, token_url_from });
    const { oauth } = (await world.toolhost.rest('GET', `/servers/${slug}`)).body.config as { oauth: Json };
    assert.equal(oauth.client_secret, '********');
    const changed = {
      ...oauth,
      token_url_from: { ...token_url_from, hosts: ['accounts.example.com', 'accounts.example.org'] },
    };
    const { status, text } = await world.toolhost.rest('PATCH', `/servers/${slug}`, { body: { oauth: changed } });
    assert.equal(status, 400, text);
    assert.match(text, /oauth\.client_secret: the token endpoint moves to another host; send the client secret again/);
    await world.updateServer(slug, { oauth: { ...changed, client_secret: world.provider.clientSecret } });
  });

  it('allows only GET for a callback that expects no form, also from another site', async () => {
    const slug = await world.createServer();
    const reply = await fetch(`${world.issuer(slug)}/callback`, {
      method: 'POST',
      headers: { origin: 'https://appleid.apple.com', 'content-type': 'application/x-www-form-urlencoded' },
      body: 'code=x&state=y',
    });
    assert.deepEqual([reply.status, reply.headers.get('allow')], [405, 'GET']);
    assert.equal(reply.headers.get('access-control-allow-origin'), null);
  });
});
