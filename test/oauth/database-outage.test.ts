import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, expectTokens, type OAuthClient } from '../support/oauth/oauth-client.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { startSilentProxy } from '../support/upstreams/silent-proxy.ts';

describe('token refresh during a database outage', async () => {
  let slug: string;
  let client: OAuthClient;
  const postgres = await startPostgres();
  const direct = await postgres.createDatabase();
  const url = new URL(direct);
  const proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
  url.port = String(proxy.port);
  const env = { MASTER_KEY: randomBytes(32).toString('base64'), TRUSTED_PROXIES: '1' };
  const world = await startLoginWorld({ env: { ...env, DATABASE_URL: url.href } });
  const egressPorts = [...world.provider.ports, world.upstream.port];
  /** Another replica, whose database connections stay up. */
  const second = await startToolhost({ env: { ...env, DATABASE_URL: direct }, egressPorts });
  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: {} }));
    slug = await world.createServer();
    client = await world.registerClient(slug);
    world.provider.takeTokenRequests();
    world.upstream.take();
  });
  after(async () => {
    await second.stop();
    await world.stop();
    await proxy.close();
    await postgres.stop();
  });

  const releaseRequest = (heldRequest: RecordedRequest) =>
    heldRequest.release(world.provider.createTokenResponse(new URLSearchParams(heldRequest.body.toString())));
  const getTokensVersion = async () => {
    const { db } = second.running.app.runner;
    const grant = await db.selectFrom('grants').select('tokens_version').where('slug', '=', slug).executeTakeFirst();
    return grant?.tokens_version;
  };
  const assertSuccess = (result: ToolCallResult) => assert.notEqual(result.isError, true, JSON.stringify(result));
  /** Makes the upstream reject the login's token, and calls until the service requests another token. */
  const holdRefresh = async (token: string) => {
    world.provider.takeTokenRequests();
    world.rejectFirstToken();
    world.provider.onToken(() => 'hold');
    const call = world.callTool(slug, token);
    return { call, heldRequest: await world.provider.waitForTokenRequest() };
  };
  /** Disconnects the database while the service requests another token. */
  const refreshDuringOutage = async (token: string) => {
    const { call, heldRequest } = await holdRefresh(token);
    proxy.cut();
    releaseRequest(heldRequest);
    return call;
  };
  /** Refreshes until the database is back. Returns the tokens. */
  const refreshAfterOutage = (agent: OAuthClient, token: string) =>
    eventually(async () => expectTokens(await agent.refresh(token)), 10_000);

  it('[find C4] loses no token that the provider has just rotated, and calls continue during the outage', async () => {
    const { access_token } = await world.getTokens(client);
    const before = await getTokensVersion();
    assertSuccess(await refreshDuringOutage(access_token));
    for (let n = 0; n < 3; n++) assertSuccess(await world.callTool(slug, access_token));
    assert.equal(await getTokensVersion(), before);
    proxy.heal();
    await eventually(async () => assert.equal(await getTokensVersion(), Number(before) + 1), 10_000);
    assertSuccess(await world.callTool(slug, access_token));
    assertSuccess(await second.callTool(slug, access_token, 'run'));
    assert.equal(world.provider.takeTokenRequests().length, 1);
    assert.equal(new Set(world.upstream.take().map(({ headers }) => headers.authorization)).size, 2);
  });

  it('[find C4] stores the tokens immediately when only the connection was lost', async () => {
    const { access_token } = await world.getTokens(client);
    const before = await getTokensVersion();
    const { call, heldRequest } = await holdRefresh(access_token);
    const other = second.callTool(slug, access_token, 'run');
    proxy.cut();
    proxy.heal();
    releaseRequest(heldRequest);
    for (const result of await Promise.all([call, other])) assertSuccess(result);
    await eventually(async () => assert.equal(await getTokensVersion(), Number(before) + 1));
    assert.equal(world.provider.takeTokenRequests().length, 1);
  });

  it('[find C4] returns the tokens to an agent that refreshed during the outage once the database is back', async () => {
    const { access_token, refresh_token } = await world.getTokens(client);
    assertSuccess(await refreshDuringOutage(access_token));
    assert.equal((await client.refresh(refresh_token)).status, 503);
    proxy.heal();
    const newTokens = await refreshAfterOutage(client, refresh_token);
    assertSuccess(await world.callTool(slug, newTokens.access_token));
    assert.equal(world.provider.takeTokenRequests().length, 1);
  });

  it('[find C4] returns 503 with Retry-After when a call needs the database', async () => {
    const { access_token } = await world.getTokens(client);
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
    slug = await world.createServer({}, { token_mode: 'passthrough' });
    client = await world.registerClient(slug);
    const elsewhere = clientWithId(client.id, { issuer: world.issuer(slug) });
    const { refresh_token } = await world.getTokens(client);
    world.provider.takeTokenRequests();
    world.provider.onToken(() => 'hold');
    const first = client.refresh(refresh_token);
    const heldRequest = await world.provider.waitForTokenRequest();
    proxy.cut();
    releaseRequest(heldRequest);
    assert.equal((await first).status, 503);
    proxy.heal();
    const newTokens = await refreshAfterOutage(elsewhere, refresh_token);
    assert.equal(world.provider.takeTokenRequests().length, 1);
    assertSuccess(await world.callTool(slug, newTokens.access_token));
  });
});
