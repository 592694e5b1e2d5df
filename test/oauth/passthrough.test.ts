import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { getNextUrl } from '../support/browser/browser.ts';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, expectTokens } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { type CannedResponse, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('passthrough mode', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient({}, { token_mode: 'passthrough' });
  beforeEach(() => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: { things: [] } }));
    world.upstream.take();
    world.provider.takeTokenRequests();
  });
  after(() => world.stop());

  it('[spec 5.4.7] gives the agent the provider’s own token once, which is stored nowhere and sent upstream', async () => {
    const { code, verifier } = await world.logIn(client);
    const { access_token, refresh_token, expires_in, ...rest } = expectTokens(await client.redeem(code, verifier));
    assert.match(access_token, /^provider-access-\d+$/);
    assert.match(refresh_token, /^thp_/);
    assert.deepEqual(rest, { token_type: 'Bearer' });
    assert.ok(expires_in > 3540 && expires_in <= 3600);
    assertOAuthError(await client.redeem(code, verifier), 400, 'invalid_grant');
    const { db } = world.toolhost.running.app.runner;
    const rows = await db.selectFrom('grants').select('sealed_tokens').where('slug', '=', slug).execute();
    assert.ok(rows.length > 0 && rows.every((row) => row.sealed_tokens === ''));
    assert.deepEqual(await db.selectFrom('tokens').selectAll().execute(), []);
    assert.notEqual((await world.callTool(slug, access_token)).isError, true);
    assert.equal(world.upstream.take()[0]?.headers.authorization, `Bearer ${access_token}`);
  });

  it('refreshes at the provider for the agent, with a refresh token that works only here', async () => {
    const first = await world.getTokens(client);
    world.provider.takeTokenRequests();
    const second = expectTokens(await client.refresh(first.refresh_token));
    const [call, ...others] = world.provider.takeTokenRequests();
    assert.deepEqual(Object.fromEntries(call?.form ?? []), {
      grant_type: 'refresh_token',
      refresh_token: first.access_token.replace('access', 'refresh'),
      client_id: 'toolhost-at-the-provider',
      client_secret: world.provider.clientSecret,
    });
    assert.deepEqual(others, []);
    assert.notEqual(second.access_token, first.access_token);
    assert.ok(!Buffer.from(second.refresh_token, 'base64url').includes('provider-refresh'));
    assertOAuthError(await client.refresh(first.refresh_token), 400, 'invalid_grant');
    expectTokens(await client.refresh(second.refresh_token));
  });

  it('[sec D11] refreshes once for simultaneous requests, and checks each of them', async () => {
    const otherClient = await world.registerClient(slug);
    const body = { access_token: 'given-once', token_type: 'bearer', expires_in: 600 };
    const cases: [release: CannedResponse, status: number][] = [
      [{ status: 503, body: 'down' }, 503],
      [{ body }, 200],
    ];
    const { refresh_token } = await world.getTokens(client);
    for (const [release, status] of cases) {
      world.provider.takeTokenRequests();
      world.provider.onToken(() => 'hold');
      const together = [1, 2, 3].map(() => client.refresh(refresh_token));
      const heldRequest = await world.provider.waitForTokenRequest();
      // These responses arrive first, so the service has received the other requests too.
      assertOAuthError(await otherClient.refresh(refresh_token), 400, 'invalid_grant');
      const elsewhere = { resource: world.issuer('other') };
      assertOAuthError(await client.refresh(refresh_token, elsewhere), 400, 'invalid_target');
      world.provider.onToken();
      heldRequest.release(release);
      const replies = await Promise.all(together);
      const outcomes = new Set(replies.map((reply) => JSON.stringify([reply.status, reply.body])));
      assert.deepEqual([...outcomes], [JSON.stringify([status, replies[0]?.body])]);
      assert.equal(world.provider.takeTokenRequests().length, 1);
    }
    // The result is not cached.
    expectTokens(await client.refresh(refresh_token));
    assert.equal(world.provider.takeTokenRequests().length, 1);
  });

  it('[sec D11] accepts a wrapped refresh token only for its own server, client, and endpoints', async () => {
    const { slug: at, client: agent } = await world.createClient({}, { token_mode: 'passthrough' });
    const { refresh_token } = await world.getTokens(agent);
    const [other, elsewhere] = [await world.registerClient(at), client];
    world.provider.takeTokenRequests();
    for (const otherClient of [other, elsewhere])
      assertOAuthError(await otherClient.refresh(refresh_token), 400, 'invalid_grant');
    const unwrapped = ['provider-refresh-1', refresh_token.slice(4), `${refresh_token}x`, 'thp_'];
    for (const token of unwrapped) assertOAuthError(await agent.refresh(token), 400, 'invalid_grant');
    const token_url = `${world.provider.url}/token`;
    await world.updateServer(at, { oauth: world.provider.oauth({ token_mode: 'passthrough', token_url }) });
    assertOAuthError(await agent.refresh(refresh_token), 400, 'invalid_grant');
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it('neither advertises nor accepts a revocation of passthrough tokens, and revokes none of them', async () => {
    const response = await fetch(`${world.issuer(slug)}/.well-known/oauth-authorization-server`);
    const offered = Object.keys((await response.json()) as Json).filter((name) => name.startsWith('revocation'));
    assert.deepEqual(offered, []);
    const tokens = await world.getTokens(client);
    for (const token of [tokens.refresh_token, tokens.access_token, 'of-a-person', 'thp_x']) {
      const reply = await client.revoke(token, { token_type_hint: 'refresh_token' });
      assertOAuthError(reply, 400, 'unsupported_token_type');
      assert.match(String(reply.body.error_description), /only the provider can revoke/);
    }
    assert.equal((await world.listTools(slug, tokens.access_token)).status, 200);
    expectTokens(await client.refresh(tokens.refresh_token));
    assertOAuthError(await client.revoke('', { token: undefined }), 400, 'invalid_request');
    assertOAuthError(await client.revoke(tokens.refresh_token, { client_id: 'x' }), 401, 'invalid_client');
  });

  it('still revokes Toolhost tokens that were issued before the switch to passthrough', async () => {
    const { slug: at, client: agent } = await world.createClient();
    const { access_token, refresh_token } = await world.getTokens(agent);
    await world.updateServer(at, { oauth: world.provider.oauth({ token_mode: 'passthrough' }) });
    assert.equal((await agent.revoke(refresh_token)).status, 200);
    const passthroughTokens = await world.getTokens(agent);
    await world.updateServer(at, { oauth: world.provider.oauth() });
    assert.equal((await world.listTools(at, access_token)).status, 401);
    assertOAuthError(await agent.revoke(passthroughTokens.refresh_token), 400, 'unsupported_token_type');
  });

  it('[spec 7] issues no token when the response lacks access_token, token_type, or expires_in', async () => {
    const fullResponse: Json = { access_token: 'token', token_type: 'bearer', expires_in: 60 };
    for (const field of Object.keys(fullResponse)) {
      for (const value of [undefined, null, '', {}]) {
        world.provider.onToken(() => ({ body: { ...fullResponse, [field]: value } }));
        const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
        assert.deepEqual([searchParams.get('error'), searchParams.has('code')], ['server_error', false]);
        assert.match(searchParams.get('error_description') ?? '', new RegExp(`without a usable ${field}`));
      }
    }
  });

  it("maps a provider's refusal or outage to the response to a refresh", async () => {
    const { refresh_token } = await world.getTokens(client);
    const cases: [response: CannedResponse, status: number, error: string][] = [
      [{ status: 503, body: 'down' }, 503, 'temporarily_unavailable'],
      [{ status: 400, body: { error: 'invalid_client' } }, 500, 'server_error'],
      [{ body: { error: 'bad_refresh_token' } }, 400, 'invalid_grant'],
    ];
    for (const [response, status, error] of cases) {
      world.provider.onToken(() => response);
      assertOAuthError(await client.refresh(refresh_token), status, error);
    }
    world.provider.onToken();
    expectTokens(await client.refresh(refresh_token));
  });

  it('[find E7] ends a login after three consecutive 400 responses without an error code over more than a minute, and not before', async () => {
    const { refresh_token } = await world.getTokens(client);
    world.provider.onToken(() => ({ status: 400 }));
    for (const apartMs of [1000, 1000, 60_000]) {
      assertOAuthError(await client.refresh(refresh_token), 503, 'temporarily_unavailable');
      world.advanceClock(apartMs);
    }
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
  });
});

