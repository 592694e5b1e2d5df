import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { getRedirectTarget, type Page, visibleText } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { clientWithId } from '../support/oauth/oauth-client.ts';
import { startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import { productionUrl } from '../support/oauth/production-world.ts';
import { readBackupLines } from '../support/store/backup-text.ts';
import { readReply } from '../support/toolhost/read-reply.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { startTraceCollector } from '../support/toolhost/trace-collector.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const secretValue = 'canary-of-anna-8841';
const siteValue = 'canarysite77';
const masterKey = randomBytes(32).toString('base64');
const metricsToken = 'token-of-the-metrics';

describe('values that people bring, under attack', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const collector = fixtures.start(() => startTraceCollector());
  const world = fixtures.start(() =>
    startPeopleWorld({
      env: {
        EGRESS_ALLOW: ['127.0.0.1', 'x.sites.example', `${siteValue}.sites.example`]
          .map((host) => `${host}:${upstream.port}`)
          .join(),
        MASTER_KEY: masterKey,
        METRICS_TOKEN: metricsToken,
        OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      },
      runtimeOptions: {
        resolve: (host, callback) =>
          host.endsWith('.sites.example')
            ? callback(null, [{ address: '127.0.0.1', family: 4 }])
            : callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []),
      },
    }),
  );

  const createTool = (name: string, more: Json = {}): Json => ({
    name,
    description: 'Reads one item from the shop.',
    method: 'GET',
    url: `${upstream.url}/items`,
    input_schema: {},
    ...more,
  });
  const ownKey = {
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
  };

  async function create(slug: string, more: Json): Promise<void> {
    const reply = await world.createServer({ name: `Server ${slug}`, slug, tools: [createTool('read_item')], ...more });
    assert.equal(reply.status, 201, reply.text);
  }

  const callTool = (slug: string, token: string, name = 'read_item', args: Json = {}): Promise<Reply> =>
    world.post(slug, token, 'tools/call', { name, arguments: args });
  const asOwner = (method: string, path: string, body?: Json) => world.request(world.owner, method, path, body);
  const lastAuthorization = () => upstream.requests.at(-1)?.headers.authorization;

  it('sends placeholders and markup in a value as they are', async () => {
    await create('literal', { ...ownKey, headers: { 'X-Stored': '{{STORED}}' } });
    assert.equal((await asOwner('PUT', '/servers/literal/secrets/STORED', { value: 'stored-secret' })).status, 200);
    for (const value of ['{{STORED}}', '{{API_TOKEN}}', '$&$1', '<b>&amp;']) {
      const { access_token: token } = await world.logIn('literal', `p${value.length}${value.charCodeAt(2)}`, {
        fields: { API_TOKEN: value },
      });
      assert.equal((await callTool('literal', token)).status, 200);
      assert.equal(lastAuthorization(), `Bearer ${value}`);
    }
  });

  it('refuses control characters, line separators, and keys of this service in a form', async () => {
    const login = await world.startLogin('literal', 'carl');
    const form = await login.browser.press(login.page, 'Allow');
    const key = String((await asOwner('POST', '/keys', { name: 'mine', scopes: ['call'] })).body.key);
    for (const value of [
      'a\nb',
      'a\rb',
      'a\u0000b',
      'a\u0085b',
      'a\u2028b',
      'a\u2029b',
      key,
      `x ${key}`,
      `tha_${'a'.repeat(43)}`,
    ]) {
      const page = await login.browser.press(form, 'Save and continue', { fields: toInputs({ API_TOKEN: value }) });
      assert.equal(getRedirectTarget(page), undefined, JSON.stringify(value));
      assert.match(visibleText(page), /Personal token: (?:The value contains|This is an API key)/);
      assert.ok(!page.html.includes(key));
    }
  });

  it('uses the values of a member for keys that the member created, but not for keys that those keys created', async () => {
    await create('own-keys', ownKey);
    await world.logIn('own-keys', 'owner', { fields: { API_TOKEN: 'key-of-owner' } });
    const parent = String(
      (await asOwner('POST', '/keys', { name: 'parent', scopes: ['call', 'manage:read', 'manage:write'] })).body.key,
    );
    const child = await readReply(
      await world.send(`${productionUrl}/api/v1/keys`, {
        method: 'POST',
        headers: { authorization: `Bearer ${parent}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'child', scopes: ['call'] }),
      }),
    );
    assert.equal(child.status, 201, child.text);
    const count = upstream.requests.length;
    const refused = await callTool('own-keys', String(child.body.key));
    assert.match(refused.text, /log in to/);
    assert.equal(upstream.requests.length, count);
    assert.equal((await callTool('own-keys', parent)).status, 200);
    assert.equal(lastAuthorization(), 'Bearer key-of-owner');
  });

  it('gives the values of a person to no other account with the same address', async () => {
    await create('address', ownKey);
    world.provider.setClaims('alma', { email: 'shared@people.example' });
    world.provider.setClaims('evil-alma', { email: 'shared@people.example' });
    await world.logIn('address', 'alma', { fields: { API_TOKEN: 'key-of-alma' } });
    const login = await world.startLogin('address', 'evil-alma');
    assert.doesNotMatch(visibleText(login.page), /Stored/);
    const form = await login.browser.press(login.page, 'Allow');
    assert.match(visibleText(form), /Your details for/);
  });

  it('admits only listed clients, by all redirect URIs that they registered', async () => {
    const listed = 'https://claude.example/callback';
    await create('clients', { ...ownKey, login: { ...ownKey.login, clients: [listed] } });
    const start = async (redirectUris: string[], redirectUri: string) => {
      const reply = await readReply(
        await world.send(`${productionUrl}/mcp/clients/register`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ client_name: 'Claude', redirect_uris: redirectUris }),
        }),
      );
      const issuer = `${productionUrl}/mcp/clients`;
      const client = clientWithId(String(reply.body.client_id), { issuer, redirectUri });
      const page = await world.createBrowser().get(client.authorization().url);
      return getRedirectTarget(page)?.origin === world.provider.url;
    };
    assert.equal(await start([listed], listed), true);
    assert.equal(await start([listed, 'https://evil.example/callback'], listed), false);
    assert.equal(await start(['https://evil.example/callback'], 'https://evil.example/callback'), false);
    assert.equal(await start(['https://claude.example/callback/'], 'https://claude.example/callback/'), false);
    const loginCheck = `${productionUrl}/login-check`;
    assert.equal(await start([loginCheck], loginCheck), true);
  });

  it('keeps two logins of one browser apart, and refuses the form of one at the other server or for a view', async () => {
    const views = { small: { tools: ['read_item'] } };
    for (const slug of ['first-tab', 'second-tab']) await create(slug, { ...ownKey, views });
    const browser = world.createBrowser();
    const first = await world.startLogin('first-tab', 'anna', { browser });
    const second = await world.startLogin('first-tab', 'anna', { browser });
    const forms = [];
    for (const { page } of [first, second]) forms.push(await browser.press(page, 'Allow'));
    const [form, otherForm] = forms as [Page, Page];
    const moved = { ...form, html: form.html.replaceAll('/mcp/first-tab/', '/mcp/second-tab/') };
    const fields = toInputs({ API_TOKEN: 'key' });
    assert.equal((await browser.press(moved, 'Save and continue', { fields })).status, 403);
    const limited = { ...form, html: form.html.replace('</form>', '<input name="view" value="small"></form>') };
    assert.equal((await browser.press(limited, 'Save and continue', { fields })).status, 403);
    for (const [login, page, value] of [
      [first, form, 'key-of-first-tab'],
      [second, otherForm, 'key-of-second-tab'],
    ] as const) {
      const saved = await browser.press(page, 'Save and continue', { fields: toInputs({ API_TOKEN: value }) });
      const reply = await world.redeem('first-tab', { ...login, page: saved });
      assert.equal((await callTool('first-tab', String(reply.body.access_token))).status, 200);
      assert.equal(lastAuthorization(), `Bearer ${value}`);
    }
  });

  it('refuses a form from an opaque origin', async () => {
    const login = await world.startLogin('literal', 'otto');
    for (const headers of [{ origin: 'null' }, { origin: 'https://evil.example' }]) {
      const page = await login.browser.press(login.page, 'Allow', { headers });
      assert.equal(page.status, 403, JSON.stringify(headers));
    }
  });

  it('deletes the values of a member who is removed, also for after another invitation', async () => {
    await create('returning', { ...ownKey, login: { fields: ownKey.login.fields } });
    const invite = () => asOwner('POST', '/invitations', { email: 'rea@people.example', role: 'viewer' });
    assert.ok((await invite()).status < 300);
    const { access_token: token } = await world.logIn('returning', 'rea', { fields: { API_TOKEN: 'key-of-rea' } });
    const { members } = (await asOwner('GET', '/members')).body as { members: { id: string; email: string }[] };
    const member = members.find(({ email }) => email === 'rea@people.example');
    assert.equal((await asOwner('DELETE', `/members/${member?.id}`)).status, 200);
    assert.ok((await invite()).status < 300);
    const { page } = await world.startLogin('returning', 'rea');
    assert.doesNotMatch(visibleText(page), /Stored/);
    assert.equal((await callTool('returning', token)).status, 401);
  });

  it('keeps no stored value for hosts that the person has not seen, and no refused one, when another is changed', async () => {
    const slug = 'partial';
    const login = {
      fields: [
        { name: 'API_TOKEN', label: 'Personal token' },
        { name: 'space', label: 'Space', secret: false },
      ],
    };
    const toConfig = (url: string) => ({
      name: slug,
      slug,
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      login,
      tools: [createTool('read_item', { url: `${url}/{{space}}` })],
    });
    assert.equal((await world.createServer(toConfig(upstream.url))).status, 201);
    const put = (values: Json) => asOwner('PUT', `/servers/${slug}/own-values`, { values });
    const tryOut = () => asOwner('POST', `/servers/${slug}/tools/read_item/call`, { arguments: {} });
    assert.equal((await put({ API_TOKEN: 'key', space: 'main' })).status, 200);
    upstream.on('*', () => ({ status: 401, body: {} }));
    assert.equal((await tryOut()).status, 200);
    upstream.on('*', () => ({ body: {} }));
    const refused = await put({ space: 'other' });
    assert.equal(refused.status, 409, refused.text);
    assert.match(refused.text, /API_TOKEN/);
    assert.equal((await put({ API_TOKEN: 'new-key' })).status, 200);
    const moved = toConfig(`http://x.sites.example:${upstream.port}`);
    assert.equal((await asOwner('PUT', `/servers/${slug}`, moved)).status, 200);
    const outdated = await put({ space: 'other' });
    assert.equal(outdated.status, 409, outdated.text);
    assert.match(outdated.text, /x\.sites\.example/);
    assert.match((await tryOut()).text, /log in to/);
    assert.equal((await put({ API_TOKEN: 'new-key', space: 'other' })).status, 200);
    assert.equal((await tryOut()).body.is_error, false);
  });

  it('keeps values out of errors, call records, captures, the audit log, exports, metrics, traces, and backups', async () => {
    const login = {
      allow: { domains: ['people.example'] },
      fields: [
        { name: 'API_TOKEN', label: 'Personal token' },
        { name: 'site', label: 'Site', secret: false },
      ],
    };
    const tools = [
      createTool('read_item'),
      createTool('read_site', { url: `http://{{site}}.sites.example:${upstream.port}/items`, redirects: 'follow' }),
      createTool('read_closed', { url: 'https://{{site}}.people-of-nowhere.example/items' }),
    ];
    await create('canary', { ...ownKey, login, tools });
    const fields = { API_TOKEN: secretValue, site: siteValue };
    const { access_token: token } = await world.logIn('canary', 'anna', { fields });
    const captured = await asOwner('POST', '/servers/canary/capture', { hours: 1 });
    assert.equal(captured.status, 200, captured.text);
    const texts = [];
    const call = async (name: string) => texts.push((await callTool('canary', token, name)).text);
    upstream.on('*', ({ headers }) => ({ status: 400, body: { message: `bad token ${headers.authorization}` } }));
    for (const name of ['read_item', 'read_site', 'read_closed']) await call(name);
    for (const location of [
      `http://${siteValue}.sites.example:${upstream.port}/next`,
      `https://${siteValue}.evil.example/`,
    ]) {
      upstream.on('*', () => ({ status: 302, headers: { location }, body: {} }));
      await call('read_site');
    }
    const { calls } = (await asOwner('GET', '/calls?slug=canary')).body as { calls: { id: string }[] };
    assert.equal(calls.length, 5);
    const paths = [
      ...['/calls?slug=canary', '/servers/canary', '/audit', '/grants', '/own-values'],
      ...['/workspace.json', '/calls.csv', '/usage.csv', '/servers/canary/versions'],
      ...calls.map(({ id }) => `/calls/${id}`),
    ];
    for (const path of paths) texts.push(`${path}: ${(await asOwner('GET', path)).text}`);
    const spans = await eventually(() => {
      assert.ok(collector.spans.some(({ attributes }) => attributes['server.address'] === '{{site}}.sites.example'));
      return collector.spans;
    });
    texts.push(JSON.stringify(spans));
    const headers = { authorization: `Bearer ${metricsToken}` };
    const metrics = await readReply(await world.send(`${productionUrl}/metrics`, { headers }));
    assert.equal(metrics.status, 200);
    const { dataDir } = world.toolhost;
    const backup = join(dataDir, 'backup');
    const options = { env: { DATA_DIR: dataDir, MASTER_KEY: masterKey } };
    assert.equal((await runToolhostCommand(['backup', backup], options)).code, 0);
    const lines = readBackupLines(backup).join('\n');
    assert.match(lines, /"person_values"/);
    texts.push(metrics.text, lines);
    for (const file of readdirSync(dataDir, { recursive: true, withFileTypes: true }))
      if (file.isFile()) texts.push(readFileSync(join(file.parentPath, file.name), 'latin1'));
    for (const text of texts) for (const value of [secretValue, siteValue]) assert.ok(!text.includes(value), text);
  });
});
