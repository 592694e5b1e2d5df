import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import type { OAuthClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('login check', async () => {
  const world = await startLoginWorld();
  beforeEach(() => world.provider.onToken());
  after(() => world.stop());

  const check = (slug: string, client: OAuthClient, code: string, verifier: string, key?: string) =>
    world.toolhost.rest('POST', `/servers/${slug}/login-check`, {
      body: { client_id: client.id, code, code_verifier: verifier, redirect_uri: client.redirectUri },
      ...(key !== undefined && { key }),
    });

  /** Logs in at a server and checks the login. */
  async function checkLogin(oauth: Json = {}) {
    const { slug, client } = await world.createClient({}, oauth);
    const { code, verifier } = await world.logIn(client);
    const reply = await check(slug, client, code, verifier);
    assert.equal(reply.status, 200, reply.text);
    return { ...reply, slug, client, code, verifier };
  }

  /** Asserts the remaining time, of which up to a minute may have passed. */
  function assertRemainingTime(seconds: unknown, expected: unknown): void {
    if (expected === undefined) assert.equal(seconds, undefined);
    else assert.ok(Number(seconds) <= Number(expected) && Number(seconds) > Number(expected) - 60, String(seconds));
  }

  const tokens = { access_token: 'of-the-provider', token_type: 'bearer' };
  const requestedScopes = ['read', 'write'];
  const full = { expires_in: 600, refresh_token: 'r-of-the-provider', scope: 'write read' };
  const responses: [what: string, answer: Json, scopes: string[], missing: string[], renewable?: boolean][] = [
    ['only a token', {}, requestedScopes, []],
    ['all fields', full, ['write', 'read'], [], true],
    ['fewer scopes', { scope: 'read' }, ['read'], ['write']],
    ['commas between scopes', { scope: 'read,write,more' }, [...requestedScopes, 'more'], []],
    ['an empty scope', { scope: '' }, [], requestedScopes],
  ];
  for (const [what, response, scopes, missing_scopes, renewable = false] of responses) {
    it(`reports the result, without a token, when the provider's response has ${what}`, async () => {
      world.provider.onToken(() => ({ body: { ...tokens, ...response } }));
      const { body, text } = await checkLogin();
      const { expires_in_s: seconds, ...rest } = body;
      assert.deepEqual(rest, { scopes, missing_scopes, renewable });
      assertRemainingTime(seconds, response.expires_in);
      assert.doesNotMatch(text, /of-the-provider|th[arp]_/);
    });
  }

  it('reports the result of a passthrough login', async () => {
    const { body, text } = await checkLogin({ token_mode: 'passthrough' });
    const { expires_in_s: seconds, ...rest } = body;
    assert.deepEqual(rest, { scopes: requestedScopes, missing_scopes: [], renewable: true });
    assertRemainingTime(seconds, 3600);
    assert.doesNotMatch(text, /provider-access|th[arp]_/);
  });

  it('ends the login: uses up its code and lists it as revoked', async () => {
    const { slug, client, code, verifier } = await checkLogin();
    const repeated = await check(slug, client, code, verifier);
    assert.deepEqual([repeated.status, /could not be finished/.test(String(repeated.body.detail))], [400, true]);
    assert.equal((await client.redeem(code, verifier)).status, 400);
    const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}`);
    const statuses = (body.grants as Json[]).map(({ status }) => status);
    assert.deepEqual(statuses, ['revoked']);
    const audit = (await world.toolhost.rest('GET', '/audit?limit=2')).body.events as Json[];
    const events = audit.map(({ operation, target }) => `${operation} ${target}`);
    assert.deepEqual(events, [`loginRevoked ${slug}`, `login ${slug}`]);
  });

  it('does not end a login without its verifier and client', async () => {
    const { slug, client } = await world.createClient();
    const { code, verifier } = await world.logIn(client);
    assert.equal((await check(slug, client, code, 'v'.repeat(43))).status, 400);
    assert.equal((await check(slug, await world.registerClient(slug), code, verifier)).status, 400);
    assert.equal((await client.redeem(code, verifier)).status, 200);
  });

  it("requires permission to change the server, the server's workspace, and a server with a login", async () => {
    const { slug, client, code, verifier } = await checkLogin();
    const { toolhost } = world;
    const status = async (key: string) => (await check(slug, client, code, verifier, key)).status;
    assert.equal(await status(await toolhost.createKey({ scopes: ['manage:read'] })), 403);
    assert.equal(await status(await toolhost.createKey({ workspace: 'another' })), 404);
    await toolhost.createServer({ name: 'No login', slug: 'no-login', tools: [] });
    const { body, status: missing } = await check('no-login', client, code, verifier);
    assert.deepEqual(
      [missing, body.detail],
      [404, 'this server has no login; add login or oauth to its configuration first'],
    );
  });

  const credentials = "refused this server's client id or client secret with status";
  const refusals: [number, Json, string][] = [
    [401, { error: 'invalid_client' }, `${credentials} 401; it may require 'client_auth': 'basic' in oauth`],
    [400, { error: 'unauthorized_client' }, `${credentials} 400`],
    [404, {}, 'refused the request with status 404'],
  ];
  for (const [status, body, message] of refusals) {
    it(`reports to the client why the provider issued no token: ${status} ${JSON.stringify(body)}`, async () => {
      world.provider.onToken(() => ({ status, body }));
      const client = await world.registerClient(await world.createServer());
      const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
      assert.equal(searchParams.get('error'), 'server_error');
      assert.equal(searchParams.get('error_description'), `the token endpoint ${message}`);
    });
  }
});
