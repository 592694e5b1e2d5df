import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { logInAtProvider } from '../support/oauth/log-in.ts';
import { expectTokens, registerClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('people at a local service with an identity provider of its operator', () => {
  const fixtures = useFixtures();
  const world = fixtures.start(startLocalPeopleWorld);
  fixtures.start(async () => {
    world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
    await world.createServer('stored', {
      authentication: { type: 'Bearer', token: 'stored-upstream-key' },
      login: { allow: { domains: ['people.example'] } },
    });
    return {};
  });

  async function logIn(name: string, host = '127.0.0.1') {
    const issuer = `http://${host}:${new URL(world.toolhost.url).port}/mcp/stored`;
    const client = await registerClient({ issuer });
    const { url, verifier } = client.authorization();
    const { searchParams } = await world.createPerson(name).completeLogin(url);
    const tokens = expectTokens(await client.redeem(searchParams.get('code') ?? '', verifier));
    return { issuer, searchParams, token: tokens.access_token };
  }

  it('[mcp 57] ends a login at localhost where it began, after the identity provider returned to BASE_URL', async () => {
    const { issuer, searchParams, token } = await logIn('anna', 'localhost');
    assert.equal(searchParams.get('iss'), issuer);
    assert.equal((await world.toolhost.rpc('stored', token, 'tools/list')).status, 200);
  });

  it('[sec D12] does not redirect the return from the identity provider to any other host', async () => {
    const { port } = new URL(world.toolhost.url);
    for (const host of ['evil.example', `localhost:${port}@evil.example`, 'localhost', '']) {
      const state = `mcp.stored.x.${Buffer.from(host).toString('base64url')}`;
      const page = await createBrowser().get(`${world.toolhost.url}/login/callback?code=x&state=${state}`);
      assert.deepEqual([page.status >= 400, page.headers.get('location')], [true, null], host);
    }
  });

  it('names the person of a call to people in the dashboard, even after the login has ended, and not to programs', async () => {
    const { token } = await logIn('bert');
    await world.toolhost.callTool('stored', token, 'who_am_i');
    const [login] = (await world.request('GET', '/grants?slug=stored')).body.grants as { id: string }[];
    const [call] = (await world.request('GET', `/calls?key_id=${login?.id}`)).body.calls as { id: string }[];
    const getCallerName = async () => (await world.request('GET', `/calls/${call?.id}`)).body.caller_name;
    assert.equal(await getCallerName(), 'Test agent (bert@people.example)');
    assert.equal((await world.toolhost.rest('GET', `/calls/${call?.id}`)).body.caller_name, 'Test agent');
    assert.equal((await world.request('DELETE', `/grants/${login?.id}`)).status, 200);
    assert.equal(await getCallerName(), 'Test agent (bert@people.example)');
  });

  it('names a refused person in the audit log to people, and not to programs', async () => {
    const client = await registerClient({ issuer: `${world.toolhost.url}/mcp/stored` });
    const browser = createBrowser();
    const start = await browser.get(client.authorization().url);
    const returned = await logInAtProvider(browser, start, 'otto', `${world.toolhost.url}/login/callback`);
    assert.equal((await browser.get(getNextUrl(returned))).status, 403);
    const path = '/audit?operation=loginFailed';
    const getDetail = ({ body }: { body: Json }) => (body.events as { detail: Json }[])[0]?.detail;
    const detail = { client: 'Test agent', error: 'access_denied' };
    assert.deepEqual(getDetail(await world.request('GET', path)), { ...detail, person: 'otto@other.example' });
    assert.deepEqual(getDetail(await world.toolhost.rest('GET', path)), detail);
  });
});
