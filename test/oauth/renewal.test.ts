import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type LoginWorld, startLoginWorld, toolAt } from '../support/oauth/login-world.ts';
import { assertOAuthError, type OAuthClient, tokensOf } from '../support/oauth/oauth-client.ts';
import type { Json, Reply, ToolReply } from '../support/toolhost/toolhost.ts';
import type { Answer } from '../support/upstreams/recording-upstream.ts';

const secondMs = 1000;
/** The provider's tokens last an hour. The service renews them shortly before they expire. */
const nearlyOverMs = 3582 * secondMs;

describe('renewal of the provider’s tokens', () => {
  let world: LoginWorld;
  let slug: string;
  let client: OAuthClient;
  let token: string;
  let refreshToken: string;

  before(async () => {
    world = await startLoginWorld();
    slug = await world.serve();
    client = await world.client(slug);
  });
  beforeEach(async () => {
    world.provider.onToken();
    world.upstream.on('*', () => ({ body: { things: [] } }));
    ({ access_token: token, refresh_token: refreshToken } = await world.tokens(client));
    world.upstream.take();
    world.provider.takeTokens();
  });
  after(() => world.stop());

  const bearers = () =>
    world.upstream.take().map(({ headers }) => headers.authorization?.replace('Bearer provider-access-', ''));
  const textOf = ({ content }: ToolReply) => content.map((block) => block.text).join('\n');
  const rawCall = (): Promise<Reply> => world.toolhost.rpc(slug, token, 'tools/call', { name: 'run', arguments: {} });
  /** Makes the upstream accept only tokens that match. */
  function takeOnly(isGood: (bearer: string) => boolean): void {
    world.upstream.on('*', ({ headers }) =>
      isGood(headers.authorization ?? '') ? { body: { things: [] } } : { status: 401, body: { why: 'expired' } },
    );
  }

  it('renews a token once before it expires, for any number of simultaneous calls', async () => {
    await world.call(slug, token);
    const [before] = bearers();
    world.wait(nearlyOverMs);
    const results = await Promise.all(Array.from({ length: 10 }, () => world.call(slug, token)));
    assert.ok(results.every(({ isError }) => !isError));
    const [call, ...others] = world.provider.takeTokens();
    assert.deepEqual(others, []);
    assert.deepEqual(Object.fromEntries(call?.form ?? []), {
      grant_type: 'refresh_token',
      refresh_token: `provider-refresh-${before}`,
      client_id: 'toolhost-at-the-provider',
      client_secret: world.provider.clientSecret,
    });
    const after = new Set(bearers());
    assert.equal(after.size, 1);
    assert.ok(!after.has(before));
    await world.call(slug, token);
    assert.deepEqual(world.provider.takeTokens(), []);
  });

  it('renews once for all tokens of a login', async () => {
    const { body } = await client.refresh(refreshToken);
    world.wait(nearlyOverMs);
    await Promise.all([token, body.access_token as string].map((one) => world.call(slug, one)));
    assert.equal(world.provider.takeTokens().length, 1);
    assert.equal(new Set(bearers()).size, 1);
  });

  it('keeps the refresh token of a provider that does not rotate it', async () => {
    let count = 0;
    world.provider.onToken((form) => {
      const tokens = { access_token: `provider-access-${++count}`, token_type: 'bearer', expires_in: 60 };
      return { body: { ...tokens, ...(form.has('code') && { refresh_token: 'steady' }) } };
    });
    ({ access_token: token } = await world.tokens(client));
    world.provider.takeTokens();
    for (const _ of Array(3)) {
      world.wait(45 * secondMs);
      await world.call(slug, token);
    }
    assert.deepEqual(bearers(), ['2', '3', '4']);
    const used = world.provider.takeTokens().map(({ form }) => form.get('refresh_token'));
    assert.deepEqual(used, ['steady', 'steady', 'steady']);
  });

  it('[spec 4.3.7] renews when the upstream rejects the token, and sends the request again', async () => {
    world.refuseFirstToken();
    const result = await world.call(slug, token);
    assert.notEqual(result.isError, true, textOf(result));
    const [first, second, ...more] = bearers();
    assert.deepEqual([first !== second, more, world.provider.takeTokens().length], [true, [], 1]);
  });

  /** Creates a server with a tool for each method. Returns a token for it. */
  async function serveTools(methods: readonly { method: string; annotations?: Json }[]) {
    const tools = methods.map((one, n) => ({ ...toolAt(`${world.upstream.url}/things`), ...one, name: `tool-${n}` }));
    const at = await world.serve({ tools });
    const { access_token } = await world.tokens(await world.client(at));
    world.provider.takeTokens();
    return { at, token: access_token, call: (n: number) => world.toolhost.callTool(at, access_token, `tool-${n}`) };
  }
  const recordsOf = async (at: string) =>
    (await world.toolhost.rest('GET', `/calls?slug=${at}&limit=10`)).body.calls as Json[];

  it('[spec 4.3.7] repeats a rejected request with the new token if its hints allow that, and records both requests', async () => {
    const methods = [
      { method: 'PUT' },
      { method: 'DELETE' },
      { method: 'POST', annotations: { idempotentHint: true } },
      { method: 'POST', annotations: { readOnlyHint: true } },
    ];
    for (const one of methods) {
      const { at, call } = await serveTools([one]);
      world.refuseFirstToken();
      assert.notEqual((await call(0)).isError, true);
      assert.deepEqual([bearers().length, world.provider.takeTokens().length], [2, 1]);
      assert.notEqual((await call(0)).isError, true);
      assert.equal(bearers().length, 1);
      assert.deepEqual(
        (await recordsOf(at)).map((record) => record.upstream_requests),
        [undefined, 2],
      );
    }
  });

  it('[spec 4.3.7] sends a rejected write once, renews the token, and reports that the next call will work', async () => {
    const methods = [
      { method: 'POST' },
      { method: 'PATCH' },
      { method: 'PUT', annotations: { idempotentHint: false } },
      { method: 'GET', annotations: { readOnlyHint: false, idempotentHint: false } },
    ];
    for (const one of methods) {
      const { at, call } = await serveTools([one]);
      world.refuseFirstToken();
      const result = await call(0);
      assert.equal(result.isError, true);
      assert.match(
        textOf(result),
        /^HTTP 401 Unauthorized: .* was not sent again, .* the next call uses the new token/,
      );
      assert.deepEqual([bearers().length, world.provider.takeTokens().length], [1, 1]);
      assert.notEqual((await call(0)).isError, true);
      assert.deepEqual([bearers().length, world.provider.takeTokens().length], [1, 0]);
      const [, failed] = await recordsOf(at);
      assert.partialDeepStrictEqual(failed, { outcome: 'upstream_status', upstream_status: 401 });
      assert.ok(!('upstream_requests' in (failed ?? {})));
    }
  });

  it('[spec 4.3.7] requires a new login when the upstream rejects the token that was renewed for a write', async () => {
    const { at, token: own, call } = await serveTools([{ method: 'POST' }]);
    takeOnly(() => false);
    assert.match(textOf(await call(0)), /the next call uses the new token/);
    assert.match(textOf(await call(0)), /^HTTP 401 Unauthorized\b(?!: the API refused the token)/);
    assert.deepEqual([bearers().length, world.provider.takeTokens().length], [2, 1]);
    assert.equal((await world.list(at, own)).status, 401);
  });

  it('[spec 4.3.7] renews again for a write when the upstream later rejects a renewed token that it had accepted', async () => {
    const { call } = await serveTools([{ method: 'POST' }]);
    world.refuseFirstToken();
    assert.equal((await call(0)).isError, true);
    assert.notEqual((await call(0)).isError, true);
    world.refuseFirstToken();
    assert.match(textOf(await call(0)), /the next call uses the new token/);
    assert.notEqual((await call(0)).isError, true);
    assert.equal(world.provider.takeTokens().length, 2);
  });

  it('renews once when the upstream rejects many simultaneous calls', async () => {
    await world.call(slug, token);
    const [old] = bearers();
    takeOnly((bearer) => bearer !== `Bearer provider-access-${old}`);
    const results = await Promise.all(Array.from({ length: 8 }, () => world.call(slug, token)));
    assert.ok(results.every(({ isError }) => !isError));
    assert.equal(world.provider.takeTokens().length, 1);
  });

  it('requires a new login at the next request when the upstream rejects the renewed token too', async () => {
    takeOnly(() => false);
    const result = await world.call(slug, token);
    assert.equal(result.isError, true);
    assert.match(textOf(result), /^HTTP 401 Unauthorized/);
    assert.equal(bearers().length, 2);
    const { status, headers } = await rawCall();
    assert.equal(status, 401);
    assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/);
    assert.deepEqual([bearers(), world.provider.takeTokens().length], [[], 1]);
    assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
  });

  for (const [what, answer] of [
    ['invalid_grant', { status: 400, body: { error: 'invalid_grant' } }],
    ['200 and a nonstandard error code', { body: { error: 'bad_refresh_token' } }],
  ] as [string, Answer][]) {
    it(`requires a new login when the provider refuses to renew with ${what}`, async () => {
      world.provider.onToken(() => answer);
      world.wait(nearlyOverMs);
      const { status, headers } = await rawCall();
      assert.equal(status, 401);
      assert.match(headers.get('www-authenticate') ?? '', /resource_metadata=.*error="invalid_token"/);
      assert.deepEqual([bearers(), (await rawCall()).status, world.provider.takeTokens().length], [[], 401, 1]);
      const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}&limit=1`);
      assert.equal((body.grants as { status: string }[])[0]?.status, 'broken');
    });
  }

  it("renews the provider's token once, together with the Toolhost token, when both have expired", async () => {
    world.wait(61 * 60 * secondMs);
    const replies = await Promise.all([client.refresh(refreshToken), client.refresh(refreshToken)]);
    assert.equal(world.provider.takeTokens().length, 1);
    for (const { access_token } of replies.map(tokensOf)) await world.call(slug, access_token);
    assert.equal(new Set(bearers()).size, 1);
    assert.deepEqual(world.provider.takeTokens(), []);
  });

  it("reports the provider's refusal when the agent refreshes", async () => {
    const successor = tokensOf(await client.refresh(refreshToken));
    const last = tokensOf(await client.refresh(successor.refresh_token));
    world.wait(61 * 60 * secondMs);
    assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
    assert.deepEqual(world.provider.takeTokens(), [], 'it was used long ago');
    assertOAuthError(await client.refresh(last.refresh_token), 400, 'invalid_grant');
    const { refresh_token } = await world.tokens(client);
    world.provider.onToken(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    world.provider.takeTokens();
    world.wait(61 * 60 * secondMs);
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
    assertOAuthError(await client.refresh(refresh_token), 400, 'invalid_grant');
    assert.equal(world.provider.takeTokens().length, 1);
  });

  for (const [what, answer] of [
    ['503', { status: 503, body: 'down' }],
    ['429', { status: 429, body: { error: 'slow_down' } }],
    ['invalid_client', { status: 401, body: { error: 'invalid_client' } }],
    ['invalid_request', { status: 400, body: { error: 'invalid_request' } }],
    ['403 and an HTML page', { status: 403, body: '<html>' }],
    ['an HTML page', { body: '<html>' }],
  ] as [string, Answer][]) {
    it(`keeps the login and retries later when the provider responds with ${what}`, async () => {
      world.provider.onToken(() => answer);
      world.wait(nearlyOverMs);
      assert.equal((await rawCall()).status, 200, 'the token is valid for a few more seconds');
      // The Toolhost token expires after the hour too.
      const own = tokensOf(await client.refresh(refreshToken));
      token = own.access_token;
      world.wait(20 * secondMs);
      const { status, headers } = await rawCall();
      assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
      assertOAuthError(await client.refresh(own.refresh_token), 503, 'temporarily_unavailable');
      world.provider.onToken();
      assert.equal((await rawCall()).status, 200);
      tokensOf(await client.refresh(own.refresh_token));
    });
  }

  for (const [what, answer] of [
    ['400 and an empty body', { status: 400, body: '' }],
    ['401 and an HTML page', { status: 401, body: '<html>' }],
    ['400 and JSON without an error', { status: 400, body: { message: 'Bad Request' } }],
    ['400 and an error code unknown to OAuth', { status: 400, body: { error: 'E4711' } }],
  ] as [string, Answer][]) {
    it(`[find E7] fails only the call when the provider refuses to renew with ${what}, and ends the login after three in a row over more than a minute`, async () => {
      const refuse = async (times: number, apartMs: number) => {
        world.provider.onToken(() => answer);
        for (const _ of Array(times)) {
          const { status, headers } = await rawCall();
          assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
          world.wait(apartMs);
        }
      };
      // The Toolhost token outlives the provider's token.
      world.provider.onToken((form) => {
        const { body } = world.provider.honest(form);
        return { body: { ...(body as object), expires_in: 60 } };
      });
      ({ access_token: token, refresh_token: refreshToken } = await world.tokens(client));
      world.wait(61 * secondMs);
      await refuse(2, 40 * secondMs);
      world.provider.onToken(() => ({ status: 503 }));
      assert.equal((await rawCall()).status, 503, 'a different error, so the count starts again');
      await refuse(4, 14 * secondMs);
      world.wait(5 * secondMs);
      const { status, headers } = await rawCall();
      assert.equal(status, 401);
      assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/);
      assertOAuthError(await client.refresh(refreshToken), 400, 'invalid_grant');
    });
  }

  it('[find E7] resets the count of unexplained refusals at the next renewal', async () => {
    world.wait(61 * 60 * secondMs);
    let last = refreshToken;
    for (const _ of Array(2)) {
      world.provider.onToken(() => ({ status: 400 }));
      for (const _ of Array(2)) {
        assertOAuthError(await client.refresh(last), 503, 'temporarily_unavailable');
        world.wait(60 * secondMs);
      }
      world.provider.onToken();
      last = tokensOf(await client.refresh(last)).refresh_token;
      world.wait(61 * 60 * secondMs);
    }
    tokensOf(await client.refresh(last));
  });

  it('returns the upstream’s 401 when the provider is down at that moment, and recovers', async () => {
    world.refuseFirstToken();
    world.provider.onToken(() => ({ status: 503 }));
    const result = await world.call(slug, token);
    assert.match(textOf(result), /^HTTP 401 Unauthorized/);
    world.provider.onToken();
    assert.notEqual((await world.call(slug, token)).isError, true);
  });

  it('stores no tokens for a login that ended during the request to the provider', async () => {
    world.provider.onToken(() => 'hold');
    world.wait(nearlyOverMs);
    const calling = rawCall();
    const held = await world.provider.waitForToken();
    await client.revoke(token);
    held.release({
      body: { access_token: 'too-late', token_type: 'bearer', refresh_token: 'too-late', expires_in: 600 },
    });
    assert.equal((await calling).status, 401);
    assert.equal((await rawCall()).status, 401);
    assert.deepEqual(bearers(), []);
    const { db } = world.toolhost.running.app.runner;
    const ended = await db.selectFrom('grants').select('sealed_tokens').where('revoked_at', 'is not', null).execute();
    assert.ok(ended.length > 0 && ended.every(({ sealed_tokens }) => sealed_tokens === ''));
  });

  it('serves other logins while a provider does not respond for one', async () => {
    const { access_token: other } = await world.tokens(client);
    const unaffected = await world.serve();
    const itsClient = await world.client(unaffected);
    world.wait(nearlyOverMs);
    world.provider.onToken(() => 'hold');
    world.provider.takeTokens();
    const calling = [rawCall(), rawCall()];
    const held = await world.provider.waitForToken();
    world.provider.onToken();
    const tokens = await world.tokens(itsClient);
    assert.notEqual((await world.call(unaffected, tokens.access_token)).isError, true);
    assert.notEqual((await world.call(slug, other)).isError, true);
    held.release({ status: 500 });
    await eventually(async () => {
      const statuses = (await Promise.all(calling)).map(({ status }) => status);
      assert.deepEqual(statuses, [200, 200]);
    });
  });
});
