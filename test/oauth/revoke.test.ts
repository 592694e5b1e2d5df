import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, type Tokens } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

type GrantRecord = { id: string; server: string; client: string; status: string; scope: string; last_used_at?: string };

describe('login', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  after(() => world.stop());

  async function assertLive(tokens: Tokens, target = slug): Promise<void> {
    assert.equal((await world.listTools(target, tokens.access_token)).status, 200);
  }

  /** Asserts that neither token is accepted and that nothing reaches the upstream. */
  async function assertEnded(tokens: Tokens, agent = client, target = slug): Promise<void> {
    world.upstream.take();
    for (const method of ['initialize', 'tools/list', 'tools/call']) {
      const { status } = await world.toolhost.rpc(target, tokens.access_token, method, { name: 'run', arguments: {} });
      assert.equal(status, 401, method);
    }
    assertOAuthError(await agent.refresh(tokens.refresh_token), 400, 'invalid_grant');
    assert.deepEqual(world.upstream.take(), []);
  }

  async function listGrants(slug: string): Promise<GrantRecord[]> {
    const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}`);
    return body.grants as GrantRecord[];
  }
  const listStatuses = async (slug: string) => (await listGrants(slug)).map(({ status }) => status);

  it('is listed with its last use, without delay', async () => {
    const { slug: used, client: agent } = await world.createClient();
    const tokens = await world.getTokens(agent);
    assert.equal((await listGrants(used))[0]?.last_used_at, undefined);
    const uses = [
      () => world.listTools(used, tokens.access_token),
      () => world.callTool(used, tokens.access_token),
      () => agent.refresh(tokens.refresh_token),
    ];
    for (const use of uses) {
      world.advanceClock(60_000);
      const from = world.now();
      await use();
      const usedAt = Date.parse((await listGrants(used))[0]?.last_used_at ?? '');
      assert.ok(usedAt >= from, `${usedAt} is before ${from}`);
    }
  });

  it('ends with the revocation of either token, without revealing whether a token is known', async () => {
    for (const kind of ['access_token', 'refresh_token'] as const) {
      const tokens = await world.getTokens(client);
      await assertLive(tokens);
      const reply = await client.revoke(tokens[kind], { token_type_hint: 'nonsense' });
      assert.deepEqual([reply.status, reply.text], [200, '']);
      await assertEnded(tokens);
      assert.equal((await client.revoke(tokens[kind])).status, 200);
    }
    for (const token of ['x', 'tha_x', 'provider-access-1']) assert.equal((await client.revoke(token)).status, 200);
    assertOAuthError(await client.revoke('', { token: undefined }), 400, 'invalid_request');
  });

  it('does not end for another client, or at another server', async () => {
    const tokens = await world.getTokens(client);
    for (const target of [slug, await world.createServer()]) {
      const otherClient = await world.registerClient(target);
      assert.equal((await otherClient.revoke(tokens.access_token)).status, 200);
      assert.equal((await otherClient.revoke(tokens.refresh_token)).status, 200);
    }
    await assertLive(tokens);
  });

  it('ends through the revoke operation, and is listed and audited as revoked', async () => {
    const slug = await world.createServer();
    const agent = await world.registerClient(slug, { name: 'Listed agent' });
    const [first, second] = [await world.getTokens(agent), await world.getTokens(agent)];
    const [newest, oldest] = await listGrants(slug);
    const listed = { server: slug, client: 'Listed agent', status: 'active', scope: 'read write' };
    assert.partialDeepStrictEqual(oldest, listed);
    const reply = await world.toolhost.rest('DELETE', `/grants/${newest?.id}`);
    assert.deepEqual([reply.status, reply.body], [200, { revoked: newest?.id }]);
    await assertEnded(second, agent, slug);
    await assertLive(first, slug);
    assert.deepEqual(await listStatuses(slug), ['revoked', 'active']);
    assert.equal((await world.toolhost.rest('DELETE', `/grants/${newest?.id}`)).status, 404);
    assert.doesNotMatch(JSON.stringify(await listGrants(slug)), /th[acpr]_|provider-(access|refresh)|sealed/);
  });

  it('ends permanently with its server', async () => {
    const { slug, client: agent } = await world.createClient();
    const tokens = await world.getTokens(agent);
    const { code, verifier } = await world.logIn(agent);
    await world.toolhost.rest('DELETE', `/servers/${slug}`);
    assert.equal((await world.listTools(slug, tokens.access_token)).status, 404);
    for (const reply of [await agent.redeem(code, verifier), await agent.refresh(tokens.refresh_token)])
      assert.equal(reply.status, 404);
    assert.deepEqual(await listStatuses(slug), ['revoked', 'revoked']);
  });

  const { provider, upstream } = world;
  const collector = createTool('https://collector.example.com/things');
  const added = [createTool(`${upstream.url}/things`), { ...collector, name: 'more' }];
  const serverChanges: [what: string, change: Json][] = [
    ['a tool calls another host', { tools: [collector] }],
    ['a tool is added that calls another host', { tools: added }],
    ['the login page moves', { oauth: provider.oauth({ authorization_url: `${provider.url}/other` }) }],
    ['the token endpoint moves', { oauth: provider.oauth({ token_url: `${provider.url}/token` }) }],
    ['its client ID at the provider changes', { oauth: provider.oauth({ client_id: 'another' }) }],
    ['it switches to passthrough mode', { oauth: provider.oauth({ token_mode: 'passthrough' }) }],
  ];
  for (const [what, change] of serverChanges) {
    it(`[sec M9] ends when ${what}`, async () => {
      const { slug, client: agent } = await world.createClient();
      const tokens = await world.getTokens(agent);
      const { code, verifier } = await world.logIn(agent);
      await assertLive(tokens, slug);
      await world.updateServer(slug, change);
      await assertEnded(tokens, agent, slug);
      assertOAuthError(await agent.redeem(code, verifier), 400, 'invalid_grant');
    });
  }

  it('continues when nothing changes that people consented to', async () => {
    const slug = await world.createServer();
    const tokens = await world.getTokens(await world.registerClient(slug));
    const tools = [{ ...createTool(`${world.upstream.url}/other-things`), timeout_ms: 5000 }];
    await world.updateServer(slug, { name: 'Renamed', description: 'Changed.', tools });
    await assertLive(tokens, slug);
    assert.notEqual((await world.callTool(slug, tokens.access_token)).isError, true);
    assert.equal(world.upstream.take()[0]?.url, '/other-things');
  });
});