describe('[find B6] passthrough token that was issued before the server changed', async () => {
  const elsewhere = await startRecordingUpstream();
  const world = await startLoginWorld({ egressPorts: [elsewhere.port] });
  after(() => Promise.all([world.stop(), elsewhere.close()]));

  const ownTool = createTool(`${world.upstream.url}/things`);
  const tools = [ownTool, { ...createTool(`${elsewhere.url}/collect`), name: 'collect' }];
  const call = (slug: string, token: string, name: string) => world.toolhost.rpc(slug, token, 'tools/call', { name });
  async function assertServed(slug: string, token: string, names = ['run']): Promise<void> {
    for (const name of names) assert.equal((await call(slug, token, name)).status, 200);
  }
  /** Logs a person in at a new server that calls one host. */
  async function logInAtNewServer() {
    const { slug, client } = await world.createClient({}, { token_mode: 'passthrough' });
    return { slug, client, ...(await world.getTokens(client)) };
  }

  /**
   * Asserts that every tool rejects it, with hints if the server still has a login, and that no upstream receives it.
   */
  async function assertOutdated(slug: string, token: string, hints = true): Promise<void> {
    world.upstream.take();
    for (const name of ['run', 'collect']) {
      const { status, headers, text } = await call(slug, token, name);
      assert.equal(status, 401, text);
      assert.match(text, /changed the destination of the token since you logged in/);
      const challenge = headers.get('www-authenticate') ?? '';
      assert.equal(/resource_metadata="[^"]+".*error="invalid_token"/.test(challenge), hints, challenge);
    }
    assert.deepEqual([world.upstream.take(), elsewhere.take()], [[], []]);
  }

  it('is not sent to an added host, nor is its successor, and the person is asked to log in again', async () => {
    const { slug, client, access_token, refresh_token } = await logInAtNewServer();
    const refreshed = expectTokens(await client.refresh(refresh_token));
    for (const token of [access_token, refreshed.access_token]) await assertServed(slug, token);
    await world.updateServer(slug, { tools });
    for (const token of [access_token, refreshed.access_token]) await assertOutdated(slug, token);
    const newTokens = await world.getTokens(client);
    await assertServed(slug, newTokens.access_token, ['run', 'collect']);
    assert.equal(elsewhere.take()[0]?.headers.authorization, `Bearer ${newTokens.access_token}`);
    await assertOutdated(slug, access_token);
    // A token that was never issued here is not affected.
    await assertServed(slug, 'a-token-of-mine', ['run', 'collect']);
    elsewhere.take();
  });

  it('is valid again when the server changes back, and for tools of the same hosts', async () => {
    const { slug, access_token } = await logInAtNewServer();
    await world.updateServer(slug, { tools: [createTool(`${world.upstream.url}/other`)], name: 'Another name' });
    await assertServed(slug, access_token);
    await world.updateServer(slug, { tools });
    await assertOutdated(slug, access_token);
    await world.updateServer(slug, { tools: [ownTool] });
    await assertServed(slug, access_token);
  });

  it('is sent nowhere by a server that no longer has a login, or that now issues its own tokens', async () => {
    const { slug, access_token } = await logInAtNewServer();
    await world.updateServer(slug, { tools, oauth: null });
    await assertServed(slug, 'another-token');
    await assertOutdated(slug, access_token, false);
    await world.updateServer(slug, { oauth: world.provider.oauth() });
    assert.equal((await call(slug, access_token, 'run')).status, 401);
  });

  it('counts as issued again when the provider returns the same token again', async () => {
    const body = { access_token: 'the-same-every-time', token_type: 'bearer', expires_in: 600 };
    world.provider.onToken(() => ({ body }));
    const { slug, client } = await logInAtNewServer();
    await world.updateServer(slug, { tools });
    await assertOutdated(slug, body.access_token);
    await world.getTokens(client);
    world.provider.onToken();
    await assertServed(slug, body.access_token, ['collect']);
    elsewhere.take();
  });

  it('is not issued when the server changes during the request to the provider', async () => {
    const { slug, client, refresh_token } = await logInAtNewServer();
    world.provider.takeTokenRequests();
    world.provider.onToken(() => 'hold');
    const refreshed = client.refresh(refresh_token);
    const heldRequest = await world.provider.waitForTokenRequest();
    await world.updateServer(slug, { tools });
    world.provider.onToken();
    heldRequest.release({ body: { access_token: 'held-back', token_type: 'bearer', expires_in: 600 } });
    assertOAuthError(await refreshed, 400, 'invalid_grant');
    await assertOutdated(slug, 'held-back');
  });
});

