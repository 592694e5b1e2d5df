import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { post } from '../support/oauth/oauth-client.ts';
import { type SignedInAgent, signInAgent } from '../support/oauth/signed-in-agent.ts';

describe('REST API with tokens of the management login', () => {
  let world: LoginWorld;
  let agent: SignedInAgent;
  before(async () => {
    world = await startLoginWorld();
    agent = await signInAgent(world.toolhost);
  });
  after(() => world.stop());
  const rest = (method: string, path: string, key: string, body?: unknown) =>
    world.toolhost.rest(method, path, { key, ...(body !== undefined && { body }) });

  it('[ship 7] accepts them for everything that the person may do, in the name of the person', async () => {
    const { access_token: token } = agent.tokens;
    const made = await rest('POST', '/servers', token, serverAt('by-login', world.upstream.url));
    assert.equal(made.status, 201, made.text);
    assert.match((made.body.server as { created_by: string }).created_by, /^usr_/);
    const listed = await rest('GET', '/servers', token);
    assert.ok(listed.text.includes('by-login'));
  });

  it('[ship 7] returns 401 with the login location (RFC 9728)', async () => {
    const { url } = world.toolhost;
    const refused = await rest('GET', '/servers', 'tha_made-up');
    const metadataUrl = `${url}/.well-known/oauth-protected-resource/api/v1`;
    assert.deepEqual(
      [refused.status, refused.headers.get('www-authenticate')],
      [401, `Bearer resource_metadata="${metadataUrl}"`],
    );
    const answer = await fetch(metadataUrl, { headers: { origin: 'https://client.example' } });
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    const metadata = (await answer.json()) as { resource: string; authorization_servers: string[] };
    assert.deepEqual([metadata.resource, metadata.authorization_servers], [`${url}/api/v1`, [`${url}/mcp/manage`]]);
  });

  it('[ship 7] issues tokens for the API as a resource, and for no other resource (RFC 8707)', async () => {
    const { client } = agent;
    const asked = (resource: string) =>
      post(
        `${world.issuer('manage')}/token`,
        new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'thr_none', client_id: client.id, resource }),
      );
    assert.equal((await asked(`${world.toolhost.url}/api/v1`)).body.error, 'invalid_grant');
    for (const other of [`${world.toolhost.url}/api`, 'https://evil.example/api/v1'])
      assert.equal((await asked(other)).body.error, 'invalid_target', other);
    const hosted = await world.serve();
    const id = (await world.client(hosted)).id;
    const form = { grant_type: 'refresh_token', refresh_token: 'thr_none', client_id: id };
    const confused = await post(
      `${world.issuer(hosted)}/token`,
      new URLSearchParams({ ...form, resource: `${world.toolhost.url}/api/v1` }),
    );
    assert.equal(confused.body.error, 'invalid_target');
  });

  it('[ship 7] rejects tokens of hosted servers, and refresh tokens', async () => {
    const slug = await world.serve();
    const { access_token, refresh_token } = await world.tokens(await world.client(slug));
    assert.equal((await world.list(slug, access_token)).status, 200);
    for (const token of [access_token, refresh_token, agent.tokens.refresh_token])
      assert.equal((await rest('GET', '/servers', token)).status, 401);
    assert.equal((await world.list(slug, agent.tokens.access_token)).status, 401);
  });

  it('[ship 7] rejects the creation of an API key, which would outlive the login', async () => {
    const refused = await rest('POST', '/keys', agent.tokens.access_token, { name: 'mine', scopes: ['manage'] });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /a login cannot create API keys/);
    assert.equal((await rest('GET', '/keys', agent.tokens.access_token)).status, 200);
  });

  it('[ship 7] rejects a token without the needed scope, an expired token, and a token of an ended login', async () => {
    const other = await signInAgent(world.toolhost, 'manage:read');
    const token = other.tokens.access_token;
    assert.equal((await rest('GET', '/servers', token)).status, 200);
    const refused = await rest('POST', '/servers', token, serverAt('never', world.upstream.url));
    assert.deepEqual([refused.status, /needs the scope manage:write/.test(refused.text)], [403, true]);
    assert.equal((await rest('POST', '/servers/by-login/tools/run/call', token, {})).status, 403);
    assert.equal((await other.client.revoke(other.tokens.refresh_token)).status, 200);
    assert.equal((await rest('GET', '/servers', token)).status, 401);
    world.wait(61 * 60_000);
    assert.equal((await rest('GET', '/servers', agent.tokens.access_token)).status, 401);
  });
});
