import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, type OAuthClient, tokensOf } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost, type ToolReply } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';

describe('token refresh during a database outage', () => {
  let postgres: TestPostgres;
  let proxy: SilentProxy;
  let world: LoginWorld;
  /** Another replica, whose database connections stay up. */
  let second: TestToolhost;
  let slug: string;
  let client: OAuthClient;
  before(async () => {
    postgres = await startPostgres();
    const direct = await postgres.createDatabase();
    const url = new URL(direct);
    proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    const env = { MASTER_KEY: randomBytes(32).toString('base64'), TRUSTED_PROXIES: '1' };
    world = await startLoginWorld({ env: { ...env, DATABASE_URL: url.href } });
    const egress = [...world.provider.ports, world.upstream.port];
    second = await startToolhost({ env: { ...env, DATABASE_URL: direct }, egress });
  });
  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: {} }));
    slug = await world.serve();
    client = await world.client(slug);
    world.provider.takeTokens();
    world.upstream.take();
  });
  after(async () => {
    await second.stop();
    await world.stop();
    await proxy.close();
    await postgres.stop();
  });

  const answer = (held: RecordedRequest) =>
    held.release(world.provider.honest(new URLSearchParams(held.body.toString())));
  const version = async () => {
    const { db } = second.running.app.runner;
    const grant = await db.selectFrom('grants').select('tokens_version').where('slug', '=', slug).executeTakeFirst();
    return grant?.tokens_version;
  };
  const fine = (result: ToolReply) => assert.notEqual(result.isError, true, JSON.stringify(result));
  /**
   * Makes the upstream reject the login's token, and disconnects the database while the service requests another token.
   */
  const loseWhileRefreshing = async (token: string) => {
    world.provider.takeTokens();
    world.refuseFirstToken();
    world.provider.onToken(() => 'hold');
    const call = world.call(slug, token);
    const held = await world.provider.waitForToken();
    proxy.cut();
    answer(held);
    return call;
  };

  it('[find C4] loses no token that the provider has just rotated, and calls continue during the outage', async () => {
    const { access_token } = await world.tokens(client);
    const before = await version();
    fine(await loseWhileRefreshing(access_token));
    for (let n = 0; n < 3; n++) fine(await world.call(slug, access_token));
    assert.equal(await version(), before);
    proxy.heal();
    await eventually(async () => assert.equal(await version(), Number(before) + 1), 10_000);
    fine(await world.call(slug, access_token));
    fine(await second.callTool(slug, access_token, 'run'));
    assert.equal(world.provider.takeTokens().length, 1);
    assert.equal(new Set(world.upstream.take().map(({ headers }) => headers.authorization)).size, 2);
  });

  it('[find C4] stores the tokens immediately when only the connection was lost', async () => {
    const { access_token } = await world.tokens(client);
    const before = await version();
    world.provider.takeTokens();
    world.refuseFirstToken();
    world.provider.onToken(() => 'hold');
    const call = world.call(slug, access_token);
    const held = await world.provider.waitForToken();
    const other = second.callTool(slug, access_token, 'run');
    proxy.cut();
    proxy.heal();
    answer(held);
    for (const result of await Promise.all([call, other])) fine(result);
    await eventually(async () => assert.equal(await version(), Number(before) + 1));
    assert.equal(world.provider.takeTokens().length, 1);
  });

  it('[find C4] returns the tokens to an agent that refreshed during the outage once the database is back', async () => {
    const { access_token, refresh_token } = await world.tokens(client);
    fine(await loseWhileRefreshing(access_token));
    assert.equal((await client.refresh(refresh_token)).status, 503);
    proxy.heal();
    const again = await eventually(async () => {
      const reply = await client.refresh(refresh_token);
      assert.equal(reply.status, 200, reply.text);
      return tokensOf(reply);
    }, 10_000);
    fine(await world.call(slug, again.access_token));
    assert.equal(world.provider.takeTokens().length, 1);
  });

  it('[find C4] returns 503 with Retry-After when a call needs the database', async () => {
    const { access_token } = await world.tokens(client);
    let count = 0;
    world.upstream.on('*', () => {
      if (++count === 2) proxy.cut();
      return { status: 401 };
    });
    const reply = await world.toolhost.rpc(slug, access_token, 'tools/call', { name: 'run', arguments: {} });
    assert.equal(reply.status, 503, reply.text);
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.match(reply.text, /the database does not respond/);
    proxy.heal();
    await eventually(async () => {
      const { status, body } = await world.toolhost.rest('GET', `/calls?slug=${slug}&outcome=unavailable`);
      assert.equal(status, 200);
      assert.equal((body.calls as Json[]).length, 1);
    }, 10_000);
  });

  it('[find C4] returns the tokens to a passthrough agent that repeats its refresh', async () => {
    slug = await world.serve({}, { token_mode: 'passthrough' });
    client = await world.client(slug);
    const elsewhere = clientWithId(client.id, { issuer: world.issuer(slug) });
    const { refresh_token } = await world.tokens(client);
    world.provider.takeTokens();
    world.provider.onToken(() => 'hold');
    const first = client.refresh(refresh_token);
    const held = await world.provider.waitForToken();
    proxy.cut();
    answer(held);
    assert.equal((await first).status, 503);
    proxy.heal();
    const again = await eventually(async () => {
      const reply = await elsewhere.refresh(refresh_token);
      assert.equal(reply.status, 200, reply.text);
      return tokensOf(reply);
    }, 10_000);
    assert.equal(world.provider.takeTokens().length, 1);
    fine(await world.call(slug, again.access_token));
  });
});