describe("[spec 2.2] place of the login's token in upstream requests", async () => {
  const world = await startLoginWorld();
  after(() => world.stop());

  const placements: [authentication: Json, place: (token: string) => string][] = [
    [{ type: 'Bearer' }, (token) => `authorization: Bearer ${token}`],
    [{ type: 'Bearer', header: 'X-Token' }, (token) => `x-token: Bearer ${token}`],
    [{ type: 'ApiKey' }, (token) => `authorization: ${token}`],
    [{ type: 'ApiKey', header: 'apikey' }, (token) => `apikey: ${token}`],
    [{ type: 'Basic' }, (token) => `authorization: Basic ${token}`],
    [{ type: 'QueryParam' }, (token) => `?api_key=${token}`],
    [{ type: 'QueryParam', query_key: 'key' }, (token) => `?key=${token}`],
  ];
  for (const token_mode of ['issued', 'passthrough']) {
    for (const [authentication, place] of placements) {
      it(`is set by ${JSON.stringify(authentication)}, ${token_mode}`, async () => {
        const slug = await world.createServer({ authentication }, { token_mode });
        const { access_token } = await world.getTokens(await world.registerClient(slug));
        world.upstream.take();
        assert.notEqual((await world.callTool(slug, access_token)).isError, true);
        const [request] = world.upstream.take();
        const sentTokens = JSON.stringify([request?.url, request?.headers]).match(/provider-access-\d+/g) ?? [];
        assert.equal(sentTokens.length, 1);
        const fields = Object.entries(request?.headers ?? {}).map(([name, value]) => `${name}: ${value}`);
        assert.ok([...fields, request?.url.replace('/things', '')].includes(place(sentTokens[0] ?? '')));
        assert.equal(sentTokens[0] === access_token, token_mode === 'passthrough');
      });
    }
  }

  it("also accepts the caller's token in the header that authentication names [spec 5.4.7]", async () => {
    const slug = await world.createServer({ authentication: { type: 'ApiKey', header: 'apikey' } });
    const { access_token } = await world.getTokens(await world.registerClient(slug));
    const reply = await world.toolhost.rpc(slug, undefined, 'tools/list', {}, { apikey: access_token });
    assert.equal(reply.status, 200);
  });
});
