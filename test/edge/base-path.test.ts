import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createBrowser } from '../support/browser/browser.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { createContext, watchPage } from '../support/browser/dashboard.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { startHonestProvider } from '../support/oauth/honest-provider.ts';
import { logIn } from '../support/oauth/log-in.ts';
import { assertOAuthError, post } from '../support/oauth/oauth-client.ts';
import { loginClients } from '../support/oauth/oauth-clients.ts';
import { getResultText } from '../support/one-tool.ts';
import { runDoctor } from '../support/toolhost/doctor-command.ts';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('a service whose BASE_URL has a path', { timeout: 300_000 }, () => {
  const provider = useFixture(startHonestProvider);
  const upstream = useFixture(startRecordingUpstream);
  const toolhost = useFixture(async () => {
    const port = await findFreePort();
    origin = `http://127.0.0.1:${port}`;
    const env = { PORT: String(port), BASE_URL: `${origin}/my.tools/`, SERVER_HOSTS: '*.tools.localhost' };
    return startToolhost({ env, egressPorts: [provider.port, upstream.port] });
  });
  let origin: string;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-base-path-'));
    upstream.on('GET /things', () => ({ body: { name: 'a thing' } }));
    const headers = { 'content-type': 'application/pdf' };
    upstream.on('GET /picture', () => ({ headers, body: `%PDF-${'x'.repeat(399_995)}` }));
    const tool = (name: string) => ({ name, description: 'Reads.', method: 'GET', url: `${upstream.url}/${name}` });
    await toolhost.createServer({
      name: 'Items',
      slug: 'items',
      oauth: await provider.createOAuthConfig(`${toolhost.url}/mcp/items/callback`),
      authentication: { type: 'Bearer' },
      tools: [tool('things'), tool('picture')],
    });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const fetchJson = async (url: string) => (await (await fetch(url)).json()) as Json;

  for (const client of loginClients.filter(({ name }) => name === 'SDK v1' || name === 'SDK v2, auto')) {
    it(`[ship 9] is discovered, logged in to, and called by a client that knows only the server URL (${client.name})`, async () => {
      const agent = await client.connect({
        url: `${toolhost.url}/mcp/items`,
        home: folder,
        completeLogin: (url) => logIn(createBrowser(), url, 'anna'),
      });
      assert.equal(getResultText(await agent.callTool('things', {})), '{"name":"a thing"}');
      const file = JSON.stringify(await agent.callTool('picture', {}));
      const [link = ''] = /http:[^"\\]*\/files\/\w+/.exec(file) ?? [];
      assert.ok(link.startsWith(`${origin}/my.tools/files/`), file.slice(0, 500));
      assert.equal((await (await fetch(link)).text()).length, 400_000);
      await agent.close();
    });
  }

  it('[ship 9] serves its metadata where RFC 9728 and RFC 8414 put it, and where some clients also look', async () => {
    assert.equal(toolhost.url, `${origin}/my.tools`);
    const address = `${toolhost.url}/mcp/items`;
    const rejected = await toolhost.post('items', {});
    const metadataUrl = `${origin}/.well-known/oauth-protected-resource/my.tools/mcp/items`;
    assert.ok(String(rejected.headers.get('www-authenticate')).includes(`resource_metadata="${metadataUrl}"`));
    const metadata = await fetchJson(metadataUrl);
    assert.deepEqual([metadata.resource, metadata.authorization_servers], [address, [address]]);
    const issuers = [
      `${origin}/.well-known/oauth-authorization-server/my.tools/mcp/items`,
      `${address}/.well-known/oauth-authorization-server`,
      `${toolhost.url}/.well-known/oauth-authorization-server/mcp/items`,
    ];
    for (const url of issuers) assert.equal((await fetchJson(url)).issuer, address, url);
    const api = await fetch(`${toolhost.url}/api/v1/servers`);
    const [, named = ''] = /resource_metadata="([^"]+)"/.exec(api.headers.get('www-authenticate') ?? '') ?? [];
    assert.equal((await fetchJson(named)).resource, `${toolhost.url}/api/v1`);
    const reply = await toolhost.rest('POST', '/servers/items/connection-check', { body: {} });
    const checks = reply.body.checks as { status: string; id: string }[];
    assert.ok(checks.every(({ status, id }) => status === 'ok' || !id.endsWith('metadata')));
    assert.equal((await runDoctor(address)).checks.find(({ id }) => id === 'server_metadata')?.status, 'ok');
  });

  it('[ship 9] also serves paths without the prefix, for probes and proxies that strip it, and no other prefix', async () => {
    const paths = ['/livez', '/my.tools/livez', '/mcp/items', '/my.toolsx/livez', '/myxtools/livez', '/my.tools/x'];
    const received = await Promise.all(paths.map(async (path) => (await fetch(origin + path)).status));
    assert.deepEqual(received, [200, 200, 401, 404, 404, 404]);
    const own = { headers: { host: `items.tools.localhost:${new URL(origin).port}` } };
    const serverMetadata = await freshRequest(`${origin}/.well-known/oauth-protected-resource/mcp`, own);
    assert.equal(serverMetadata.status, 200);
  });

  it('[ship 9] leaves the other paths of its host to other services', async () => {
    const register = (uri: string) => post(`${toolhost.url}/mcp/items/register`, { redirect_uris: [uri] });
    assert.equal((await register(`${origin}/chat/oauth/callback`)).status, 201);
    assert.equal((await register(`${toolhost.url}/login-check`)).status, 201);
    for (const path of ['/my.tools/mcp/x/callback', '/MY.tools', '//my.tools/x', '/chat/%2e%2e%2fmy.tools/x'])
      assertOAuthError(await register(origin + path), 400, 'invalid_redirect_uri');
    const tool = (url: string) => ({ name: 'a', description: 'b', method: 'GET', url });
    const create = (slug: string, url: string) =>
      toolhost.rest('POST', '/servers', { body: { name: 'x', slug, tools: [tool(url)] } });
    assert.match((await create('self', `${toolhost.url}/mcp/:x`)).text, /cannot call this service itself/);
    assert.doesNotMatch((await create('other', `${origin}/chat/api`)).text, /this service itself/);
  });

  it('[ship 9] shows the dashboard in a browser, from sign-in to sign-out', async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    const context = await createContext(browser, toolhost);
    const page = await context.newPage();
    const browserLog = await watchPage(page, origin);
    await page.goto(`${toolhost.url}/servers/items/connect`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(`claude mcp add --transport http items ${toolhost.url}/mcp/items`).waitFor();
    assert.equal(page.url(), `${toolhost.url}/servers/items/connect`);
    const [cookie] = (await context.cookies()).filter(({ name }) => name === 'toolhost-session');
    assert.equal(cookie?.path, '/my.tools');
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.waitForURL(`${toolhost.url}/keys`);
    await page.reload();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    await page.getByRole('button', { name: /owner/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    assert.equal(page.url(), `${toolhost.url}/`);
    assert.deepEqual([browserLog.errors, browserLog.foreignRequests], [[], []]);
  });

  it('[ship 9] can be stored as a profile of the command-line client', async () => {
    const env = { XDG_CONFIG_HOME: folder };
    const end = await logInWithCommand([`${toolhost.url}/`], { env });
    assert.deepEqual([end.code, end.stdout.split(';')[0]], [0, `Logged in to ${toolhost.url}`], end.stderr);
    const listed = await command(['servers', 'list', '--json'], { env });
    assert.match(listed.stdout, /"items"/, listed.stderr);
    const keyOptions = ['--url', toolhost.url, '--key', await toolhost.createKey()];
    const listedWithKey = await command(['servers', 'list', ...keyOptions], {});
    assert.match(listedWithKey.stdout, /items/, listedWithKey.stderr);
  });

  it('[ship 9] limits its cookies to its path and submits its forms there', async (t) => {
    const port = await findFreePort();
    const BASE_URL = 'https://example.com/tools';
    const env = buildProductionEnv({ PORT: String(port), BASE_URL, OIDC_ISSUER: provider.url });
    const https = await startToolhost({ env });
    t.after(https.stop);
    const fetchAt = (path: string, options: object = {}) =>
      freshRequest(`http://127.0.0.1:${port}${path}`, { ...options, headers: { host: 'example.com' } });
    const redirectUri = 'http://127.0.0.1:9/cb';
    const body = { redirect_uris: [redirectUri] };
    const registered = await fetchAt('/tools/mcp/manage/register', { method: 'POST', body });
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: registered.body.client_id as string,
      redirect_uri: redirectUri,
      code_challenge: 'c'.repeat(43),
      code_challenge_method: 'S256',
    });
    const consent = await fetchAt(`/tools/mcp/manage/authorize?${query}`);
    const form = /^__Secure-toolhost-consent-\w+=\w+; Path=\/tools; HttpOnly; SameSite=Lax; Secure; Max-Age=\d+$/;
    assert.match(String(consent.headers['set-cookie']), form);
    assert.match(consent.text, /action="\/tools\/mcp\/manage\/consent"/);
    const loginRedirect = await fetchAt('/tools/login');
    const signInCookie = String(loginRedirect.headers['set-cookie']);
    assert.match(signInCookie, /^__Secure-toolhost-sign-in-\w+=.*; Path=\/tools; .*Secure/);
  });
});
