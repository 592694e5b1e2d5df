import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { createChallenge } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

describe('login at the provider', async () => {
  const world = await startLoginWorld();
  beforeEach(() => {
    world.provider.onLogin();
    world.provider.onToken();
    world.provider.takeLoginRequests();
    world.provider.takeTokenRequests();
  });
  after(() => world.stop());

  /** Completes a login. Returns the parameters that it sent to the provider's login page and token endpoint. */
  async function captureLogin(oauth: Json): Promise<{ login: Record<string, string>; form: Record<string, string> }> {
    const slug = await world.createServer({}, oauth);
    await world.logIn(await world.registerClient(slug));
    const [login] = world.provider.takeLoginRequests();
    const [call, ...more] = world.provider.takeTokenRequests();
    assert.deepEqual(more, []);
    // [find B8] This service rejects a request with toolhost-hop, in case the token URL leads back to it.
    const expectedHeaders = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' };
    assert.partialDeepStrictEqual(call?.request.headers, { ...expectedHeaders, 'toolhost-hop': '1' });
    for (const params of [call?.form, login])
      assert.equal(params?.get('redirect_uri'), `${world.issuer(slug)}/callback`);
    return { login: Object.fromEntries(login ?? []), form: Object.fromEntries(call?.form ?? []) };
  }

  it('[spec 4.4] sends the form that the specification defines, with PKCE and a new state for each login', async () => {
    const { login, form } = await captureLogin({});
    const { state, code_challenge, redirect_uri, ...rest } = login;
    const client_id = 'toolhost-at-the-provider';
    const { clientSecret: client_secret } = world.provider;
    const requested = { response_type: 'code', scope: 'read write', code_challenge_method: 'S256' };
    assert.deepEqual(rest, { client_id, ...requested });
    assert.match(state ?? '', /^\w{43}$/);
    const { code, code_verifier = '', ...fixed } = form;
    assert.deepEqual(fixed, { grant_type: 'authorization_code', client_id, client_secret, redirect_uri });
    assert.match(code ?? '', /^provider-code-\d+$/);
    assert.equal(createChallenge(code_verifier), code_challenge);
    const next = await captureLogin({});
    for (const name of ['state', 'code_challenge']) assert.notEqual(next.login[name], login[name]);
    assert.notEqual(next.form.code_verifier, code_verifier);
  });

  it('[spec 4.4] sends no verifier when PKCE is disabled', async () => {
    const { login, form } = await captureLogin({ pkce: false });
    assert.deepEqual(Object.keys(login).sort(), ['client_id', 'redirect_uri', 'response_type', 'scope', 'state']);
    assert.deepEqual(Object.keys(form).sort(), ['client_id', 'client_secret', 'code', 'grant_type', 'redirect_uri']);
  });

  it("[spec 4.4] sends the client's ID and secret as client_auth specifies", async () => {
    const client_id = 'the client:id';
    const client_secret = 'a+secret/%&=é';
    const pair = 'the+client%3Aid:a%2Bsecret%2F%25%26%3D%C3%A9';
    const basic = `Basic ${Buffer.from(pair).toString('base64')}`;
    const inForm = { client_id, client_secret };
    const cases: [oauth: Json, authorization: string | undefined, form: Json][] = [
      [inForm, undefined, inForm],
      [{ ...inForm, client_auth: 'body' }, undefined, inForm],
      [{ ...inForm, client_auth: 'basic' }, basic, {}],
      [{ client_id, client_auth: 'none', client_secret: undefined }, undefined, { client_id }],
    ];
    for (const [oauth, authorization, expected] of cases) {
      const { slug, client } = await world.createClient({}, oauth);
      const { refresh_token = '' } = await world.getTokens(client);
      world.advanceClock(3_600_000);
      assert.equal((await client.refresh(refresh_token)).status, 200);
      const requests = world.provider.takeTokenRequests();
      const grants = requests.map(({ form }) => form.get('grant_type'));
      assert.deepEqual(grants, ['authorization_code', 'refresh_token']);
      for (const { form, request } of requests) {
        const { client_id: id, client_secret: secret } = Object.fromEntries(form);
        const sent = { ...(id && { client_id: id }), ...(secret && { client_secret: secret }) };
        assert.deepEqual([request.headers.authorization, sent], [authorization, expected]);
      }
      assert.match(requests[0]?.form.get('code_verifier') ?? '', /^.{43}/);
      const stored = (await world.toolhost.rest('GET', `/servers/${slug}`)).body.config as { oauth: Json };
      assert.equal(stored.oauth.client_secret, oauth.client_secret === undefined ? undefined : '********');
    }
  });

  it('logs in at a token endpoint that requires Basic authentication, and suggests client_auth when it is not set', async () => {
    const basicAuth = `Basic ${Buffer.from(`toolhost-at-the-provider:${world.provider.clientSecret}`).toString('base64')}`;
    world.provider.onToken((_, { headers }) =>
      headers.authorization === basicAuth
        ? { body: { access_token: 'at-1', token_type: 'bearer', expires_in: 3600 } }
        : { status: 401, body: { error: 'invalid_client' } },
    );
    await world.logIn(await world.registerClient(await world.createServer({}, { client_auth: 'basic' })));
    const client = await world.registerClient(await world.createServer());
    const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
    assert.match(searchParams.get('error_description') ?? '', /it may require 'client_auth': 'basic' in oauth$/);
  });

  it('logs in and refreshes with JSON, other field names, and a refresh URL where the provider requires them', async () => {
    const requests: { url: string; type: string | undefined; body: Json }[] = [];
    world.provider.onToken((_, { url, headers, body }) => {
      requests.push({ url, type: headers['content-type'], body: JSON.parse(body.toString()) as Json });
      const number = requests.length;
      return { body: { accessToken: `access-${number}`, refreshToken: `refresh-${number}`, expireIn: 600 } };
    });
    const token_fields = {
      ...{
        client_id: 'clientId',
        client_secret: 'clientSecret',
        grant_type: 'grantType',
        refresh_token: 'refreshToken',
      },
      ...{ access_token: 'accessToken', expires_in: 'expireIn' },
    };
    const refresh_url = `${world.provider.oauth().token_url}?type=refresh`;
    const { slug, client } = await world.createClient({}, { token_request: 'json', token_fields, refresh_url });
    const tokens = await world.getTokens(client);
    for (const authorization of ['Bearer access-1', 'Bearer access-2']) {
      world.upstream.take();
      await world.callTool(slug, tokens.access_token);
      assert.equal(world.upstream.take()[0]?.headers.authorization, authorization);
      world.advanceClock(601_000);
    }
    const [login, refresh] = requests;
    assert.deepEqual([login?.url, refresh?.url], ['/token', '/token?type=refresh']);
    assert.deepEqual([login?.type, refresh?.type], ['application/json', 'application/json']);
    const credentials = { clientId: 'toolhost-at-the-provider', clientSecret: world.provider.clientSecret };
    assert.partialDeepStrictEqual(login?.body, { ...credentials, grantType: 'authorization_code' });
    assert.deepEqual(refresh?.body, { ...credentials, grantType: 'refresh_token', refreshToken: 'refresh-1' });
  });

  it('reads the token at token_path, which leads to the token itself or to its object', async () => {
    const authed_user = { access_token: 'of-the-person', token_type: 'user', expires_in: 600, refresh_token: 'r-1' };
    const response = { ok: true, access_token: 'of-the-bot', token_type: 'bot', refresh_token: 'r-bot', authed_user };
    for (const token_path of ['authed_user', 'authed_user.access_token', '.authed_user']) {
      world.provider.onToken(() => ({ body: response }));
      const { slug, client } = await world.createClient({}, { token_path });
      const tokens = await world.getTokens(client);
      world.upstream.take();
      await world.callTool(slug, tokens.access_token);
      assert.equal(world.upstream.take()[0]?.headers.authorization, 'Bearer of-the-person');
      // A refresh response contains one token, so Slack omits the path.
      world.provider.takeTokenRequests();
      world.provider.onToken(() => ({ body: { ...authed_user, access_token: 'refreshed' } }));
      world.advanceClock(601_000);
      await world.callTool(slug, tokens.access_token);
      assert.equal(world.provider.takeTokenRequests()[0]?.form.get('refresh_token'), 'r-1');
      assert.equal(world.upstream.take()[0]?.headers.authorization, 'Bearer refreshed');
    }
  });

  it('ends the login when token_path leads to no token, even if the response has one elsewhere', async () => {
    const bot = { access_token: 'of-the-bot', token_type: 'bot' };
    for (const authed_user of [undefined, null, { id: 'U1' }, { access_token: 5 }, []]) {
      const field = authed_user ? 'access_token' : 'authed_user';
      world.provider.onToken(() => ({ body: { ...bot, authed_user } }));
      const client = await world.registerClient(await world.createServer({}, { token_path: 'authed_user' }));
      const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
      const expected = `the token endpoint responded without a usable ${field}`;
      assert.equal(searchParams.get('error_description'), expected);
    }
  });

  it('adds token_params to the forms of a login and a refresh, and extra_params to the login page', async () => {
    const token_params = { resource: 'https://api.example.com', 'odd name': 'ü&=', scope: 'x' };
    const extra_params = { resource: 'https://api.example.com', nonce: 'n-1' };
    const client = await world.registerClient(await world.createServer({}, { token_params, extra_params }));
    const { refresh_token = '' } = await world.getTokens(client);
    world.advanceClock(3_600_000);
    await client.refresh(refresh_token);
    const forms = world.provider.takeTokenRequests().map(({ form }) => Object.fromEntries(form));
    assert.equal(forms.length, 2);
    for (const form of forms) assert.partialDeepStrictEqual(form, token_params);
    assert.partialDeepStrictEqual(Object.fromEntries(world.provider.takeLoginRequests()[0] ?? []), extra_params);
  });

  it('[spec 2.3] sends no scope if scopes are missing, and sends extra_params and the query of authorization_url', async () => {
    const { scopes: _, ...oauth } = world.provider.oauth();
    const url = `${world.provider.url}/authorize?tenant=a%20b`;
    const extra_params = { access_type: 'offline', prompt: 'consent', 'odd name': 'ü&=' };
    const { login } = await captureLogin({ ...oauth, scopes: undefined, authorization_url: url, extra_params });
    assert.partialDeepStrictEqual(login, { tenant: 'a b', ...extra_params });
    assert.equal('scope' in login, false);
  });

  it('[spec 2.3] keeps the spelling of the query of authorization_url, except of values that extra_params replaces', async () => {
    const query = 'tenant=a%20b&flag&x=1+2&prompt=login';
    const authorization_url = `${world.provider.url}/authorize?${query}`;
    const oauth = { authorization_url, extra_params: { prompt: 'consent' } };
    const browser = world.newBrowser();
    const client = await world.registerClient(await world.createServer({}, oauth));
    const page = await browser.press(await browser.get(client.authorization().url), 'Allow and log in');
    // RFC 6749 (3.1): the query of the authorization endpoint is retained.
    assert.match(getNextUrl(page).search, /^\?tenant=a%20b&flag&x=1\+2&prompt=consent&response_type=code&/);
  });

  const formType = { 'content-type': 'application/x-www-form-urlencoded' };
  const textType = { 'content-type': 'text/plain' };
  const validResponses: [what: string, response: CannedResponse, expiresIn: number][] = [
    ['JSON', { body: { access_token: 'a-token', token_type: 'bearer', expires_in: 600 } }, 600],
    ['a number as text', { body: { access_token: 'a-token', token_type: 'Bearer', expires_in: '600' } }, 600],
    ['no expires_in', { body: { access_token: 'a-token', token_type: 'bearer' } }, 3600],
    ['no token_type', { body: { access_token: 'a-token' } }, 3600],
    ['an expires_in of 0', { body: { access_token: 'a-token', expires_in: 0 } }, 3600],
    ['a boolean expires_in', { body: { access_token: 'a-token', expires_in: true } }, 3600],
    ['an infinite expires_in', { body: '{"access_token":"a-token","expires_in":1e999}' }, 3600],
    ['a null error', { body: { access_token: 'a-token', error: null } }, 3600],
    ['a status of 201', { status: 201, body: { access_token: 'a-token' } }, 3600],
    ['a form', { headers: formType, body: 'access_token=a-token&expires_in=600' }, 600],
    ['a form with the content type text/plain', { headers: textType, body: 'access_token=a-token' }, 3600],
  ];
  for (const [what, response, expiresIn] of validResponses) {
    it(`accepts a token response with ${what}`, async () => {
      world.provider.onToken(() => response);
      const slug = await world.createServer();
      const tokens = await world.getTokens(await world.registerClient(slug));
      assert.ok(tokens.expires_in <= expiresIn && tokens.expires_in > expiresIn - 60, String(tokens.expires_in));
      world.upstream.take();
      await world.callTool(slug, tokens.access_token);
      assert.equal(world.upstream.take()[0]?.headers.authorization, 'Bearer a-token');
    });
  }

  const markup = '<script>alert(1)</script>" \\ \u0000';
  const [accessToken, unavailable] = [{ access_token: 'a-token' }, 'temporarily_unavailable'];
  const invalidResponses: [what: string, response: CannedResponse, code?: string][] = [
    ['an error', { status: 400, body: { error: 'invalid_grant', error_description: markup } }],
    ['200 with an error', { body: { error: 'bad_verification_code', access_token: 'a-token' } }],
    ['200 with an error that is not a string', { body: { error: { code: 1 }, access_token: 'a-token' } }],
    ['markup as the error', { body: { error: markup } }],
    ['an error as a form', { headers: { 'content-type': 'text/plain' }, body: 'error=x&access_token=a' }],
    ['no access_token', { body: { token_type: 'bearer', expires_in: 600 } }],
    ['an empty access_token', { body: { access_token: '' } }],
    ['a number as access_token', { body: { access_token: 5 } }],
    ['an access_token that no header can carry', { body: { access_token: 'a\r\nX-Evil: 1' } }],
    ['a list', { body: [{ access_token: 'a-token' }] }],
    ['null', { body: 'null' }],
    ['an empty body', { body: '' }],
    ['an HTML page', { headers: { 'content-type': 'text/html' }, body: '<html>access_token=a</html>' }],
    ['a body that is too large', { body: { access_token: 'a-token', padding: 'x'.repeat(300_000) } }, unavailable],
    ['a redirect', { status: 307, headers: { location: '/elsewhere' }, body: accessToken }],
    ['status 500', { status: 500, body: accessToken }, unavailable],
    ['status 503 and a text', { status: 503, body: 'down' }, unavailable],
    ['status 429', { status: 429, body: {} }, unavailable],
  ];
  for (const [what, response, code = 'server_error'] of invalidResponses) {
    it(`[sec D14] ends the login with an error of this service when the token endpoint responds with ${what}`, async () => {
      world.provider.onToken(() => response);
      const slug = await world.createServer();
      const authorization = (await world.registerClient(slug)).authorization();
      const page = await world.returnFromProvider(authorization);
      const { error_description = '', ...params } = Object.fromEntries(getNextUrl(page).searchParams);
      assert.deepEqual(params, { error: code, state: authorization.state, iss: world.issuer(slug) });
      assert.match(error_description, /^[a-z0-9_' ]+$/i);
      assert.doesNotMatch(page.html, /<script|a-token/);
      assert.equal(world.provider.takeTokenRequests().length, 1, 'a code can be used once, so nothing is sent twice');
    });
  }

  it('[sec D14] reports errors of the provider’s login page with messages of this service', async () => {
    const { slug, client } = await world.createClient();
    const forwardedCodes = ['access_denied', 'temporarily_unavailable', 'invalid_scope'];
    for (const error of [...forwardedCodes, 'login_required', markup, '', undefined]) {
      const description = { error_description: markup, error_uri: 'https://evil.example' };
      world.provider.onLogin(() => (error === undefined ? { unexpected: 'x' } : { error, ...description }));
      const authorization = client.authorization();
      const page = await world.returnFromProvider(authorization);
      const { href, searchParams } = getNextUrl(page);
      const expectedError = error && forwardedCodes.includes(error) ? error : 'server_error';
      assert.deepEqual([searchParams.get('error'), searchParams.get('state')], [expectedError, authorization.state]);
      assert.deepEqual([searchParams.get('iss'), searchParams.has('error_uri')], [world.issuer(slug), false]);
      assert.doesNotMatch(page.html, /<script|evil/);
      assert.doesNotMatch(href, /alert|evil/);
    }
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it('[sec D14] reports to the client that the token endpoint cannot be reached', async (t) => {
    const down = await findFreePort();
    const unreachableWorld = await startLoginWorld({ egressPorts: [down] });
    t.after(() => unreachableWorld.stop());
    const slug = await unreachableWorld.createServer({}, { token_url: `http://127.0.0.1:${down}/token` });
    const authorization = (await unreachableWorld.registerClient(slug)).authorization();
    const { searchParams } = getNextUrl(await unreachableWorld.returnFromProvider(authorization));
    const reported = ['error', 'state', 'iss'].map((name) => searchParams.get(name));
    assert.deepEqual(reported, ['temporarily_unavailable', authorization.state, unreachableWorld.issuer(slug)]);
    assert.doesNotMatch(searchParams.get('error_description') ?? '', /127|\d{4}/);
  });

  it('records every login and every failed login in the audit log without a secret', async () => {
    const { slug, client } = await world.createClient();
    await world.logIn(client);
    world.provider.onToken(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    await world.returnFromProvider(client.authorization());
    const { db } = world.toolhost.running.app.runner;
    const events = await db.selectFrom('audit_events').selectAll().where('target', '=', slug).orderBy('at').execute();
    const logins = events.filter(({ actor_id }) => actor_id === 'oauth').map(({ operation }) => operation);
    assert.deepEqual(logins, ['login', 'loginFailed']);
    assert.doesNotMatch(JSON.stringify(events), /provider-(access|refresh|code)|client-secret/);
  });
});
