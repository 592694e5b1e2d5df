import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { createTool, nearExpiryMs, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, expectTokens } from '../support/oauth/oauth-client.ts';
import type { Json, Reply, ToolCallResult } from '../support/toolhost/toolhost.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

const secondMs = 1000;

describe('renewal of the provider’s tokens', async () => {
  let token: string;
  let refreshToken: string;
  const world = await startLoginWorld();
  const { slug, client } = await world.createClient();
  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: { things: [] } }));
    ({ access_token: token, refresh_token: refreshToken } = await world.getTokens(client));
    world.upstream.take();
    world.provider.takeTokenRequests();
  });
  after(() => world.stop());

  const takeBearerTokens = () =>
    world.upstream.take().map(({ headers }) => headers.authorization?.replace('Bearer provider-access-', ''));
  const getText = ({ content }: ToolCallResult) => content.map((block) => block.text).join('\n');
  /** Returns the numbers of requests to the upstream and to the token endpoint since the last count. */
  const countRequests = () => [takeBearerTokens().length, world.provider.takeTokenRequests().length];
  const rawCall = (): Promise<Reply> => world.toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} });
  async function assertLoginRequired(): Promise<void> {
    const { status, headers } = await rawCall();
    assert.equal(status, 401);
    assert.match(headers.get('www-authenticate') ?? '', /resource_metadata=.*error="invalid_token"/);
  }
  async function assertUnavailable(): Promise<void> {
    const { status, headers } = await rawCall();
    assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
  }
  /** Makes the upstream accept only tokens that match. */
  function acceptOnly(isValid: (bearer: string) => boolean): void {
    world.upstream.on('*', ({ headers }) =>
      isValid(headers.authorization ?? '') ? { body: { things: [] } } : { status: 401, body: { why: 'expired' } },
    );
  }

  it('renews a token once before it expires, for any number of simultaneous calls with any token of the login', async () => {
    await world.callTool(slug, token);
    const [before] = takeBearerTokens();
    const tokens = [token, expectTokens(await client.refresh(refreshToken)).access_token];
    world.advanceClock(nearExpiryMs);
    const calls = Array.from({ length: 10 }, (_, n) => world.callTool(slug, tokens[n % 2] as string));
    assert.ok((await Promise.all(calls)).every(({ isError }) => !isError));
    const [call, ...others] = world.provider.takeTokenRequests();
    assert.deepEqual(others, []);
    assert.deepEqual(Object.fromEntries(call?.form ?? []), {
      grant_type: 'refresh_token',
      refresh_token: `provider-refresh-${before}`,
      client_id: 'toolhost-at-the-provider',
      client_secret: world.provider.clientSecret,
    });
    const after = new Set(takeBearerTokens());
    assert.equal(after.size, 1);
    assert.ok(!after.has(before));
    await world.callTool(slug, token);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it('keeps the refresh token of a provider that does not rotate it', async () => {
    let count = 0;
    world.provider.onToken((form) => {
      const tokens = { access_token: `provider-access-${++count}`, token_type: 'bearer', expires_in: 60 };
      return { body: { ...tokens, ...(form.has('code') && { refresh_token: 'steady' }) } };
    });
    ({ access_token: token } = await world.getTokens(client));
    world.provider.takeTokenRequests();
    for (const _ of Array(3)) {
      world.advanceClock(45 * secondMs);
      await world.callTool(slug, token);
    }
    assert.deepEqual(takeBearerTokens(), ['2', '3', '4']);
    const used = world.provider.takeTokenRequests().map(({ form }) => form.get('refresh_token'));
    assert.deepEqual(used, ['steady', 'steady', 'steady']);
  });

  /** Creates a server with one tool. Returns functions that call it and list its call records. */
  async function createToolServer(tool: Json) {
    const at = await world.createServer({ tools: [{ ...createTool(`${world.upstream.url}/things`), ...tool }] });
    const { access_token } = await world.getTokens(await world.registerClient(at));
    world.provider.takeTokenRequests();
    const getRecords = async () => (await world.toolhost.rest('GET', `/calls?slug=${at}`)).body.calls as Json[];
    return { at, token: access_token, call: () => world.callTool(at, access_token), getRecords };
  }
  for (const tool of [
    { method: 'GET' },
    { method: 'PUT' },
    { method: 'DELETE' },
    { method: 'POST', annotations: { idempotentHint: true } },
    { method: 'POST', annotations: { readOnlyHint: true } },
  ]) {
    it(`[spec 4.3.7] repeats a rejected request with the new token and records both: ${JSON.stringify(tool)}`, async () => {
      const { call, getRecords } = await createToolServer(tool);
      world.rejectFirstToken();
      assert.notEqual((await call()).isError, true);
      assert.equal(new Set(world.upstream.requests.map(({ headers }) => headers.authorization)).size, 2);
      assert.deepEqual(countRequests(), [2, 1]);
      assert.notEqual((await call()).isError, true);
      assert.equal(takeBearerTokens().length, 1);
      const requestCounts = (await getRecords()).map((record) => record.upstream_requests);
      assert.deepEqual(requestCounts, [undefined, 2]);
    });
  }

  for (const tool of [
    { method: 'POST' },
    { method: 'PATCH' },
    { method: 'PUT', annotations: { idempotentHint: false } },
    { method: 'GET', annotations: { readOnlyHint: false, idempotentHint: false } },
  ]) {
    it(`[spec 4.3.7] sends a rejected write once, renews the token, and reports that the next call will work: ${JSON.stringify(tool)}`, async () => {
      const { call, getRecords } = await createToolServer(tool);
      world.rejectFirstToken();
      const result = await call();
      assert.equal(result.isError, true);
      const message = /^HTTP 401 Unauthorized: .* was not sent again, .* the next call uses the new token/;
      assert.match(getText(result), message);
      assert.deepEqual(countRequests(), [1, 1]);
      assert.notEqual((await call()).isError, true);
      assert.deepEqual(countRequests(), [1, 0]);
      const [, failed] = await getRecords();
      assert.partialDeepStrictEqual(failed, { outcome: 'upstream_status', upstream_status: 401 });
      assert.ok(!('upstream_requests' in (failed ?? {})));
    });
  }

  it('[spec 4.3.7] renews again for a write if the upstream had accepted the renewed token, and otherwise requires a new login', async () => {
    const { at, token: own, call } = await createToolServer({ method: 'POST' });
    for (const _ of Array(2)) {
      world.rejectFirstToken();
      assert.match(getText(await call()), /the next call uses the new token/);
      assert.notEqual((await call()).isError, true);
    }
    acceptOnly(() => false);
    assert.match(getText(await call()), /the next call uses the new token/);
    assert.match(getText(await call()), /^HTTP 401 Unauthorized\b(?!: the API refused the token)/);
    assert.deepEqual(countRequests(), [6, 3]);
    assert.equal((await world.listTools(at, own)).status, 401);
  });

  it('renews once when the upstream rejects many simultaneous calls', async () => {
    await world.callTool(slug, token);
    const [old] = takeBearerTokens();
    acceptOnly((bearer) => bearer !== `Bearer provider-access-${old}`);
    const results = await Promise.all(Array.from({ length: 8 }, () => world.callTool(slug, token)));
    assert.ok(results.every(({ isError }) => !isError));
    assert.equal(world.provider.takeTokenRequests().length, 1);
  });

  it('requires a new login at the next request when the upstream rejects the renewed token too', async () => {
    acceptOnly(() => false);
    const result = await world.callTool(slug, token);
    assert.equal(result.isError, true);
    assert.match(getText(result), /^HTTP 401 Unauthorized/);
    assert.equal(takeBearerTokens().length, 2);
    await assertLoginRequired();
    assert.deepEqual(countRequests(), [0, 1]);
    assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
  });

  for (const [what, response] of [
    ['invalid_grant', { status: 400, body: { error: 'invalid_grant' } }],
    ['200 and a nonstandard error code', { body: { error: 'bad_refresh_token' } }],
  ] as [string, CannedResponse][]) {
    it(`requires a new login when the provider refuses to renew with ${what}`, async () => {
      world.provider.onToken(() => response);
      world.advanceClock(nearExpiryMs);
      for (const _ of Array(2)) await assertLoginRequired();
      assert.deepEqual(countRequests(), [0, 1]);
      const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}&limit=1`);
      assert.equal((body.grants as { status: string }[])[0]?.status, 'broken');
    });
  }

  it("renews the provider's token once, together with the Toolhost token, when both have expired", async () => {
    world.advanceClock(61 * 60 * secondMs);
    const replies = await Promise.all([client.refresh(refreshToken), client.refresh(refreshToken)]);
    assert.equal(world.provider.takeTokenRequests().length, 1);
    for (const { access_token } of replies.map(expectTokens)) await world.callTool(slug, access_token);
    assert.equal(new Set(takeBearerTokens()).size, 1);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
  });

  it("reports the provider's refusal when the agent refreshes", async () => {
    const successor = expectTokens(await client.refresh(refreshToken));
    const last = expectTokens(await client.refresh(successor.refresh_token));
    world.advanceClock(61 * 60 * secondMs);
    assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
    assert.deepEqual(world.provider.takeTokenRequests(), [], 'it was used long ago');
    assertOAuthError(await client.refresh(last.refresh_token), 400, 'invalid_grant');
    const { refresh_token } = await world.getTokens(client);
    world.provider.onToken(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    world.provider.takeTokenRequests();
    world.advanceClock(61 * 60 * secondMs);
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
    assert.equal(world.provider.takeTokenRequests().length, 1);
  });

  for (const [what, response] of [
    ['503', { status: 503, body: 'down' }],
    ['429', { status: 429, body: { error: 'slow_down' } }],
    ['invalid_client', { status: 401, body: { error: 'invalid_client' } }],
    ['invalid_request', { status: 400, body: { error: 'invalid_request' } }],
    ['403 and an HTML page', { status: 403, body: '<html>' }],
    ['an HTML page', { body: '<html>' }],
  ] as [string, CannedResponse][]) {
    it(`keeps the login and retries later when the provider responds with ${what}`, async () => {
      world.provider.onToken(() => response);
      world.advanceClock(nearExpiryMs);
      assert.equal((await rawCall()).status, 200, 'the token is valid for a few more seconds');
      // The Toolhost token expires after the hour too.
      const own = expectTokens(await client.refresh(refreshToken));
      token = own.access_token;
      world.advanceClock(20 * secondMs);
      await assertUnavailable();
      assertOAuthError(await client.refresh(own.refresh_token), 503, 'temporarily_unavailable');
      world.provider.onToken();
      assert.equal((await rawCall()).status, 200);
      expectTokens(await client.refresh(own.refresh_token));
    });
  }

  for (const [what, response] of [
    ['400 and an empty body', { status: 400, body: '' }],
    ['401 and an HTML page', { status: 401, body: '<html>' }],
    ['400 and JSON without an error', { status: 400, body: { message: 'Bad Request' } }],
    ['400 and an error code unknown to OAuth', { status: 400, body: { error: 'E4711' } }],
  ] as [string, CannedResponse][]) {
    it(`[find E7] fails only the call when the provider refuses to renew with ${what}, and ends the login after three in a row over more than a minute`, async () => {
      const expectUnavailable = async (times: number, intervalMs: number) => {
        world.provider.onToken(() => response);
        for (const _ of Array(times)) {
          await assertUnavailable();
          world.advanceClock(intervalMs);
        }
      };
      // The Toolhost token outlives the provider's token.
      world.provider.onToken((form) => {
        const { body } = world.provider.createTokenResponse(form);
        return { body: { ...(body as object), expires_in: 60 } };
      });
      ({ access_token: token, refresh_token: refreshToken } = await world.getTokens(client));
      world.advanceClock(61 * secondMs);
      await expectUnavailable(2, 40 * secondMs);
      world.provider.onToken(() => ({ status: 503 }));
      assert.equal((await rawCall()).status, 503, 'a different error, so the count starts again');
      await expectUnavailable(4, 14 * secondMs);
      world.advanceClock(5 * secondMs);
      await assertLoginRequired();
      assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
    });
  }

  it('[find E7] resets the count of unexplained refusals at the next renewal', async () => {
    world.advanceClock(61 * 60 * secondMs);
    let last = refreshToken;
    for (const _ of Array(2)) {
      world.provider.onToken(() => ({ status: 400 }));
      for (const _ of Array(2)) {
        assertOAuthError(await client.refresh(last), 503, 'temporarily_unavailable');
        world.advanceClock(60 * secondMs);
      }
      world.provider.onToken();
      last = expectTokens(await client.refresh(last)).refresh_token;
      world.advanceClock(61 * 60 * secondMs);
    }
    expectTokens(await client.refresh(last));
  });

  it('returns the upstream’s 401 when the provider is down at that moment, and recovers', async () => {
    world.rejectFirstToken();
    world.provider.onToken(() => ({ status: 503 }));
    const result = await world.callTool(slug, token);
    assert.match(getText(result), /^HTTP 401 Unauthorized/);
    world.provider.onToken();
    assert.notEqual((await world.callTool(slug, token)).isError, true);
  });

  it('stores no tokens for a login that ended during the request to the provider', async () => {
    world.provider.onToken(() => 'hold');
    world.advanceClock(nearExpiryMs);
    const calling = rawCall();
    const heldRequest = await world.provider.waitForTokenRequest();
    await client.revoke(token);
    const late = { access_token: 'too-late', token_type: 'bearer', refresh_token: 'too-late', expires_in: 600 };
    heldRequest.release({ body: late });
    assert.equal((await calling).status, 401);
    assert.equal((await rawCall()).status, 401);
    assert.deepEqual(takeBearerTokens(), []);
    const { db } = world.toolhost.running.app.runner;
    const ended = await db.selectFrom('grants').select('sealed_tokens').where('revoked_at', 'is not', null).execute();
    assert.ok(ended.length > 0 && ended.every(({ sealed_tokens }) => sealed_tokens === ''));
  });

  it('serves other logins while a provider does not respond for one', async () => {
    const { access_token: other } = await world.getTokens(client);
    const { slug: unaffected, client: otherClient } = await world.createClient();
    world.advanceClock(nearExpiryMs);
    world.provider.onToken(() => 'hold');
    world.provider.takeTokenRequests();
    const calling = [rawCall(), rawCall()];
    const heldRequest = await world.provider.waitForTokenRequest();
    world.provider.onToken();
    const tokens = await world.getTokens(otherClient);
    assert.notEqual((await world.callTool(unaffected, tokens.access_token)).isError, true);
    assert.notEqual((await world.callTool(slug, other)).isError, true);
    heldRequest.release({ status: 500 });
    const statuses = (await Promise.all(calling)).map(({ status }) => status);
    assert.deepEqual(statuses, [200, 200]);
  });
});
