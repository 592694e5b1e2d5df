import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getNextUrl, visibleText } from '../support/browser/browser.ts';
import { startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import { productionUrl } from '../support/oauth/production-world.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { createNameServers } from '../support/upstreams/name-servers.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('a host that contains the value of a person', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const names = createNameServers(4);
  const world = fixtures.start(() =>
    startPeopleWorld({
      // `x` stands for any label when the configuration is saved.
      env: { EGRESS_ALLOW: ['x', 'acme', 'globex'].map((label) => `${label}.api.example:${upstream.port}`).join(',') },
      runtimeOptions: { resolve: names.resolve },
    }),
  );

  const createTool = (more: Json = {}): Json => ({
    name: 'read',
    description: 'Reads the items of a site.',
    method: 'GET',
    url: '/{{site}}/items?k={{API_TOKEN}}',
    ...more,
  });

  const createServer = async (slug: string, { redirects, ...more }: Json = {}) => {
    const config: Json = {
      name: slug,
      slug,
      login: {
        allow: { domains: ['people.example'] },
        fields: [
          { name: 'site', label: 'Site', secret: false, pattern: '.*' },
          { name: 'API_TOKEN', label: 'Token' },
        ],
      },
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      base_url: `http://{{site}}.api.example:${upstream.port}/v1`,
      tools: [createTool({ redirects })],
      ...more,
    };
    const reply = await world.createServer(config);
    assert.equal(reply.status, 201, reply.text);
  };
  const call = (slug: string, token: string): Promise<Reply> =>
    world.post(slug, token, 'tools/call', { name: 'read', arguments: {} });

  it("receives each person's own values, and records name only the configured host", async () => {
    await createServer('by-site');
    for (const [name, site] of [
      ['anna', 'acme'],
      ['ben', 'Globex'],
    ] as const) {
      const fields = { site, API_TOKEN: `key-of-${name}/?&` };
      const { access_token } = await world.logIn('by-site', name, { fields });
      const reply = await call('by-site', access_token);
      assert.equal((reply.body.result as { isError?: boolean }).isError ?? false, false, reply.text);
      const { url, headers } = upstream.take()[0] ?? assert.fail('the upstream was not called');
      assert.equal(headers.host, `${site.toLowerCase()}.api.example:${upstream.port}`);
      assert.equal(headers.authorization, `Bearer ${fields.API_TOKEN}`);
      assert.equal(url, `/v1/${site}/items?k=key-of-${name}%2F%3F%26`);
    }
    const { body } = await world.request(world.owner, 'GET', '/calls?slug=by-site');
    assert.ok(Array.isArray(body.calls), JSON.stringify(body));
    const hosts = (body.calls as Json[]).map(({ upstream_host }) => upstream_host);
    assert.deepEqual([...new Set(hosts)], [`{{site}}.api.example:${upstream.port}`]);
  });

  it('keeps the credential of a call on redirects within the host of the person, and only there', async () => {
    await createServer('redirected', { redirects: 'follow' });
    const { access_token } = await world.logIn('redirected', 'anna', { fields: { site: 'acme', API_TOKEN: 'key' } });
    for (const [host, expected] of [
      ['acme', 'Bearer key'],
      ['globex', undefined],
    ] as const) {
      upstream.on('*', ({ url }) =>
        url === '/next'
          ? { body: { done: true } }
          : { status: 302, headers: { location: `http://${host}.api.example:${upstream.port}/next` } },
      );
      upstream.take();
      assert.match((await call('redirected', access_token)).text, /done/);
      const [, redirected] = upstream.take();
      assert.equal(redirected?.headers.authorization, expected, host);
    }
    upstream.on('*', () => ({ body: {} }));
  });

  it('is never this service itself, or another host that a configuration may not name', async () => {
    const tools = [createTool({ url: 'https://{{site}}.example.com/mcp/own-service' })];
    await createServer('own-service', { base_url: undefined, tools });
    const { access_token } = await world.logIn('own-service', 'anna', { fields: { site: 'Tools', API_TOKEN: 'key' } });
    const own = await call('own-service', access_token);
    assert.match(own.text, /may not call the host that the value of the person names/);
    await createServer('not-allowed');
    const login = await world.logIn('not-allowed', 'anna', { fields: { site: 'initech', API_TOKEN: 'key' } });
    const other = await call('not-allowed', login.access_token);
    assert.match(other.text, /may not call the host that the value of the person names/);
    assert.doesNotMatch(other.text, /initech/);
    assert.deepEqual([upstream.take(), names.requestedNames.filter((name) => /tools|initech/.test(name))], [[], []]);
    const { body } = await world.request(world.owner, 'GET', '/calls?slug=own-service');
    assert.deepEqual(
      (body.calls as Json[]).map(({ outcome }) => outcome),
      ['blocked'],
    );
  });

  it('is never this service itself as the provider of a login', async () => {
    const login = {
      allow: { domains: ['people.example'] },
      fields: [{ name: 'site', label: 'Site', secret: false, pattern: '.*' }],
    };
    const fixedUrls = {
      authorization_url: 'https://login.example.org/authorize',
      token_url: 'https://login.example.org/token',
    };
    /** Returns the page after a person has entered the name of this service. */
    const enterOwnName = async (slug: string, urls: Json) => {
      const oauth = { ...fixedUrls, ...urls, client_id: 'client', client_secret: 'client-secret' };
      const tools = [createTool({ url: 'https://api.example.org/items' })];
      await createServer(slug, { authentication: { type: 'Bearer' }, base_url: undefined, oauth, login, tools });
      const { browser, page } = await world.startLogin(slug, 'anna');
      const form = await browser.press(page, 'Allow and log in');
      return { browser, page: await browser.press(form, 'Save and continue', { fields: toInputs({ site: 'Tools' }) }) };
    };
    const refusal = /may not call the host that the value of the person names/;
    const atLogin = await enterOwnName('own-login', { authorization_url: 'https://{{site}}.example.com/authorize' });
    assert.match(visibleText(atLogin.page), refusal);
    const { browser, page } = await enterOwnName('own-token', { token_url: 'https://{{site}}.example.com/token' });
    const query = new URLSearchParams({ code: 'c', state: getNextUrl(page).searchParams.get('state') ?? '' });
    const returned = await browser.get(`${productionUrl}/mcp/own-token/callback?${query}`);
    assert.match(getNextUrl(returned).searchParams.get('error_description') ?? '', refusal);
    assert.deepEqual(
      names.requestedNames.filter((name) => name.includes('tools')),
      [],
    );
  });

  it('never receives a value that is not one label, whatever the pattern of the field allows', async () => {
    await createServer('no-label');
    const login = await world.startLogin('no-label', 'anna');
    let page = await login.browser.press(login.page, 'Allow');
    for (const site of ['evil.example/', 'a.b', 'xn--acme', 'acme:1', 'a@b', '-a']) {
      page = await login.browser.press(page, 'Save and continue', { fields: toInputs({ site, API_TOKEN: 'k' }) });
      assert.match(visibleText(page), /The value is part of a host name: 1 to 63 letters/, site);
    }
    page = await login.browser.press(page, 'Save and continue', { fields: toInputs({ site: 'acme', API_TOKEN: 'k' }) });
    assert.equal((await world.redeem('no-label', { ...login, page })).status, 200);
  });
});
