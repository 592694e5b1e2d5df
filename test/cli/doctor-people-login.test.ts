import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { runDoctor, runDoctorWithLogin } from '../support/toolhost/doctor-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('toolhost doctor at a server that people log in to', () => {
  const fixtures = useFixtures();
  const world = fixtures.start(startLocalPeopleWorld);
  fixtures.start(async () => {
    world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
    const allow = { domains: ['people.example'] };
    await world.createServer('stored', {
      authentication: { type: 'Bearer', token: 'stored-upstream-key' },
      login: { allow, clients: ['https://claude.ai/api/mcp/auth_callback'] },
    });
    await world.createServer('own', {
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      login: { allow, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
    });
    return {};
  });
  const getUrl = (slug: string) => `${world.toolhost.url}/mcp/${slug}`;

  const loginChecks = [
    ...['challenge', 'resource_metadata', 'server_metadata', 'cors', 'registration', 'register', 'redirect_uris'],
    ...['authorize', 'pkce', 'redirect_uri', 'token_endpoint', 'expired_token'],
  ];

  it('[ship 6] verifies discovery, challenge, registration, and the start of the login', async () => {
    const { code, checks, stderr } = await runDoctor(getUrl('own'));
    assert.equal(code, 0, stderr);
    for (const id of loginChecks)
      assert.equal(checks.find((check) => check.id === id)?.status, 'ok', JSON.stringify(checks, undefined, 1));
  });

  for (const slug of ['stored', 'own']) {
    it(`[ship 6] plays the whole login at the server "${slug}", refreshes it, calls a tool, and ends the login`, async () => {
      const { completeLogin } = world.createPerson('anna', { API_TOKEN: 'key-of-anna' });
      const call = ['--call', 'who_am_i', '--yes'];
      const { code, checks, stderr } = await runDoctorWithLogin(getUrl(slug), completeLogin, ...call);
      assert.equal(code, 0, stderr + JSON.stringify(checks, undefined, 1));
      for (const id of [...loginChecks, 'login', 'refresh', 'token', 'tool_list', 'call', 'logout'])
        assert.equal(checks.find((check) => check.id === id)?.status, 'ok', id);
      const expected = slug === 'own' ? 'Bearer key-of-anna' : 'Bearer stored-upstream-key';
      assert.equal(world.upstream.take().at(-1)?.headers.authorization, expected);
      const { grants } = (await world.request('GET', `/grants?slug=${slug}`)).body as { grants: { status: string }[] };
      assert.equal(grants[0]?.status, 'revoked');
    });
  }

  it('[ship 6] reports that a person was refused, and that the browser shows the reason', async () => {
    const { completeLogin } = world.createPerson('otto');
    const { code, checks } = await runDoctorWithLogin(getUrl('own'), completeLogin);
    const login = checks.find(({ id }) => id === 'login');
    assert.deepEqual([code, login?.status], [1, 'problem']);
    assert.match(login?.detail ?? '', /canceled or refused; the browser shows which/);
  });

  it('is let in at a server that lets in only some clients, which no other redirect URI achieves', async () => {
    const redirectUris = ['http://127.0.0.1/callback', 'http://localhost/toolhost/callback'];
    for (const redirectUri of redirectUris) {
      const client = await registerClient({ issuer: getUrl('stored'), redirectUri });
      const response = await fetch(client.authorization().url, { redirect: 'manual' });
      const location = new URL(response.headers.get('location') ?? assert.fail(redirectUri));
      assert.equal(location.searchParams.get('error'), 'access_denied', redirectUri);
      assert.match(location.searchParams.get('error_description') ?? '', /does not allow this client/);
    }
  });
});
