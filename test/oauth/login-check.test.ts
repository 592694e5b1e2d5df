import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { next } from '../support/browser/browser.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import type { OAuthClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('login check', () => {
  let world: LoginWorld;
  before(async () => {
    world = await startLoginWorld();
  });
  beforeEach(() => world.provider.onToken());
  after(() => world.stop());

  const check = (slug: string, client: OAuthClient, code: string, verifier: string, key?: string) =>
    world.toolhost.rest('POST', `/servers/${slug}/login-check`, {
      body: { client_id: client.id, code, code_verifier: verifier, redirect_uri: client.redirectUri },
      ...(key !== undefined && { key }),
    });

  /** Logs in at a server and checks the login. */
  async function given(oauth: Json = {}) {
    const slug = await world.serve({}, oauth);
    const client = await world.client(slug);
    const { code, verifier } = await world.logIn(client);
    const reply = await check(slug, client, code, verifier);
    assert.equal(reply.status, 200, reply.text);
    return { ...reply, slug, client, code, verifier };
  }

  /** Asserts the remaining time, of which up to a minute may have passed. */
  function assertSpan(seconds: unknown, of: unknown): void {
    if (of === undefined) assert.equal(seconds, undefined);
    else assert.ok(Number(seconds) <= Number(of) && Number(seconds) > Number(of) - 60, String(seconds));
  }

  const tokens = { access_token: 'of-the-provider', token_type: 'bearer' };
  const asked = ['read', 'write'];
  const answers: [what: string, answer: Json, output: Json][] = [
    ['only a token', {}, { scopes: asked, missing_scopes: [], renewable: false }],
    [
      'all fields',
      { expires_in: 600, refresh_token: 'r-of-the-provider', scope: 'write read' },
      { scopes: ['write', 'read'], missing_scopes: [], renewable: true },
    ],
    ['fewer scopes', { scope: 'read' }, { scopes: ['read'], missing_scopes: ['write'], renewable: false }],
    [
      'commas between scopes',
      { scope: 'read,write,more' },
      { scopes: [...asked, 'more'], missing_scopes: [], renewable: false },
    ],
    ['an empty scope', { scope: '' }, { scopes: [], missing_scopes: asked, renewable: false }],
  ];
  for (const [what, answer, output] of answers) {
    it(`reports the result, without a token, when the provider's response has ${what}`, async () => {
      world.provider.onToken(() => ({ body: { ...tokens, ...answer } }));
      const { body, text } = await given();
      const { expires_in_s: seconds, ...rest } = body;
      assert.deepEqual(rest, output);
      assertSpan(seconds, answer.expires_in);
      assert.doesNotMatch(text, /of-the-provider|th[arp]_/);
    });
  }

  it('reports the result of a passthrough login', async () => {
    const { body, text } = await given({ token_mode: 'passthrough' });
    const { expires_in_s: seconds, ...rest } = body;
    assert.deepEqual(rest, { scopes: asked, missing_scopes: [], renewable: true });
    assertSpan(seconds, 3600);
    assert.doesNotMatch(text, /provider-access|th[arp]_/);
  });

  it('ends the login: uses up its code and lists it as revoked', async () => {
    const { slug, client, code, verifier } = await given();
    const again = await check(slug, client, code, verifier);
    assert.deepEqual([again.status, /could not be finished/.test(String(again.body.detail))], [400, true]);
    assert.equal((await client.redeem(code, verifier)).status, 400);
    const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}`);
    assert.deepEqual(
      (body.grants as Json[]).map(({ status }) => status),
      ['revoked'],
    );
    const audit = (await world.toolhost.rest('GET', '/audit?limit=2')).body.events as Json[];
    assert.deepEqual(
      audit.map(({ operation, target }) => [operation, target]),
      [
        ['loginRevoked', slug],
        ['login', slug],
      ],
    );
  });

  it('does not end a login without its verifier and client', async () => {
    const slug = await world.serve();
    const client = await world.client(slug);
    const { code, verifier } = await world.logIn(client);
    assert.equal((await check(slug, client, code, 'v'.repeat(43))).status, 400);
    assert.equal((await check(slug, await world.client(slug), code, verifier)).status, 400);
    assert.equal((await client.redeem(code, verifier)).status, 200);
  });

  it("requires permission to change the server, the server's workspace, and a server with a login", async () => {
    const { slug, client, code, verifier } = await given();
    const { toolhost } = world;
    const status = async (key: string) => (await check(slug, client, code, verifier, key)).status;
    assert.equal(await status(await toolhost.key({ scopes: ['manage:read'] })), 403);
    assert.equal(await status(await toolhost.key({ workspace: 'another' })), 404);
    await toolhost.createServer({ name: 'No login', slug: 'no-login', tools: [] });
    const { body, status: missing } = await check('no-login', client, code, verifier);
    assert.deepEqual([missing, body.detail], [404, 'this server has no login; add oauth to its configuration first']);
  });

  const refusals: [number, Json, string][] = [
    [
      401,
      { error: 'invalid_client' },
      "refused this server's client id or client secret with status 401; it may require 'client_auth': 'basic' in oauth",
    ],
    [400, { error: 'unauthorized_client' }, "refused this server's client id or client secret with status 400"],
    [404, {}, 'refused the request with status 404'],
  ];
  for (const [status, body, said] of refusals) {
    it(`reports to the client why the provider issued no token: ${status} ${JSON.stringify(body)}`, async () => {
      world.provider.onToken(() => ({ status, body }));
      const page = await world.returned((await world.client(await world.serve())).authorization());
      const { searchParams } = next(page);
      assert.equal(searchParams.get('error'), 'server_error');
      assert.equal(searchParams.get('error_description'), `the token endpoint ${said}`);
    });
  }
});
