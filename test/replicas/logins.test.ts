import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { getNextUrl } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import {
  assertOAuthError,
  clientWithId,
  expectTokens,
  type OAuthClient,
  type Tokens,
} from '../support/oauth/oauth-client.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/**
 * Timeout for a change to reach the other replica. Two seconds are promised, and a busy database takes longer. An
 * undetected change would be trusted for a minute.
 */
const propagationTimeoutMs = 10_000;
/** Time after which another replica may take over an operation that a dead one had started. */
const claimTimeoutMs = 12_000;

describe('logins on two replicas with one database', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const clock = fixtures.start(() => createMovableClock(database.url));
  const getEnv = () => ({ ...database.env, TRUSTED_PROXIES: '1' });
  const world = fixtures.start(() => startLoginWorld({ env: getEnv() }));
  const getPorts = () => [...world.provider.ports, world.upstream.port];
  const secondReplica = fixtures.start(() => startToolhost({ env: getEnv(), egressPorts: getPorts() }));
  let slug: string;
  let firstClient: OAuthClient;
  let secondClient: OAuthClient;

  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: {} }));
    slug = await world.createServer();
    firstClient = await world.registerClient(slug);
    secondClient = clientWithId(firstClient.id, { issuer: `${secondReplica.url}/mcp/${slug}` });
    world.provider.takeTokenRequests();
    world.upstream.take();
  });

  const callAt = (toolhost: { rpc: TestToolhost['rpc'] }, token: string): Promise<Reply> =>
    toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} });
  const getStatusAtSecond = async (token: string) => (await secondReplica.rpc(slug, token, 'tools/list')).status;
  const getSentBearers = () => new Set(world.upstream.take().map(({ headers }) => headers.authorization));
  it('[sec D9] are ended when a code is redeemed more than once, and only one of twenty redemptions succeeds', async () => {
    const { code, verifier } = await world.logIn(firstClient);
    const redemptions = Array.from({ length: 20 }, (_, index) =>
      (index % 2 ? firstClient : secondClient).redeem(code, verifier),
    );
    const replies = await Promise.all(redemptions);
    const succeeded = replies.filter(({ status }) => status === 200);
    assert.equal(succeeded.length, 1);
    for (const reply of replies) if (reply !== succeeded[0]) assertOAuthError(reply, 400, 'invalid_grant');
    const { access_token } = expectTokens(succeeded[0] as Reply);
    await eventually(async () => assert.equal(await getStatusAtSecond(access_token), 401), propagationTimeoutMs);
    assert.equal((await world.listTools(slug, access_token)).status, 401);
  });

  it("[agent 2] [sec M9] restrict the provider's own token to the view that the login was for", async () => {
    const tools = [createTool(`${world.upstream.url}/things`)];
    slug = await world.createServer({ tools }, { token_mode: 'passthrough' });
    const body = { access_token: `known-${slug}`, token_type: 'bearer', expires_in: 600 };
    assert.equal(await getStatusAtSecond('of-a-person'), 200);
    await world.updateServer(slug, { views: { desk: { tools: ['run'] } } });
    // Once the other replica knows the view, no remaining change would make it forget the token.
    await eventually(async () => {
      assert.equal((await secondReplica.rpc(`${slug}/desk`, 'of-a-person', 'tools/list')).status, 200);
    }, propagationTimeoutMs);
    assert.equal(await getStatusAtSecond(body.access_token), 200);
    const client = await world.registerClient(slug);
    const resource = `${world.issuer(slug)}/desk`;
    const logIn = async () => {
      const { code, verifier } = await world.logIn(client, undefined, { resource });
      return expectTokens(await client.redeem(code, verifier, { resource })).access_token;
    };
    const fresh = await logIn();
    assert.equal(await getStatusAtSecond(fresh), 401, 'rejected immediately');
    world.provider.onToken(() => ({ body }));
    assert.equal(await logIn(), body.access_token);
    await eventually(async () => assert.equal(await getStatusAtSecond(body.access_token), 401), propagationTimeoutMs);
    assert.equal((await secondReplica.rpc(`${slug}/desk`, fresh, 'tools/list')).status, 200);
  });

  it('[sec D18] accept concurrent refreshes of an issued token as one login, without calling the provider', async () => {
    const { refresh_token } = await world.getTokens(firstClient);
    world.provider.takeTokenRequests();
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 ? firstClient : secondClient).refresh(refresh_token)),
    );
    const tokens = replies.map(expectTokens);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
    for (const { access_token } of tokens) assert.equal(await getStatusAtSecond(access_token), 200);
    // Exactly one of the next generation continues. The others are accepted as equal for a moment, not treated as
    // stolen.
    const followers = await Promise.all(
      tokens.slice(0, 2).map((one, i) => (i ? firstClient : secondClient).refresh(one.refresh_token)),
    );
    for (const one of followers.map(expectTokens)) assert.equal(await getStatusAtSecond(one.access_token), 200);
  });

  it('[sec D18] end when one replica receives a refresh token that was used before at the other one', async () => {
    const first = await world.getTokens(firstClient);
    const later = expectTokens(
      await secondClient.refresh(expectTokens(await firstClient.refresh(first.refresh_token)).refresh_token),
    );
    assertOAuthError(await secondClient.refresh(first.refresh_token), 400, 'invalid_grant');
    await eventually(
      async () => assert.equal((await world.listTools(slug, later.access_token)).status, 401),
      propagationTimeoutMs,
    );
  });

  it('[sec D18] are refreshed at the provider once, whichever replica detects the need first', async () => {
    const tokens = await world.getTokens(firstClient);
    world.provider.takeTokenRequests();
    world.rejectFirstToken();
    world.provider.onToken(() => 'hold');
    const first = Array.from({ length: 5 }, () => callAt(world.toolhost, tokens.access_token));
    const heldRequest = await world.provider.waitForTokenRequest();
    const others = Array.from({ length: 5 }, () => callAt(secondReplica, tokens.access_token));
    // The calls have made all possible progress once the upstream has rejected all of them.
    await world.upstream.waitForRequest(10);
    await getStatusAtSecond(tokens.access_token);
    heldRequest.release(world.provider.createTokenResponse(new URLSearchParams(heldRequest.body.toString())));
    for (const reply of await Promise.all([...first, ...others])) {
      assert.notEqual((reply.body.result as { isError?: boolean }).isError, true, reply.text);
    }
    assert.equal(world.provider.takeTokenRequests().length, 1);
    assert.equal(getSentBearers().size, 2);
  });

  it('[find B6] refuse a passthrough token that was issued before the server changed at one replica', async () => {
    slug = await world.createServer({}, { token_mode: 'passthrough' });
    firstClient = await world.registerClient(slug);
    secondClient = clientWithId(firstClient.id, { issuer: `${secondReplica.url}/mcp/${slug}` });
    const { access_token, refresh_token } = await world.getTokens(firstClient);
    const later = expectTokens(await secondClient.refresh(refresh_token));
    const issued = [access_token, later.access_token];
    const tools = [createTool(`${world.upstream.url}/things`)];
    for (const token of issued) assert.equal(await getStatusAtSecond(token), 200);
    await world.updateServer(slug, {
      tools: [...tools, { ...createTool('https://collector.example.com/'), name: 'collect' }],
    });
    for (const token of issued) assert.equal((await world.listTools(slug, token)).status, 401);
    await eventually(async () => {
      for (const token of issued) assert.equal(await getStatusAtSecond(token), 401);
    }, propagationTimeoutMs);
    assert.equal(await getStatusAtSecond('a-token-of-mine'), 200);
    // The person consents again at one replica. The other one checks the database before it refuses.
    const newTokens = await world.getTokens(firstClient);
    assert.equal(await getStatusAtSecond(newTokens.access_token), 200);
  });

  const elsewhere = createTool('https://collector.example.com/');
  const waysToEnd: [how: string, end: (tokens: Tokens) => Promise<unknown>][] = [
    ['the client revokes one', ({ refresh_token }) => firstClient.revoke(refresh_token)],
    ['the server moves to other hosts', () => world.updateServer(slug, { tools: [elsewhere] })],
    ['the server is deleted', () => world.toolhost.rest('DELETE', `/servers/${slug}`)],
  ];
  for (const [how, end] of waysToEnd)
    it(`end at the other replica within two seconds when ${how}`, async () => {
      const tokens = await world.getTokens(firstClient);
      assert.equal(await getStatusAtSecond(tokens.access_token), 200);
      await end(tokens);
      await eventually(
        async () => assert.match(String(await getStatusAtSecond(tokens.access_token)), /^40[14]$/),
        propagationTimeoutMs,
      );
      assert.notEqual((await secondClient.refresh(tokens.refresh_token)).status, 200);
    });

  it('may begin at one replica and end at the other', async () => {
    const browser = world.newBrowser();
    const { url, verifier } = firstClient.authorization();
    const departure = await browser.press(await browser.get(url), 'Allow and log in');
    const returned = getNextUrl(await browser.get(getNextUrl(departure)));
    const back = await browser.get(`${secondReplica.url}${returned.pathname}${returned.search}`);
    const code = getNextUrl(back).searchParams.get('code') ?? '';
    const { access_token } = expectTokens(await firstClient.redeem(code, verifier));
    assert.equal(await getStatusAtSecond(access_token), 200);
  });

  /** Starts a replica that asks the provider to refresh tokens, and kills it before it has stored the result. */
  async function dieWhileRefreshing(tokens: Tokens): Promise<void> {
    const EGRESS_ALLOW = getPorts()
      .map((port) => `127.0.0.1:${port}`)
      .join();
    const replica = await startChildToolhost({ ...getEnv(), EGRESS_ALLOW, DATA_DIR: world.toolhost.dataDir });
    const params = { name: 'run', arguments: {} };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const headers = { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' };
    const lostCall = assert.rejects(fetch(`${replica.url}/mcp/${slug}`, { method: 'POST', headers, body }));
    const heldRequest = await world.provider.waitForTokenRequest();
    await replica.end('SIGKILL');
    await Promise.all([lostCall, heldRequest.closed]);
    await clock.move(claimTimeoutMs + 1000);
    await secondReplica.running.app.runner.onCommitted();
  }

  it('are requested with 401 after a replica dies with the only copy of the new tokens', async () => {
    const tokens = await world.getTokens(firstClient);
    world.provider.takeTokenRequests();
    world.rejectFirstToken();
    world.provider.onToken((form) => {
      world.provider.createTokenResponse(form);
      return 'hold';
    });
    await dieWhileRefreshing(tokens);
    world.provider.onToken();
    const result = (await callAt(secondReplica, tokens.access_token)).body.result as { isError?: boolean };
    assert.equal(result.isError, true, "the upstream's own error");
    assert.equal(await getStatusAtSecond(tokens.access_token), 401);
    assertOAuthError(await secondClient.refresh(tokens.refresh_token), 400, 'invalid_grant');
    const refreshTokens = world.provider.takeTokenRequests().map(({ form }) => form.get('refresh_token'));
    assert.deepEqual([refreshTokens.length, new Set(refreshTokens).size], [2, 1]);
  });

  it('[find C4] continue within seconds after a replica dies before the provider has refreshed the tokens', async () => {
    const tokens = await world.getTokens(firstClient);
    world.provider.takeTokenRequests();
    world.rejectFirstToken();
    world.provider.onToken(() => 'hold');
    await dieWhileRefreshing(tokens);
    world.provider.onToken();
    const result = (await callAt(secondReplica, tokens.access_token)).body.result as { isError?: boolean };
    assert.notEqual(result.isError, true);
    assert.equal(await getStatusAtSecond(tokens.access_token), 200);
  });
});
