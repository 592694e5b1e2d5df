import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createBrowser, getNextUrl, visibleText } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const checkSeconds = 5;

function createConfig(url: string) {
  return {
    name: 'Shop',
    slug: 'shop',
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    tools: [
      {
        name: 'read_item',
        description: 'Reads one item from the shop.',
        method: 'GET',
        url: `${url}/items`,
        input_schema: {},
      },
    ],
  };
}

describe('person at the identity provider after a login', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const world = fixtures.start(() =>
    startPeopleWorld({
      env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}`, IDENTITY_CHECK_SECONDS: String(checkSeconds) },
    }),
  );
  const login = { allow: { groups: ['support'] }, fields: [{ name: 'API_TOKEN', label: 'Token' }] };
  const fields = { API_TOKEN: 'key' };
  const getStatus = async (token: string) => (await world.post('shop', token, 'tools/list')).status;
  const hasEnded = (token: string) =>
    eventually(async () => {
      const status = await getStatus(token);
      if (status !== 401) await delay(500);
      assert.equal(status, 401);
    });

  it('loses access within the time between two checks when removed or when the group is lost, and others keep theirs', async () => {
    assert.equal((await world.createServer({ ...createConfig(upstream.url), login })).status, 201);
    for (const name of ['rolf', 'gina', 'nora']) world.provider.setClaims(name, { groups: ['support'] });
    const [rolf, gina, nora] = await Promise.all([
      world.logIn('shop', 'rolf', { fields }),
      world.logIn('shop', 'gina', { fields }),
      world.logIn('shop', 'nora', { fields }),
    ]);
    assert.ok(rolf.expires_in <= checkSeconds, String(rolf.expires_in));
    assert.deepEqual(
      await Promise.all([rolf, gina, nora].map((tokens) => getStatus(tokens.access_token))),
      [200, 200, 200],
    );
    world.provider.removePerson('rolf');
    world.provider.setClaims('gina', { groups: ['sales'] });
    await hasEnded(rolf.access_token);
    await hasEnded(gina.access_token);
    const refresh = ({ refresh_token, clientId }: typeof rolf) =>
      world.postForm('/mcp/shop/token', { grant_type: 'refresh_token', refresh_token, client_id: clientId });
    assert.equal((await refresh(rolf)).body.error, 'invalid_grant');
    assert.equal((await refresh(gina)).body.error, 'invalid_grant');
    const renewed = await refresh(nora);
    assert.equal(renewed.status, 200, renewed.text);
    assert.equal(await getStatus(String(renewed.body.access_token)), 200);
  });
});

describe('login at a server in local mode', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const toolhost = fixtures.start(() => startToolhost({ env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}` } }));

  it('lets the only person in after consent, asks for their values, and uses them with API keys, too', async () => {
    const key = await toolhost.createKey();
    const config = { ...createConfig(upstream.url), login: { fields: [{ name: 'API_TOKEN', label: 'Token' }] } };
    await toolhost.createServer(config);
    const issuer = `${toolhost.url}/mcp/shop`;
    const client = await registerClient({ issuer });
    const { url, verifier } = client.authorization();
    const browser = createBrowser();
    const consent = await browser.get(url);
    assert.match(visibleText(consent), /Signed in as you@localhost\.example Identified by this machine/);
    const form = await browser.press(consent, 'Allow');
    const saved = await browser.press(form, 'Save and continue', { fields: toInputs({ API_TOKEN: 'local-key' }) });
    const tokens = await client.redeem(getNextUrl(saved).searchParams.get('code') ?? '', verifier);
    for (const token of [String(tokens.body.access_token), key]) {
      await toolhost.callTool('shop', token, 'read_item');
      assert.equal(upstream.requests.at(-1)?.headers.authorization, 'Bearer local-key');
    }
  });
});
