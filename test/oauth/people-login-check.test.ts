import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('login check of a server that people log in to', () => {
  const fixtures = useFixtures();
  const world = fixtures.start(startLocalPeopleWorld);

  /** Logs a person in as the dashboard does. Returns the input of the check. */
  async function logIn(slug: string, name: string, fields?: Record<string, string>): Promise<Json> {
    const client = await registerClient({ issuer: `${world.toolhost.url}/mcp/${slug}` });
    const { url, verifier } = client.authorization();
    const { searchParams } = await world.createPerson(name, fields).completeLogin(url);
    const code = searchParams.get('code') ?? assert.fail(searchParams.toString());
    return { client_id: client.id, code, code_verifier: verifier, redirect_uri: client.redirectUri };
  }

  const login = { allow: { domains: ['people.example'] } };

  it('reports who logged in, until when, and if the login can be renewed, and ends it', async () => {
    await world.createServer('stored', { authentication: { type: 'Bearer', token: 'stored' }, login });
    const { status, body } = await world.request('POST', '/servers/stored/login-check', await logIn('stored', 'anna'));
    assert.equal(status, 200, JSON.stringify(body));
    const { expires_in_s: seconds, ...rest } = body;
    assert.deepEqual(rest, { scopes: [], missing_scopes: [], renewable: true, person: 'anna@people.example' });
    assert.ok(Number(seconds) > 540 && Number(seconds) <= 600, String(seconds));
    const { grants } = (await world.request('GET', '/grants?slug=stored')).body as { grants: Json[] };
    assert.deepEqual(
      grants.map((grant) => grant.status),
      ['revoked'],
    );
  });

  it('does not name the person to programs', async () => {
    const body = await logIn('stored', 'anna');
    const reply = await world.toolhost.rest('POST', '/servers/stored/login-check', { body });
    assert.deepEqual([reply.status, 'person' in reply.body], [200, false], reply.text);
  });

  it('plays the form, too, and keeps the entered values for the person', async () => {
    const fields = [{ name: 'API_TOKEN', label: 'Personal token' }];
    const authentication = { type: 'Bearer', token: '{{API_TOKEN}}' };
    await world.createServer('own', { authentication, login: { ...login, fields } });
    const { lastPages, completeLogin } = world.createPerson('anna');
    const body = await logIn('own', 'anna', { API_TOKEN: 'key-of-anna' });
    const reply = await world.request('POST', '/servers/own/login-check', body);
    assert.deepEqual([reply.status, reply.body.person], [200, 'anna@people.example']);
    // A second login asks for nothing.
    const client = await registerClient({ issuer: `${world.toolhost.url}/mcp/own` });
    const redirect = await completeLogin(client.authorization().url);
    assert.ok(redirect.searchParams.has('code'), lastPages.at(-1)?.html ?? '');
  });
});
