import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import type { OAuthClient } from '../support/oauth/oauth-client.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('REST API with tokens of the management login', async () => {
  const world = await startLoginWorld();
  const agent = await signInAgent(world.toolhost);
  after(() => world.stop());
  const requestApi = (method: string, path: string, key: string, body?: unknown) =>
    world.toolhost.rest(method, path, { key, ...(body !== undefined && { body }) });

  it('[ship 7] accepts them for everything that the person may do, in the name of the person', async () => {
    const { access_token: token } = agent.tokens;
    const created = await requestApi('POST', '/servers', token, buildServerAt('by-login', world.upstream.url));
    assert.equal(created.status, 201, created.text);
    assert.match((created.body.server as { created_by: string }).created_by, /^usr_/);
    const listed = await requestApi('GET', '/servers', token);
    assert.ok(listed.text.includes('by-login'));
  });

  it('[ship 7] returns 401 with the login location (RFC 9728)', async () => {
    const { url } = world.toolhost;
    const refused = await requestApi('GET', '/servers', 'tha_made-up');
    const metadataUrl = `${url}/.well-known/oauth-protected-resource/api/v1`;
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get('www-authenticate'), `Bearer resource_metadata="${metadataUrl}"`);
    const response = await fetch(metadataUrl, { headers: { origin: 'https://client.example' } });
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    const metadata = (await response.json()) as { resource: string; authorization_servers: string[] };
    assert.deepEqual([metadata.resource, metadata.authorization_servers], [`${url}/api/v1`, [`${url}/mcp/manage`]]);
  });

  it('[ship 7] issues tokens for the API as a resource, and for no other resource (RFC 8707)', async () => {
    const getError = async ({ refresh }: OAuthClient, resource: string) =>
      (await refresh('thr_none', { resource })).body.error;
    const api = `${world.toolhost.url}/api/v1`;
    assert.equal(await getError(agent.client, api), 'invalid_grant');
    for (const other of [`${world.toolhost.url}/api`, 'https://evil.example/api/v1'])
      assert.equal(await getError(agent.client, other), 'invalid_target', other);
    const hosted = await world.registerClient(await world.createServer());
    assert.equal(await getError(hosted, api), 'invalid_target');
  });

  it('[ship 7] rejects tokens of hosted servers, and refresh tokens', async () => {
    const slug = await world.createServer();
    const { access_token, refresh_token } = await world.getTokens(await world.registerClient(slug));
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    for (const token of [access_token, refresh_token, agent.tokens.refresh_token])
      assert.equal((await requestApi('GET', '/servers', token)).status, 401);
    assert.equal((await world.listTools(slug, agent.tokens.access_token)).status, 401);
  });

  it('[ship 7] rejects the creation of an API key, which would outlive the login', async () => {
    const refused = await requestApi('POST', '/keys', agent.tokens.access_token, { name: 'mine', scopes: ['manage'] });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /a login cannot create API keys/);
    assert.equal((await requestApi('GET', '/keys', agent.tokens.access_token)).status, 200);
  });

  it('[ship 7] rejects a token without the needed scope, an expired token, and a token of an ended login', async () => {
    const other = await signInAgent(world.toolhost, 'manage:read');
    const token = other.tokens.access_token;
    assert.equal((await requestApi('GET', '/servers', token)).status, 200);
    const refused = await requestApi('POST', '/servers', token, buildServerAt('never', world.upstream.url));
    assert.deepEqual([refused.status, /needs the scope manage:write/.test(refused.text)], [403, true]);
    assert.equal((await requestApi('POST', '/servers/by-login/tools/run/call', token, {})).status, 403);
    assert.equal((await other.client.revoke(other.tokens.refresh_token)).status, 200);
    assert.equal((await requestApi('GET', '/servers', token)).status, 401);
    world.advanceClock(61 * 60_000);
    assert.equal((await requestApi('GET', '/servers', agent.tokens.access_token)).status, 401);
  });
});
