import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { next } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type LoginWorld, startLoginWorld, toolAt } from '../support/oauth/login-world.ts';
import {
  assertOAuthError,
  clientWithId,
  type OAuthClient,
  type Tokens,
  tokensOf,
} from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type MovableClock, movableClock } from '../support/toolhost/movable-clock.ts';
import { type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/**
 * Timeout for a change to reach the other replica. Two seconds are promised, and a busy database takes longer. An
 * undetected change would be trusted for a minute.
 */
const noticedMs = 10_000;
/** Time after which another replica may take over an operation that a dead one had started. */
const claimMs = 12_000;

describe('logins on two replicas with one database', () => {
  let postgres: TestPostgres;
  let env: Record<string, string>;
  let world: LoginWorld;
  let second: TestToolhost;
  let clock: MovableClock;
  let slug: string;
  let here: OAuthClient;
  let there: OAuthClient;

  before(async () => {
    postgres = await startPostgres();
    const url = await postgres.createDatabase();
    clock = await movableClock(url);
    env = {
      DATABASE_URL: url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      TRUSTED_PROXIES: '1',
    };
    world = await startLoginWorld({ env });
    second = await startToolhost({
      env,
      egress: [...world.provider.ports, world.upstream.port],
    });
  });
  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: {} }));
    slug = await world.serve();
    here = await world.client(slug);
    there = clientWithId(here.id, { issuer: `${second.url}/mcp/${slug}` });
    world.provider.takeTokens();
    world.upstream.take();
  });
  after(async () => {
    await second.stop();
    await world.stop();
    await postgres.stop();
  });

  const callAt = (toolhost: { rpc: TestToolhost['rpc'] }, token: string): Promise<Reply> =>
    toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} });
  const statusThere = async (token: string) => (await second.rpc(slug, token, 'tools/list')).status;
  const bearers = () => new Set(world.upstream.take().map(({ headers }) => headers.authorization));
  it('[sec D9] are ended when a code is redeemed more than once, and only one of twenty redemptions succeeds', async () => {
    const { code, verifier } = await world.logIn(here);
    const tries = Array.from({ length: 20 }, (_, index) => (index % 2 ? here : there).redeem(code, verifier));
    const replies = await Promise.all(tries);
    const won = replies.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const reply of replies) if (reply !== won[0]) assertOAuthError(reply, 400, 'invalid_grant');
    const { access_token } = tokensOf(won[0] as Reply);
    await eventually(async () => assert.equal(await statusThere(access_token), 401), noticedMs);
    assert.equal((await world.list(slug, access_token)).status, 401);
  });

  it("[agent 2] [sec M9] restrict the provider's own token to the view that the login was for", async () => {
    const tools = [toolAt(`${world.upstream.url}/things`)];
    slug = await world.serve({ tools }, { token_mode: 'passthrough' });
    const body = { access_token: `known-${slug}`, token_type: 'bearer', expires_in: 600 };
    assert.equal(await statusThere('of-somebody'), 200);
    await world.change(slug, { views: { desk: { tools: ['run'] } } });
    // Once the other replica knows the view, no remaining change would make it forget the token.
    await eventually(async () => {
      assert.equal((await second.rpc(`${slug}/desk`, 'of-somebody', 'tools/list')).status, 200);
    }, noticedMs);
    assert.equal(await statusThere(body.access_token), 200);
    const client = await world.client(slug);
    const resource = `${world.issuer(slug)}/desk`;
    const logIn = async () => {
      const { code, verifier } = await world.logIn(client, undefined, { resource });
      return tokensOf(await client.redeem(code, verifier, { resource })).access_token;
    };
    const fresh = await logIn();
    assert.equal(await statusThere(fresh), 401, 'rejected immediately');
    world.provider.onToken(() => ({ body }));
    assert.equal(await logIn(), body.access_token);
    await eventually(async () => assert.equal(await statusThere(body.access_token), 401), noticedMs);
    assert.equal((await second.rpc(`${slug}/desk`, fresh, 'tools/list')).status, 200);
  });

  it('[sec D18] accept concurrent refreshes of an issued token as one login, without calling the provider', async () => {
    const { refresh_token } = await world.tokens(here);
    world.provider.takeTokens();
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (i % 2 ? here : there).refresh(refresh_token)),
    );
    const tokens = replies.map(tokensOf);
    assert.deepEqual(world.provider.takeTokens(), []);
    for (const { access_token } of tokens) assert.equal(await statusThere(access_token), 200);
    // Exactly one of the next generation continues. The others are accepted as equal for a moment, not treated as
    // stolen.
    const followers = await Promise.all(
      tokens.slice(0, 2).map((one, i) => (i ? here : there).refresh(one.refresh_token)),
    );
    for (const one of followers.map(tokensOf)) assert.equal(await statusThere(one.access_token), 200);
  });

  it('[sec D18] end when one replica receives a refresh token that was used before at the other one', async () => {
    const first = await world.tokens(here);
    const later = tokensOf(await there.refresh(tokensOf(await here.refresh(first.refresh_token)).refresh_token));
    assertOAuthError(await there.refresh(first.refresh_token), 400, 'invalid_grant');
    await eventually(async () => assert.equal((await world.list(slug, later.access_token)).status, 401), noticedMs);
  });

  it('[sec D18] are refreshed at the provider once, whichever replica detects the need first', async () => {
    const tokens = await world.tokens(here);
    world.provider.takeTokens();
    world.refuseFirstToken();
    world.provider.onToken(() => 'hold');
    const first = Array.from({ length: 5 }, () => callAt(world.toolhost, tokens.access_token));
    const held = await world.provider.waitForToken();
    const others = Array.from({ length: 5 }, () => callAt(second, tokens.access_token));
    // The calls have made all possible progress once the upstream has rejected all of them.
    await world.upstream.waitForRequest(10);
    await statusThere(tokens.access_token);
    held.release(world.provider.honest(new URLSearchParams(held.body.toString())));
    for (const reply of await Promise.all([...first, ...others])) {
      assert.notEqual((reply.body.result as { isError?: boolean }).isError, true, reply.text);
    }
    assert.equal(world.provider.takeTokens().length, 1);
    assert.equal(bearers().size, 2);
  });

  it('[find B6] refuse a passthrough token that was issued before the server changed at one replica', async () => {
    slug = await world.serve({}, { token_mode: 'passthrough' });
    here = await world.client(slug);
    there = clientWithId(here.id, { issuer: `${second.url}/mcp/${slug}` });
    const { access_token, refresh_token } = await world.tokens(here);
    const later = tokensOf(await there.refresh(refresh_token));
    const handedOut = [access_token, later.access_token];
    const tools = [toolAt(`${world.upstream.url}/things`)];
    for (const token of handedOut) assert.equal(await statusThere(token), 200);
    await world.change(slug, { tools: [...tools, { ...toolAt('https://collector.example.com/'), name: 'collect' }] });
    for (const token of handedOut) assert.equal((await world.list(slug, token)).status, 401);
    await eventually(async () => {
      for (const token of handedOut) assert.equal(await statusThere(token), 401);
    }, noticedMs);
    assert.equal(await statusThere('a-token-of-mine'), 200);
    // The person consents again at one replica. The other one checks the database before it refuses.
    const again = await world.tokens(here);
    assert.equal(await statusThere(again.access_token), 200);
  });

  const endings: [how: string, end: (tokens: Tokens) => Promise<unknown>][] = [
    ['the client revokes one', ({ refresh_token }) => here.revoke(refresh_token)],
    [
      'the server moves to other hosts',
      () => world.change(slug, { tools: [toolAt('https://collector.example.com/')] }),
    ],
    ['the server is deleted', () => world.toolhost.rest('DELETE', `/servers/${slug}`)],
  ];
  for (const [how, end] of endings) {
    it(`end at the other replica within two seconds when ${how}`, async () => {
      const tokens = await world.tokens(here);
      assert.equal(await statusThere(tokens.access_token), 200);
      await end(tokens);
      await eventually(async () => assert.match(String(await statusThere(tokens.access_token)), /^40[14]$/), noticedMs);
      assert.notEqual((await there.refresh(tokens.refresh_token)).status, 200);
    });
  }

  it('may begin at one replica and end at the other', async () => {
    const browser = world.browser();
    const { url, verifier } = here.authorization();
    const departure = await browser.press(await browser.get(url), 'Allow and log in');
    const returned = next(await browser.get(next(departure)));
    const back = await browser.get(`${second.url}${returned.pathname}${returned.search}`);
    const code = next(back).searchParams.get('code') ?? '';
    const { access_token } = tokensOf(await here.redeem(code, verifier));
    assert.equal(await statusThere(access_token), 200);
  });

  /** Starts a replica that asks the provider to refresh tokens, and kills it before it has stored the result. */
  async function dieWhileRefreshing(tokens: Tokens): Promise<void> {
    const ports = [...world.provider.ports, world.upstream.port];
    const EGRESS_ALLOW = ports.map((port) => `127.0.0.1:${port}`).join(',');
    const replica = await startChildToolhost({
      ...env,
      EGRESS_ALLOW,
      PORT: '0',
      DEMO: '0',
      DATA_DIR: world.toolhost.dataDir,
    });
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'run', arguments: {} },
    });
    const headers = { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' };
    const cut = assert.rejects(fetch(`${replica.url}/mcp/${slug}`, { method: 'POST', headers, body }));
    const held = await world.provider.waitForToken();
    await replica.end('SIGKILL');
    await Promise.all([cut, held.closed]);
    await clock.move(claimMs + 1000);
    await second.running.app.runner.onCommitted();
  }

  it('are requested with 401 after a replica dies with the only copy of the new tokens', async () => {
    const tokens = await world.tokens(here);
    world.provider.takeTokens();
    world.refuseFirstToken();
    world.provider.onToken((form) => {
      world.provider.honest(form);
      return 'hold';
    });
    await dieWhileRefreshing(tokens);
    world.provider.onToken();
    const result = (await callAt(second, tokens.access_token)).body.result as { isError?: boolean };
    assert.equal(result.isError, true, "the upstream's own error");
    assert.equal(await statusThere(tokens.access_token), 401);
    assertOAuthError(await there.refresh(tokens.refresh_token), 400, 'invalid_grant');
    const asked = world.provider.takeTokens().map(({ form }) => form.get('refresh_token'));
    assert.deepEqual([asked.length, new Set(asked).size], [2, 1]);
  });

  it('[find C4] continue within seconds after a replica dies before the provider has refreshed the tokens', async () => {
    const tokens = await world.tokens(here);
    world.provider.takeTokens();
    world.refuseFirstToken();
    world.provider.onToken(() => 'hold');
    await dieWhileRefreshing(tokens);
    world.provider.onToken();
    const result = (await callAt(second, tokens.access_token)).body.result as { isError?: boolean };
    assert.notEqual(result.isError, true);
    assert.equal(await statusThere(tokens.access_token), 200);
  });
});
