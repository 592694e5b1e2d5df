import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getNextUrl, getRedirectTarget, visibleText } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type PeopleWorld, startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import { productionUrl } from '../support/oauth/production-world.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('login of people at a hosted server', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const world = fixtures.start(() =>
    startPeopleWorld({ env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port},localhost:${upstream.port}` } }),
  );

  /** Returns a configuration with one tool that reads from the upstream. */
  function createConfig(slug: string, more: Json = {}): Json {
    return {
      name: `Server ${slug}`,
      slug,
      tools: [
        {
          name: 'read_item',
          description: 'Reads one item from the shop.',
          method: 'GET',
          url: `${upstream.url}/items`,
          input_schema: { id: { type: 'string', optional: true } },
        },
      ],
      ...more,
    };
  }

  async function create(slug: string, more: Json): Promise<void> {
    const reply = await world.createServer(createConfig(slug, more));
    assert.equal(reply.status, 201, reply.text);
  }

  const storedKey = { authentication: { type: 'Bearer', token: 'stored-upstream-key' } };
  const ownKey = {
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
  };

  function callTool(slug: string, token: string, more: Json = {}): Promise<Reply> {
    return world.post(slug, token, 'tools/call', { name: 'read_item', arguments: {}, ...more });
  }

  function isError(reply: Reply): boolean {
    assert.equal(reply.status, 200, reply.text);
    return (reply.body.result as { isError?: boolean }).isError === true;
  }

  const lastAuthorization = () => upstream.requests.at(-1)?.headers.authorization;

  describe('a login at a server with a stored credential', () => {
    it('returns 401 with discovery hints, and lets a person of an allowed domain call with the stored credential', async () => {
      await create('stored', { ...storedKey, login: { allow: { domains: ['people.example'] } } });
      const challenge = await world.post('stored', undefined, 'tools/list');
      assert.equal(challenge.status, 401);
      assert.match(challenge.headers.get('www-authenticate') ?? '', /resource_metadata="/);
      const { access_token: token } = await world.logIn('stored', 'anna');
      assert.equal(isError(await callTool('stored', token)), false);
      assert.equal(lastAuthorization(), 'Bearer stored-upstream-key');
    });

    it('shows who logs in, which client asks, and where it redirects to before anything is allowed', async () => {
      const { page } = await world.startLogin('stored', 'anna');
      const text = visibleText(page);
      for (const part of ['Agent', 'agent.example', 'Server stored', 'anna@people.example', 'read_item'])
        assert.ok(text.includes(part), `${part} in ${text}`);
    });

    it('refuses a person of another domain with a sentence, and tells the client', async () => {
      world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
      const { page } = await world.startLogin('stored', 'otto');
      assert.equal(page.status, 403);
      assert.match(visibleText(page), /You are signed in as otto@other\.example, who may not use this server/);
      assert.match(page.html, /https:\/\/agent\.example\/callback\?error=access_denied/);
    });

    it('refuses an address of an allowed domain that the identity provider has not verified', async () => {
      world.provider.setClaims('uma', { email: 'uma@people.example', email_verified: false });
      assert.equal((await world.startLogin('stored', 'uma')).page.status, 403);
    });

    it('still accepts API keys of the workspace', async () => {
      const key = await world.request(world.owner, 'POST', '/keys', { name: 'script', scopes: ['call'] });
      assert.equal(isError(await callTool('stored', String(key.body.key))), false);
    });

    it('records calls under the login and names the person on the list of logins', async () => {
      const { grants } = (await world.request(world.owner, 'GET', '/grants?slug=stored')).body as {
        grants: { id: string; person?: string }[];
      };
      assert.deepEqual([...new Set(grants.map(({ person }) => person))], ['anna@people.example']);
    });

    it('lets only members in by default', async () => {
      await create('members', { ...storedKey, login: {} });
      assert.equal((await world.startLogin('members', 'anna')).page.status, 403);
      const { access_token: token } = await world.logIn('members', 'owner');
      assert.equal(isError(await callTool('members', token)), false);
    });

    it('issues a token that ends with the next check, and a refresh token for it', async () => {
      const { expires_in: seconds, refresh_token: refreshToken } = await world.logIn('stored', 'anna');
      assert.ok(seconds <= 600, `${seconds}`);
      assert.match(refreshToken, /^thr_/);
    });
  });

  describe('values that each person brings', () => {
    it('asks for a value after consent, seals it, and sends each person their own', async () => {
      await create('own', ownKey);
      const tokens = new Map<string, string>();
      for (const name of ['anna', 'bert']) {
        const fields = { API_TOKEN: `key-of-${name}` };
        tokens.set(name, (await world.logIn('own', name, { fields })).access_token);
      }
      for (const name of ['anna', 'bert', 'anna']) {
        assert.equal(isError(await callTool('own', tokens.get(name) ?? '')), false);
        assert.equal(lastAuthorization(), `Bearer key-of-${name}`);
      }
    });

    it('does not ask again at the next login, and offers to change the value', async () => {
      const login = await world.startLogin('own', 'anna');
      assert.match(visibleText(login.page), /Personal token Stored/);
      const form = await login.browser.press(login.page, 'Change your details');
      const saved = await login.browser.press(form, 'Save and continue', {
        fields: toInputs({ API_TOKEN: 'changed-key' }),
      });
      const reply = await world.redeem('own', { ...login, page: saved });
      await callTool('own', String(reply.body.access_token));
      assert.equal(lastAuthorization(), 'Bearer changed-key');
    });

    it('never shows a stored value, not even in the form to change it', async () => {
      const login = await world.startLogin('own', 'anna');
      const form = await login.browser.press(login.page, 'Change your details');
      assert.ok(!login.page.html.includes('changed-key') && !form.html.includes('changed-key'));
    });

    it('names the server and the hosts on the form, has no script, and reports a missing value', async () => {
      const login = await world.startLogin('own', 'carl');
      const form = await login.browser.press(login.page, 'Allow');
      const text = visibleText(form);
      assert.ok(text.includes('Server own') && text.includes(`127.0.0.1:${upstream.port}`), text);
      assert.ok(!/<script/i.test(form.html));
      const again = await login.browser.press(form, 'Save and continue');
      assert.match(visibleText(again), /Enter a value/);
      const multiline = await login.browser.press(form, 'Save and continue', {
        fields: toInputs({ API_TOKEN: 'a\nb' }),
      });
      assert.match(visibleText(multiline), /line break/);
    });

    it('asks again after the API has refused the value, and names the field', async () => {
      const { access_token: token } = await world.logIn('own', 'dora', { fields: { API_TOKEN: 'wrong-key' } });
      upstream.on('*', ({ headers }) => ({
        status: headers.authorization === 'Bearer wrong-key' ? 401 : 200,
        body: {},
      }));
      assert.equal(isError(await callTool('own', token)), true);
      const refused = await callTool('own', token);
      assert.equal(refused.status, 401);
      assert.match(refused.headers.get('www-authenticate') ?? '', /resource_metadata="/);
      const login = await world.startLogin('own', 'dora');
      const form = await login.browser.press(login.page, 'Allow');
      assert.match(visibleText(form), /Personal token The API refused the stored value/);
      const saved = await login.browser.press(form, 'Save and continue', {
        fields: toInputs({ API_TOKEN: 'right-key' }),
      });
      const reply = await world.redeem('own', { ...login, page: saved });
      assert.equal(isError(await callTool('own', String(reply.body.access_token))), false);
      assert.equal(lastAuthorization(), 'Bearer right-key');
    });

    it('asks again after the API has refused a value that it received together with the token of a provider', async () => {
      await create('with-provider', {
        authentication: { type: 'Bearer' },
        headers: { 'X-Key': '{{API_TOKEN}}' },
        login: ownKey.login,
        oauth: {
          authorization_url: `${upstream.url}/authorize`,
          token_url: `${upstream.url}/token`,
          client_id: 'client',
          client_secret: 'client-secret',
        },
      });
      upstream.on('POST /token', () => ({ body: { access_token: 'provider-token', token_type: 'Bearer' } }));
      upstream.on('*', ({ headers }) => ({ status: headers['x-key'] === 'wrong-key' ? 401 : 200, body: {} }));
      /** Enters a key, and returns from the provider of the server. */
      const enterKey = async (key: string) => {
        const login = await world.startLogin('with-provider', 'dirk');
        const form = await login.browser.press(login.page, 'Allow and log in');
        const fields = toInputs({ API_TOKEN: key });
        const departure = await login.browser.press(form, 'Save and continue', { fields });
        const query = new URLSearchParams({ code: 'c', state: getNextUrl(departure).searchParams.get('state') ?? '' });
        const page = await login.browser.get(`${productionUrl}/mcp/with-provider/callback?${query}`);
        const { body } = await world.redeem('with-provider', { ...login, page });
        return { form: visibleText(form), token: String(body.access_token) };
      };
      const { token } = await enterKey('wrong-key');
      assert.equal(isError(await callTool('with-provider', token)), true);
      assert.equal((await callTool('with-provider', token)).status, 401);
      const renewed = await enterKey('right-key');
      assert.match(renewed.form, /Personal token The API refused the stored value/);
      assert.equal(isError(await callTool('with-provider', renewed.token)), false);
    });

    it('keeps a value out of errors, call records, captures, and previews', async () => {
      await create('echoed', ownKey);
      const value = 'key-that-the-api-repeats';
      const { access_token: token } = await world.logIn('echoed', 'owner', { fields: { API_TOKEN: value } });
      assert.equal((await world.request(world.owner, 'POST', '/servers/echoed/capture', { hours: 1 })).status, 200);
      upstream.on('*', ({ headers }) => ({ status: 500, headers: { 'x-echo': value }, body: headers }));
      const texts = [(await callTool('echoed', token)).text];
      upstream.on('*', () => ({ body: {} }));
      const get = async (path: string) => (await world.request(world.owner, 'GET', path)).text;
      const [calls, call] = await eventually(async () => {
        const text = await get('/calls?slug=echoed');
        const [newest] = (JSON.parse(text) as { calls: { id: string }[] }).calls;
        assert.ok(newest, text);
        return [text, newest];
      });
      const preview = await world.request(world.owner, 'POST', '/servers/echoed/tools/read_item/preview', {
        arguments: {},
      });
      assert.equal(preview.status, 200, preview.text);
      const details = await get(`/calls/${call.id}`);
      assert.match(details, /"capture":/);
      texts.push(calls, details, preview.text, await get('/audit?limit=50'), await get('/grants?slug=echoed'));
      for (const text of texts) assert.ok(!text.includes(value), text);
    });

    it('lets a member use their own values with an API key, and tells everyone else to log in', async () => {
      const key = await world.request(world.owner, 'POST', '/keys', { name: 'own', scopes: ['call'] });
      const before = await callTool('own', String(key.body.key));
      assert.equal(isError(before), true);
      assert.match(before.text, /log in to https:\/\/tools\.example\.com\/mcp\/own/);
      await world.logIn('own', 'owner', { fields: { API_TOKEN: 'key-of-owner' } });
      assert.equal(isError(await callTool('own', String(key.body.key))), false);
      assert.equal(lastAuthorization(), 'Bearer key-of-owner');
    });

    it('stops sending values once the editor sends them to another host', async () => {
      await create('moving', { ...ownKey, slug: 'moving' });
      const {
        access_token: token,
        refresh_token,
        clientId,
      } = await world.logIn('moving', 'anna', {
        fields: { API_TOKEN: 'key-of-anna' },
      });
      const moved = createConfig('moving', ownKey) as { tools: { url: string }[] };
      for (const tool of moved.tools) tool.url = tool.url.replace('127.0.0.1', 'localhost');
      const change = await world.request(world.owner, 'PUT', '/servers/moving', moved as Json);
      assert.equal(change.status, 200, change.text);
      const count = upstream.requests.length;
      assert.equal((await callTool('moving', token)).status, 401);
      assert.equal(upstream.requests.length, count);
      const form = { grant_type: 'refresh_token', refresh_token, client_id: clientId };
      assert.equal((await world.postForm('/mcp/moving/token', form)).body.error, 'invalid_grant');
    });
  });

  describe('forms of a login', () => {
    const startForm = async (name: string) => {
      const login = await world.startLogin('own', name);
      return { ...login, form: await login.browser.press(login.page, 'Allow') };
    };

    it('refuses a form in another browser, from another site, and a second time', async () => {
      const { browser, form } = await startForm('emil');
      const fields = toInputs({ API_TOKEN: 'key-of-emil' });
      const other = world.createBrowser();
      assert.equal((await other.press(form, 'Save and continue', { fields })).status, 403);
      for (const site of ['cross-site', 'same-site', 'none'])
        assert.equal(
          (await browser.press(form, 'Save and continue', { fields, headers: { 'sec-fetch-site': site } })).status,
          403,
          site,
        );
      assert.equal((await browser.press(form, 'Save and continue', { fields })).status, 200);
      assert.equal((await browser.press(form, 'Save and continue', { fields })).status, 403);
    });

    it('reads values only from a posted form', async () => {
      const response = await world.send(`${productionUrl}/mcp/own/consent?field.API_TOKEN=x`);
      assert.ok([404, 405].includes(response.status), `${response.status}`);
      const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
      assert.equal((await world.send(`${productionUrl}/mcp/own/consent`, json)).status, 400);
    });

    it('refuses the return from the identity provider in another browser', async () => {
      const browser = world.createBrowser();
      const login = await world.startLogin('stored', 'anna', { browser });
      assert.ok(getRedirectTarget(login.page) === undefined);
      const client = login.client.authorization();
      const departure = getNextUrl(await browser.get(client.url));
      const state = departure.searchParams.get('state') ?? '';
      const stolen = `${productionUrl}/login/callback?${new URLSearchParams({ state, code: 'x' })}`;
      assert.equal((await world.createBrowser().get(stolen)).status, 403);
    });
  });

  describe('views by group', () => {
    const views = {
      finance: { title: 'Finance', tools: ['read_item'] },
      support: { title: 'Support', tools: ['read_other'] },
    };

    it('gives each person the view of their first matching group at every URL, and refuses people without one', async () => {
      const config = createConfig('grouped', {
        ...storedKey,
        views,
        login: {
          allow: { domains: ['people.example'] },
          views: [
            { group: 'finance', view: 'finance' },
            { group: 'support', view: 'support' },
          ],
        },
      }) as Json & { tools: Json[] };
      config.tools.push({ ...config.tools[0], name: 'read_other' });
      assert.equal((await world.createServer(config)).status, 201);
      for (const [name, groups, tool] of [
        ['fred', ['finance', 'support'], 'read_item'],
        ['susi', ['support'], 'read_other'],
      ] as const) {
        world.provider.setClaims(name, { groups });
        const { access_token: token } = await world.logIn('grouped', name);
        for (const address of ['grouped', 'grouped/finance', 'grouped/support'])
          assert.deepEqual(await listTools(world, address, token), [tool], `${name} at ${address}`);
      }
      assert.equal((await world.startLogin('grouped', 'anna')).page.status, 403);
    });

    it('follows the current configuration, not the one at the time of the login', async () => {
      world.provider.setClaims('gerd', { groups: ['finance'] });
      const { access_token: token } = await world.logIn('grouped', 'gerd');
      const { body } = await world.request(world.owner, 'GET', '/servers/grouped');
      const { config } = body as { config: Json & { login: Json } };
      const changed = { ...config, login: { ...config.login, allow: { members: true } } };
      assert.equal((await world.request(world.owner, 'PUT', '/servers/grouped', changed)).status, 200);
      assert.equal((await world.post('grouped', token, 'tools/list')).status, 401);
    });
  });

  describe('end of a login', () => {
    it('ends when a member is removed, with the next call', async () => {
      await create('team', { ...ownKey, login: { fields: ownKey.login.fields } });
      const invited = await world.request(world.owner, 'POST', '/invitations', {
        email: 'ida@people.example',
        role: 'viewer',
      });
      assert.ok(invited.status < 300, invited.text);
      const { access_token: token } = await world.logIn('team', 'ida', { fields: { API_TOKEN: 'key-of-ida' } });
      assert.equal(isError(await callTool('team', token)), false);
      const { members } = (await world.request(world.owner, 'GET', '/members')).body as {
        members: { id: string; email: string }[];
      };
      const ida = members.find(({ email }) => email === 'ida@people.example');
      assert.equal((await world.request(world.owner, 'DELETE', `/members/${ida?.id}`)).status, 200);
      assert.equal((await callTool('team', token)).status, 401);
    });

    it('ends only the login of the person whose login is revoked', async () => {
      const [first, second] = [await world.logIn('stored', 'anna'), await world.logIn('stored', 'bert')];
      const { grants } = (await world.request(world.owner, 'GET', '/grants?slug=stored')).body as {
        grants: { id: string; person?: string; status: string }[];
      };
      const bert = grants.find(({ person, status }) => person === 'bert@people.example' && status === 'active');
      assert.equal((await world.request(world.owner, 'DELETE', `/grants/${bert?.id}`)).status, 200);
      assert.equal((await callTool('stored', second.access_token)).status, 401);
      assert.equal(isError(await callTool('stored', first.access_token)), false);
    });
  });

  describe('values of a person outside of a login', () => {
    const provided = async (session: string) =>
      (
        (await world.request(session, 'GET', '/own-values')).body as {
          servers: { server: string; provided: string[] }[];
        }
      ).servers;

    it('are listed by name, stored, and deleted by the person, and used by their try-outs', async () => {
      await create('mine', ownKey);
      const tryOut = () => world.request(world.owner, 'POST', '/servers/mine/tools/read_item/call', { arguments: {} });
      assert.match((await tryOut()).text, /log in to https:\/\/tools\.example\.com\/mcp\/mine/);
      const put = (values: Json) => world.request(world.owner, 'PUT', '/servers/mine/own-values', { values });
      assert.equal((await put({ OTHER: 'x' })).status, 400);
      assert.equal((await put({ API_TOKEN: 'a\nb' })).status, 400);
      assert.deepEqual((await put({ API_TOKEN: ' key-from-dashboard ' })).body.provided, ['API_TOKEN']);
      assert.ok((await provided(world.owner)).some(({ server }) => server === 'mine'));
      assert.equal((await tryOut()).body.is_error, false);
      assert.equal(lastAuthorization(), 'Bearer key-from-dashboard');
      assert.equal((await world.request(world.owner, 'DELETE', '/servers/mine/own-values')).status, 200);
      assert.match((await tryOut()).text, /log in to/);
    });

    it('are not sent to other hosts because the person stored another value since', async () => {
      const fields = [...ownKey.login.fields, { name: 'team', label: 'Team', secret: false, optional: true }];
      const config = createConfig('agreed', { ...ownKey, login: { fields } }) as Json & { tools: Json[] };
      for (const tool of config.tools) tool.headers = { 'x-team': '{{team}}' };
      assert.equal((await world.createServer(config)).status, 201);
      const put = (values: Json) => world.request(world.owner, 'PUT', '/servers/agreed/own-values', { values });
      assert.equal((await put({ API_TOKEN: 'key-for-first-host' })).status, 200);
      const tools = config.tools.map((tool) => ({ ...tool, url: `http://localhost:${upstream.port}/items` }));
      assert.equal((await world.request(world.owner, 'PUT', '/servers/agreed', { ...config, tools })).status, 200);
      assert.equal((await put({ team: 'desk' })).status, 409);
      const count = upstream.requests.length;
      const tryOut = await world.request(world.owner, 'POST', '/servers/agreed/tools/read_item/call', {
        arguments: {},
      });
      assert.match(tryOut.text, /log in to/);
      assert.equal(upstream.requests.length, count);
    });

    it('are deleted with the last login of the person at the server', async () => {
      await create('leaving', ownKey);
      await world.logIn('leaving', 'anna', { fields: { API_TOKEN: 'key-of-anna' } });
      const { grants } = (await world.request(world.owner, 'GET', '/grants?slug=leaving')).body as {
        grants: { id: string; provided: string[] }[];
      };
      assert.deepEqual(grants[0]?.provided, ['API_TOKEN']);
      assert.equal((await world.request(world.owner, 'DELETE', `/grants/${grants[0]?.id}`)).status, 200);
      const { page } = await world.startLogin('leaving', 'anna');
      assert.doesNotMatch(visibleText(page), /Stored/);
    });
  });
});

async function listTools({ post }: Pick<PeopleWorld, 'post'>, address: string, token: string): Promise<string[]> {
  const reply = await post(address, token, 'tools/list');
  assert.equal(reply.status, 200, reply.text);
  return (reply.body.result as { tools: { name: string }[] }).tools.map(({ name }) => name);
}
