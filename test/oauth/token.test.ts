import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import type { Changes } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, expectTokens, post } from '../support/oauth/oauth-client.ts';

const minuteMs = 60_000;

describe('token endpoint', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  beforeEach(() => {
    world.upstream.take();
  });
  after(() => world.stop());

  it('[mcp 50] [mcp 52] [sec A3] returns its own tokens as JSON with Cache-Control: no-store, and sends only the provider’s token upstream', async () => {
    const { code, verifier } = await world.logIn(client);
    const reply = await client.redeem(code, verifier);
    assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
    assert.equal(reply.headers.get('cache-control'), 'no-store');
    const { access_token, refresh_token, ...rest } = expectTokens(reply);
    assert.match(access_token, /^tha_\w{43}$/);
    assert.match(refresh_token, /^thr_\w{43}$/);
    assert.deepEqual(rest, { token_type: 'Bearer', expires_in: 3600, scope: 'read write' });
    assert.notEqual((await world.callTool(slug, access_token)).isError, true);
    const [request] = world.upstream.take();
    assert.match(request?.headers.authorization ?? '', /^Bearer provider-access-\d+$/);
    const sent = [request?.url, ...(request?.rawHeaders ?? []), request?.body.toString()].join('\n');
    for (const own of [access_token, refresh_token]) assert.ok(!sent.includes(own.slice(4)));
    const raw = request?.headers.authorization?.replace('Bearer ', '');
    assert.equal((await world.listTools(slug, raw)).status, 401, "the provider's token is not a token of this server");
    assert.equal((await world.listTools(slug, refresh_token)).status, 401, 'a refresh token is not an access token');
  });

  it('[mcp 50] reports fewer scopes if the provider granted fewer, even after a refresh that names none (RFC 6749, 5.1)', async (t) => {
    const agent = await world.registerClient(await world.createServer({}, { scopes: ['read,all'] }));
    assert.equal((await world.getTokens(agent)).scope, 'read,all', 'a comma of the server stays');
    t.after(() => world.provider.onToken());
    const granted = (scope: string | undefined) =>
      world.provider.onToken((form) => {
        const { status = 200, body } = world.provider.createTokenResponse(form);
        return { status, body: { ...(body as object), scope } };
      });
    for (const [scope, expectedScope] of [
      [undefined, 'read write'],
      ['read', 'read'],
      ['write read', 'write read'],
      ['read,write', 'read write'],
      ['read offline_access', 'read'],
      ['', 'read write'],
      // Clients reject scopes that they did not request, and Google and Entra return URLs for their short scope names.
      ['read https://provider.example/write', 'read write'],
      ['read more', 'read write'],
      ['read, more', 'read write'],
    ] as const) {
      granted(scope);
      const first = await world.getTokens(client);
      assert.equal(first.scope, expectedScope);
      world.advanceClock(61 * minuteMs);
      granted(undefined);
      world.provider.takeTokenRequests();
      assert.equal(expectTokens(await client.refresh(first.refresh_token)).scope, expectedScope);
      assert.equal(world.provider.takeTokenRequests().length, 1);
    }
  });

  it('[sec A3] expires an access token after an hour', async () => {
    const { access_token } = await world.getTokens(client);
    // Real time passes too, so a minute is left for a busy machine.
    world.advanceClock(59 * minuteMs);
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    world.advanceClock(minuteMs + 1000);
    const { status, headers } = await world.listTools(slug, access_token);
    assert.equal(status, 401);
    assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/);
  });

  it('[mcp 49] [sec D9] accepts a code once, and revokes its tokens when it is sent again with its verifier', async () => {
    const { code, verifier } = await world.logIn(client);
    const { access_token, refresh_token } = expectTokens(await client.redeem(code, verifier));
    assertOAuthError(await client.redeem(code, 'w'.repeat(43)), 400, 'invalid_grant');
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    assertOAuthError(await client.redeem(code, verifier), 400, 'invalid_grant');
    assert.equal((await world.listTools(slug, access_token)).status, 401);
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
  });

  it('[sec D9] rejects a code after a minute', async () => {
    const { code, verifier } = await world.logIn(client);
    world.advanceClock(minuteMs + 1000);
    assertOAuthError(await client.redeem(code, verifier), 400, 'invalid_grant');
  });

  it('[sec D8] [sec D11] [mcp 49] rejects a code with a different verifier, redirect URI, client, server, or resource', async () => {
    const { code, verifier } = await world.logIn(client);
    const other = await world.registerClient(slug);
    const elsewhere = await world.registerClient(await world.createServer());
    const wrong: Changes[] = [
      { code_verifier: undefined },
      { code_verifier: '' },
      { code_verifier: 'w'.repeat(43) },
      { code_verifier: verifier.slice(0, 42) },
      { code_verifier: `${verifier}\n` },
      { redirect_uri: 'https://agent.example/other' },
      { redirect_uri: `${client.redirectUri}/` },
      { client_id: other.id },
      { code: `${code}x` },
      { code: code.toLowerCase() },
    ];
    for (const change of wrong) assertOAuthError(await client.redeem(code, verifier, change), 400, 'invalid_grant');
    assertOAuthError(await elsewhere.redeem(code, verifier), 400, 'invalid_grant');
    const resource = elsewhere.authorization().url.href;
    assertOAuthError(await client.redeem(code, verifier, { resource }), 400, 'invalid_target');
    expectTokens(await client.redeem(code, verifier, { resource: undefined }));
  });

  it('[mcp 49] accepts a code without redirect_uri, which PKCE binds to its client, and a resource with a query', async () => {
    for (const redirect_uri of [undefined, '']) {
      const { code, verifier } = await world.logIn(client);
      assertOAuthError(await client.redeem(code, 'w'.repeat(43), { redirect_uri }), 400, 'invalid_grant');
      const resource = `${world.issuer(slug)}?kb=sales`;
      const { refresh_token } = expectTokens(await client.redeem(code, verifier, { redirect_uri, resource }));
      expectTokens(await client.refresh(refresh_token, { resource }));
    }
  });

  it('[sec D8] rejects a code with another port of its loopback redirect URI', async () => {
    const native = await world.registerClient(slug, { redirectUri: 'http://127.0.0.1/cb' });
    const { code, verifier } = await world.logIn(native);
    const redirect_uri = 'http://127.0.0.1:99/cb';
    assertOAuthError(await native.redeem(code, verifier, { redirect_uri }), 400, 'invalid_grant');
    expectTokens(await native.redeem(code, verifier));
  });

  it('[mcp 53] returns 401 invalid_client to a client that is not known here', async () => {
    const { code, verifier } = await world.logIn(client);
    const elsewhere = await world.registerClient(await world.createServer());
    for (const client_id of ['unknown', elsewhere.id, `${client.id}x`]) {
      assertOAuthError(await client.redeem(code, verifier, { client_id }), 401, 'invalid_client');
      assertOAuthError(await client.refresh('thr_x', { client_id }), 401, 'invalid_client');
      assertOAuthError(await client.revoke('tha_x', { client_id }), 401, 'invalid_client');
    }
    expectTokens(await client.redeem(code, verifier));
  });

  it('[mcp 62] returns invalid_request for a request without a required parameter', async () => {
    for (const empty of [undefined, '']) {
      for (const [name, reply] of [
        ['client_id', await client.redeem('c', 'v', { client_id: empty })],
        ['client_id', await client.refresh('thr_x', { client_id: empty })],
        ['client_id', await client.revoke('tha_x', { client_id: empty })],
        ['grant_type', await client.redeem('c', 'v', { grant_type: empty })],
        ['code', await client.redeem('c', 'v', { code: empty })],
        ['refresh_token', await client.refresh('thr_x', { refresh_token: empty })],
        ['token', await client.revoke('tha_x', { token: empty })],
      ] as const) {
        assertOAuthError(reply, 400, 'invalid_request');
        assert.ok(String(reply.body.error_description).startsWith(`${name} is missing`), reply.text);
      }
    }
  });

  it('rejects malformed requests, using only the characters that an error may contain (RFC 6749, 5.2)', async () => {
    for (const grant_type of ['password', 'client_credentials', 'Authorization_Code']) {
      const reply = await client.redeem('c', 'v', { grant_type });
      assertOAuthError(reply, 400, 'unsupported_grant_type');
      const allowed = "it must be 'authorization_code' or 'refresh_token'";
      assert.equal(reply.body.error_description, `grant_type is '${grant_type}'; ${allowed}`);
    }
    const url = `${world.issuer(slug)}/token`;
    const json = { grant_type: 'authorization_code', client_id: client.id };
    const twice = new URLSearchParams(`client_id=${client.id}&client_id=${client.id}`);
    for (const body of [json, twice]) assertOAuthError(await post(url, body), 400, 'invalid_request');
    assertOAuthError(await post(url, new URLSearchParams({ code: 'x'.repeat(70_000) })), 413, 'invalid_request');
    const unknown = clientWithId(client.id, { issuer: world.issuer('unknown-server') });
    assert.equal((await unknown.redeem('c', 'v')).status, 404);
    assert.equal((await fetch(url)).status, 405);
  });

  it('ends the login with the token of a provider that issues no refresh token', async () => {
    world.provider.onToken(() => ({ body: { access_token: 'short', token_type: 'bearer', expires_in: 600 } }));
    const tokens = await world.getTokens(client);
    assert.deepEqual([tokens.refresh_token, tokens.expires_in > 540 && tokens.expires_in <= 600], [undefined, true]);
    world.advanceClock(10 * minuteMs);
    assert.equal((await world.listTools(slug, tokens.access_token)).status, 401);
    world.provider.onToken();
  });

  it('renews for as long as a provider issues tokens without an expiry', async () => {
    world.provider.onToken(() => ({ body: { access_token: 'endless', token_type: 'bearer' } }));
    let { refresh_token } = await world.getTokens(client);
    for (const _ of Array(3)) {
      world.advanceClock(20 * 24 * 60 * minuteMs);
      const tokens = expectTokens(await client.refresh(refresh_token));
      assert.equal((await world.listTools(slug, tokens.access_token)).status, 200);
      ({ refresh_token } = tokens);
    }
    world.provider.onToken();
  });

  it("requests the client's scopes from the provider, and always offline access", async () => {
    const scopes = ['read', 'write', 'offline_access'];
    const { client: agent } = await world.createClient({}, { scopes });
    const cases: [asked: string | undefined, granted: string][] = [
      [undefined, 'read write offline_access'],
      ['', 'read write offline_access'],
      ['openid unknown', 'read write offline_access'],
      ['write unknown', 'write offline_access'],
      ['write read', 'read write offline_access'],
    ];
    for (const [scope, granted] of cases) {
      world.provider.takeLoginRequests();
      const { code, verifier } = await world.logIn(agent, undefined, { scope });
      assert.equal(world.provider.takeLoginRequests()[0]?.get('scope'), granted);
      const tokens = expectTokens(await agent.redeem(code, verifier));
      assert.equal(tokens.scope, granted.replace(' offline_access', ''), 'offline access is not advertised');
    }
  });
});
