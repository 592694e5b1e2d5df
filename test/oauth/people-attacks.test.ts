import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Browser, getNextUrl, type Page, visibleText } from '../support/browser/browser.ts';
import { startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import { productionUrl } from '../support/oauth/production-world.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('login of a person while the server or the person changes', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const world = fixtures.start(() =>
    startPeopleWorld({ env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port},localhost:${upstream.port}` } }),
  );

  const createTool = (name: string, more: Json = {}): Json => ({
    name,
    description: 'Reads one item from the shop.',
    method: 'GET',
    url: `${upstream.url}/items`,
    input_schema: {},
    ...more,
  });
  const createConfig = (slug: string, more: Json = {}): Json => ({
    name: `Server ${slug}`,
    slug,
    tools: [createTool('read_item')],
    ...more,
  });
  const storedKey = { authentication: { type: 'Bearer', token: 'stored-upstream-key' } };
  const ownKey = {
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
  };

  async function create(slug: string, more: Json): Promise<void> {
    const reply = await world.createServer(createConfig(slug, more));
    assert.equal(reply.status, 201, reply.text);
  }

  async function replace(slug: string, config: Json): Promise<void> {
    const reply = await world.request(world.owner, 'PUT', `/servers/${slug}`, config);
    assert.equal(reply.status, 200, reply.text);
  }

  const callTool = (slug: string, token: string, name = 'read_item'): Promise<Reply> =>
    world.post(slug, token, 'tools/call', { name, arguments: {} });

  const createOAuth = (): Json => ({
    authentication: { type: 'Bearer' },
    oauth: {
      authorization_url: `${upstream.url}/authorize`,
      token_url: `${upstream.url}/token`,
      client_id: 'client',
      client_secret: 'client-secret',
    },
  });

  /** Returns from the provider of a server, as it would after the person logged in there. */
  async function returnFromProvider(slug: string, browser: Browser, departure: Page): Promise<Page> {
    upstream.on('POST /token', () => ({ body: { access_token: 'provider-token', token_type: 'Bearer' } }));
    const state = getNextUrl(departure).searchParams.get('state') ?? '';
    const query = new URLSearchParams({ code: 'provider-code', state });
    return browser.get(`${productionUrl}/mcp/${slug}/callback?${query}`);
  }

  const moveToOtherHost = (slug: string, more: Json): Promise<void> =>
    replace(
      slug,
      createConfig(slug, {
        ...more,
        tools: [createTool('read_item', { url: `http://localhost:${upstream.port}/items` })],
      }),
    );

  async function inviteMember(email: string): Promise<void> {
    const reply = await world.request(world.owner, 'POST', '/invitations', { email, role: 'viewer' });
    assert.ok(reply.status < 300, reply.text);
  }

  async function removeMember(email: string): Promise<void> {
    const { members } = (await world.request(world.owner, 'GET', '/members')).body as {
      members: { id: string; email: string }[];
    };
    const member = members.find((entry) => entry.email === email);
    assert.equal((await world.request(world.owner, 'DELETE', `/members/${member?.id}`)).status, 200);
  }

  it('refuses the form of a member who was removed after it was shown', async () => {
    await create('removed', { ...ownKey, login: { fields: ownKey.login.fields } });
    await inviteMember('ines@people.example');
    const login = await world.startLogin('removed', 'ines');
    const form = await login.browser.press(login.page, 'Allow');
    await removeMember('ines@people.example');
    const page = await login.browser.press(form, 'Save and continue', { fields: toInputs({ API_TOKEN: 'key' }) });
    assert.equal(getNextUrl(page).searchParams.get('error'), 'access_denied', page.html);
  });

  it('refuses a member who was removed while at the provider of the server', async () => {
    await create('removed-at-provider', { ...createOAuth(), login: { allow: { members: true } } });
    await inviteMember('jana@people.example');
    const { browser, page } = await world.startLogin('removed-at-provider', 'jana');
    const departure = await browser.press(page, 'Allow and log in');
    await removeMember('jana@people.example');
    const returned = await returnFromProvider('removed-at-provider', browser, departure);
    assert.equal(getNextUrl(returned).searchParams.get('error'), 'access_denied', returned.html);
  });

  it('refuses the code of a member who was removed after it was issued', async () => {
    await create('removed-later', { ...storedKey, login: {} });
    await inviteMember('jens@people.example');
    const login = await world.startLogin('removed-later', 'jens');
    const page = await login.browser.press(login.page, 'Allow');
    await removeMember('jens@people.example');
    const reply = await world.redeem('removed-later', { ...login, page });
    assert.equal(reply.status, 400, reply.text);
  });

  it('stores no value that was entered in a form with other hosts', async () => {
    await create('moved-form', ownKey);
    const login = await world.startLogin('moved-form', 'anna');
    const form = await login.browser.press(login.page, 'Allow');
    await moveToOtherHost('moved-form', ownKey);
    const page = await login.browser.press(form, 'Save and continue', { fields: toInputs({ API_TOKEN: 'key' }) });
    assert.equal(page.status, 403, page.html);
  });

  it('uses no stored value for other hosts than the consent page showed', async () => {
    await create('moved-consent', ownKey);
    await world.logIn('moved-consent', 'anna', { fields: { API_TOKEN: 'key' } });
    const login = await world.startLogin('moved-consent', 'anna');
    assert.match(visibleText(login.page), /Stored\. Sent to 127\.0\.0\.1/);
    await moveToOtherHost('moved-consent', ownKey);
    assert.equal((await login.browser.press(login.page, 'Allow')).status, 403);
  });

  it('sends no value of a login to another host of the server than the form showed', async () => {
    const keyHeader = { headers: { 'X-Key': '{{API_TOKEN}}' } };
    const otherTool = { url: `http://localhost:${upstream.port}/other` };
    const toConfig = (...tools: Json[]): Json =>
      createConfig('spread', {
        ...createOAuth(),
        login: { fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
        tools,
      });
    const before = toConfig(createTool('read_item', keyHeader), createTool('read_other', otherTool));
    assert.equal((await world.createServer(before)).status, 201);
    const login = await world.startLogin('spread', 'anna');
    const form = await login.browser.press(login.page, 'Allow and log in');
    const fields = toInputs({ API_TOKEN: 'key' });
    const departure = await login.browser.press(form, 'Save and continue', { fields });
    const page = await returnFromProvider('spread', login.browser, departure);
    const token = String((await world.redeem('spread', { ...login, page })).body.access_token);
    assert.equal((await callTool('spread', token, 'read_other')).status, 200);
    await replace(
      'spread',
      toConfig(createTool('read_item', keyHeader), createTool('read_other', { ...otherTool, ...keyHeader })),
    );
    assert.equal((await callTool('spread', token, 'read_other')).status, 401);
  });

  it('compares domains by ASCII letters only', async () => {
    await create('folded', { ...storedKey, login: { allow: { domains: ['bank.example'] } } });
    world.provider.setClaims('kelvin', { email: 'eve@ban\u212a.example', email_verified: true });
    assert.equal((await world.startLogin('folded', 'kelvin')).page.status, 403);
    world.provider.setClaims('kelvin', { email: 'eve@BANK.example', email_verified: true });
    assert.equal((await world.startLogin('folded', 'kelvin')).page.status, 200);
  });

  it('gives no one the view of everyone else because their groups are not known yet', async () => {
    const views = { small: { tools: ['read_item'] }, all: { tools: ['read_item', 'write_item'] } };
    const config = createConfig('regrouped', {
      ...storedKey,
      tools: [createTool('read_item'), createTool('write_item')],
      views,
      login: { allow: { domains: ['people.example'] }, views: [{ view: 'all' }] },
    });
    assert.equal((await world.createServer(config)).status, 201);
    world.provider.setClaims('gast', { groups: ['guests'] });
    const { access_token: token } = await world.logIn('regrouped', 'gast');
    const rules = [{ group: 'guests', view: 'small' }, { view: 'all' }];
    await replace('regrouped', { ...config, login: { allow: { domains: ['people.example'] }, views: rules } });
    assert.equal((await callTool('regrouped', token, 'write_item')).status, 401);
    const { access_token: newToken } = await world.logIn('regrouped', 'gast');
    assert.match((await callTool('regrouped', newToken, 'write_item')).text, /there is no tool|unknown tool/i);
  });

  it('leads the client of a login without the group of a new view rule to the next login', async () => {
    const views = { small: { tools: ['read_item'] } };
    const config = createConfig('narrowed', {
      ...storedKey,
      views,
      login: { allow: { domains: ['people.example'] } },
    });
    assert.equal((await world.createServer(config)).status, 201);
    world.provider.setClaims('greta', { groups: ['guests'] });
    const { access_token: token, refresh_token, clientId } = await world.logIn('narrowed', 'greta');
    const rules = [{ group: 'guests', view: 'small' }];
    await replace('narrowed', { ...config, login: { allow: { domains: ['people.example'] }, views: rules } });
    const refused = await callTool('narrowed', token);
    assert.equal(refused.status, 401, refused.text);
    assert.match(refused.headers.get('www-authenticate') ?? '', /resource_metadata=".*error="invalid_token"/);
    const form = { grant_type: 'refresh_token', refresh_token, client_id: clientId };
    const renewal = await world.postForm('/mcp/narrowed/token', form);
    assert.deepEqual([renewal.status, renewal.body.error], [400, 'invalid_grant']);
    const again = await world.logIn('narrowed', 'greta');
    assert.equal((await callTool('narrowed', again.access_token)).status, 200);
  });

  it('gives a login that was limited to one view no other view', async () => {
    const views = { small: { tools: ['read_item'] }, all: { tools: ['read_item', 'write_item'] } };
    const config = createConfig('limited', {
      ...storedKey,
      tools: [createTool('read_item'), createTool('write_item')],
      views,
      login: { allow: { domains: ['people.example'] } },
    });
    assert.equal((await world.createServer(config)).status, 201);
    const resource = 'https://tools.example.com/mcp/limited/small';
    const { access_token: token } = await world.logIn('limited', 'anna', { resource });
    assert.equal((await callTool('limited/small', token)).status, 200);
    await replace('limited', {
      ...config,
      login: { allow: { domains: ['people.example'] }, views: [{ view: 'all' }] },
    });
    const reply = await callTool('limited/small', token, 'write_item');
    assert.equal(reply.status, 401, reply.text);
  });

  it('changes nothing about a value after a 401 to a tool without a credential', async () => {
    await create('anonymous', {
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      tools: [
        createTool('read_item'),
        createTool('read_public', { url: `${upstream.url}/public/{{space}}`, credential: 'none' }),
      ],
      login: {
        allow: { domains: ['people.example'] },
        fields: [
          { name: 'API_TOKEN', label: 'Token' },
          { name: 'space', label: 'Space', secret: false },
        ],
      },
    });
    const { access_token: token } = await world.logIn('anonymous', 'anna', {
      fields: { API_TOKEN: 'key', space: 'main' },
    });
    upstream.on('*', ({ url }) => ({ status: url.startsWith('/public') ? 401 : 200, body: {} }));
    assert.equal((await callTool('anonymous', token, 'read_public')).status, 200);
    assert.equal((await callTool('anonymous', token)).status, 200);
  });
});
