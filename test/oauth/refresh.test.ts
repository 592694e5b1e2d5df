import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { hashSecret } from '@toolhost/credentials/ids';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, expectTokens, type Tokens } from '../support/oauth/oauth-client.ts';

const secondMs = 1000;
const dayMs = 24 * 60 * 60 * secondMs;

describe('Toolhost refresh tokens', async () => {
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  after(() => world.stop());

  const refresh = async (token: string): Promise<Tokens> => expectTokens(await client.refresh(token));
  const { db } = world.toolhost.running.app.runner;
  const getGrantId = async ({ refresh_token }: Tokens) => {
    const query = db.selectFrom('tokens').select('grant_id').where('hash', '=', hashSecret(refresh_token));
    return (await query.executeTakeFirstOrThrow()).grant_id;
  };
  const listTokens = (grantId: string) =>
    db.selectFrom('tokens').select('kind').where('grant_id', '=', grantId).execute();
  const isLive = async (token: string) => (await world.listTools(slug, token)).status === 200;

  it('[mcp 51] [sec D18] are rotated at each refresh, and an old one ends the login after its grace period', async () => {
    const first = await world.getTokens(client);
    const second = await refresh(first.refresh_token);
    assert.notEqual(second.refresh_token, first.refresh_token);
    assert.notEqual(second.access_token, first.access_token);
    assert.deepEqual([await isLive(first.access_token), await isLive(second.access_token)], [true, true]);
    world.advanceClock(31 * secondMs);
    assertOAuthError(await client.refresh(first.refresh_token), 400, 'invalid_grant');
    assert.deepEqual([await isLive(first.access_token), await isLive(second.access_token)], [false, false]);
    assertOAuthError(await client.refresh(second.refresh_token), 400, 'invalid_grant');
  });

  it('[sec D18] are accepted again for a short time, because responses get lost, but not once their successor was used', async () => {
    const first = await world.getTokens(client);
    const lostTokens = await refresh(first.refresh_token);
    world.advanceClock(5 * secondMs);
    const repeated = await refresh(first.refresh_token);
    assert.notEqual(repeated.refresh_token, lostTokens.refresh_token);
    world.advanceClock(20 * secondMs);
    const next = await refresh(repeated.refresh_token);
    assert.equal(await isLive(next.access_token), true);
    assertOAuthError(await client.refresh(first.refresh_token), 400, 'invalid_grant');
    assert.equal(await isLive(next.access_token), false);
  });

  it('[sec D18] all work in simultaneous refreshes, as one login', async () => {
    const first = await world.getTokens(client);
    world.provider.takeTokenRequests();
    const replies = await Promise.all(Array.from({ length: 10 }, () => client.refresh(first.refresh_token)));
    const tokens = replies.map(expectTokens);
    assert.equal(new Set(tokens.map((token) => token.access_token)).size, 10);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
    await client.revoke(tokens[3]?.access_token ?? '');
    for (const { access_token } of tokens) assert.equal(await isLive(access_token), false);
  });

  it('[find A5] are stored for 100 rotations of a login, and are unknown after that', async () => {
    const first = await world.getTokens(client);
    let last = first;
    for (let n = 1; n <= 110; n += 1) last = await refresh(last.refresh_token);
    assert.equal((await listTokens(await getGrantId(last))).length, 2 * 102);
    assertOAuthError(await client.refresh(first.refresh_token), 400, 'invalid_grant');
    assert.deepEqual([await isLive(first.access_token), await isLive(last.access_token)], [false, true]);
  });

  it('[find A5] are unknown after 200 repeated refreshes in a short time, and the latest tokens keep working', async () => {
    // A client with its own address, because it sends many requests.
    const ownClient = await world.registerClient(slug);
    const first = await world.getTokens(ownClient);
    let last = expectTokens(await ownClient.refresh(first.refresh_token));
    const grantId = await getGrantId(last);
    for (let n = 1; n < 199; n++) {
      // Restarts the grace period, which would end too early on a busy machine.
      await db.updateTable('grants').set({ rotated_at: world.now() }).where('id', '=', grantId).execute();
      last = expectTokens(await ownClient.refresh(first.refresh_token));
    }
    assert.equal((await listTokens(grantId)).length, 400);
    last = expectTokens(await ownClient.refresh(first.refresh_token));
    assertOAuthError(await ownClient.refresh(first.refresh_token), 400, 'invalid_grant');
    assert.deepEqual([(await listTokens(grantId)).length, await isLive(first.access_token)], [400, false]);
    const next = expectTokens(await ownClient.refresh(last.refresh_token));
    assert.deepEqual([await isLive(last.access_token), await isLive(next.access_token)], [true, true]);
  });

  it('[sec D11] are valid only at their own server and for their own client', async () => {
    const { refresh_token, access_token } = await world.getTokens(client);
    for (const at of [slug, await world.createServer()])
      assertOAuthError(await (await world.registerClient(at)).refresh(refresh_token), 400, 'invalid_grant');
    assertOAuthError(await client.refresh(refresh_token, { resource: world.issuer('other') }), 400, 'invalid_target');
    for (const none of [undefined, ''])
      assertOAuthError(await client.refresh('', { refresh_token: none }), 400, 'invalid_request');
    for (const wrong of [access_token, `${refresh_token}x`, 'thr_x', 'thp_v1.a.b.c'])
      assertOAuthError(await client.refresh('', { refresh_token: wrong }), 400, 'invalid_grant');
    // None of these attempts used the token.
    await refresh(refresh_token);
  });

  it('expire thirty days after their last use', async () => {
    let { refresh_token } = await world.getTokens(client);
    world.advanceClock(29 * dayMs);
    ({ refresh_token } = await refresh(refresh_token));
    world.advanceClock(29 * dayMs);
    ({ refresh_token } = await refresh(refresh_token));
    world.advanceClock(30 * dayMs + secondMs);
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
  });

  it('do not widen the scope', async () => {
    const { code, verifier } = await world.logIn(client, undefined, { scope: 'read' });
    const { refresh_token } = expectTokens(await client.redeem(code, verifier));
    assert.equal(expectTokens(await client.refresh(refresh_token, { scope: 'read write' })).scope, 'read');
  });
});
