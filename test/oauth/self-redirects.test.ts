import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, beforeEach, describe, it } from 'node:test';
import { getRedirectTarget } from '../support/browser/browser.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, expectTokens, post, registerClient } from '../support/oauth/oauth-client.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';
import { findFreePort } from '../support/upstreams/listener.ts';

describe('redirect URI of the service itself', async () => {
  let requestCount = 0;
  const MASTER_KEY = randomBytes(32).toString('base64');
  const site = await startClientDocuments();
  const world = await startLoginWorld({ env: { MASTER_KEY }, runtimeOptions: site.runtimeOptions });
  /** A service at another URL with the same master key, so the first one accepts the clients that it registered. */
  const moved = await startToolhost({ env: { MASTER_KEY } });
  const port = new URL(world.toolhost.url).port;
  const slug = await world.createServer();
  const callback = `${world.issuer(await world.createServer())}/callback`;
  beforeEach(() => {
    world.provider.onLogin();
    world.provider.takeTokenRequests();
  });
  after(async () => {
    await Promise.all([world.stop(), moved.stop()]);
    await site.close();
  });

  const register = (uri: string, issuer = world.issuer(slug)) =>
    post(`${issuer}/register`, { redirect_uris: [uri] }, { 'x-forwarded-for': `192.0.2.${++requestCount}` });
  const ownNames = ['127.0.0.1', 'localhost', '[::1]', 'LOCALHOST', '127.1', '0x7f000001', '[0:0::1]', '%6cocalhost'];

  it('is rejected at registration under every hostname of this machine [sec D5]', async () => {
    for (const name of ownNames) {
      for (const path of ['/mcp/other/callback', '/login/callback', '/', '/login-check/', '/login-check?next=x'])
        assertOAuthError(await register(`http://${name}:${port}${path}`), 400, 'invalid_redirect_uri');
    }
    const managed = await register(callback, `${world.toolhost.url}/mcp/manage`);
    assertOAuthError(managed, 400, 'invalid_redirect_uri');
    assert.match(String(managed.body.error_description), /leads to this service itself/);
  });

  /** Asserts that the authorization URL shows a page that leads nowhere. Returns its HTML. */
  async function assertNoRedirect(url: URL): Promise<string> {
    const page = await world.newBrowser().get(url);
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined], url.href);
    return page.html;
  }

  it('is rejected for a client that was registered before the service had that URL [sec D5]', async () => {
    const elsewhere = await registerClient({ issuer: `${moved.url}/mcp/manage`, redirectUri: callback });
    const client = clientWithId(elsewhere.id, { issuer: world.issuer('manage'), redirectUri: callback });
    assert.match(await assertNoRedirect(client.authorization().url), /leads to this service itself/);
  });

  it('is rejected when the port of a registered loopback URI may differ [sec D6]', async () => {
    for (const redirectUri of ['http://127.0.0.1/mcp/other/callback', 'http://127.0.0.1:9/mcp/other/callback']) {
      const client = await world.registerClient(slug, { redirectUri });
      const redirect_uri = `http://127.0.0.1:${port}/mcp/other/callback`;
      await assertNoRedirect(client.authorization({ redirect_uri }).url);
    }
  });

  it("is rejected in a client's metadata document [sec D5] [mcp 55]", async () => {
    const id = site.publish('/own.json', { redirect_uris: ['https://agent.example/cb', callback] });
    const client = clientWithId(id, { issuer: world.issuer(slug), redirectUri: 'https://agent.example/cb' });
    await assertNoRedirect(client.authorization().url);
  });

  it("may be the dashboard's login check, or a program at another port of this machine [mcp 54]", async () => {
    const checks = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `http://${name}:${port}/login-check`);
    for (const redirectUri of [...checks, 'http://localhost:6274/oauth/callback', 'http://localhost/callback']) {
      const client = await world.registerClient(slug, { redirectUri });
      assert.equal((await world.newBrowser().get(client.authorization().url)).status, 200, redirectUri);
    }
  });

  it('cannot carry the code of one server to the token endpoint of another [sec D11]', async () => {
    const evil = await world.createServer();
    const browser = world.newBrowser();
    const answer = { code: 'of-another-server', iss: world.issuer(slug) };
    world.provider.onLogin(() => answer);
    const client = await world.registerClient(evil);
    const authorization = client.authorization();
    const page = await world.returnFromProvider(authorization, browser);
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined]);
    assert.match(page.html, /response belongs to another login/);
    assert.deepEqual(world.provider.takeTokenRequests(), []);
    world.provider.onLogin(() => ({ ...answer, iss: world.provider.url }));
    await world.returnFromProvider(client.authorization(), browser);
    const requests = world.provider.takeTokenRequests();
    assert.equal(requests.length, 1, "the provider's issuer is not an issuer of this service");
    world.provider.onLogin();
    const { code, verifier } = await world.logIn(client, browser);
    expectTokens(await client.redeem(code, verifier));
  });
});

describe('redirect URI at a public service', async () => {
  const port = await findFreePort();
  const env = {
    BASE_URL: 'https://tools.example.com',
    SERVER_HOSTS: '*.servers.example.com',
    HOST: '127.0.0.1',
    PORT: String(port),
    TRUSTED_PROXIES: '1',
    MASTER_KEY: randomBytes(32).toString('base64'),
    OIDC_ISSUER: 'https://id.example.com',
    OIDC_CLIENT_ID: 'toolhost',
    OIDC_CLIENT_SECRET: 'secret',
  };
  const toolhost = await startToolhost({ env });
  after(() => toolhost.stop());

  let requestCount = 0;
  const register = (uri: string) => {
    const network = `198.51.${100 + Math.floor(++requestCount / 250)}.${requestCount % 250}`;
    const headers = { host: 'tools.example.com', 'x-forwarded-for': network };
    const body = { client_name: 'Agent', redirect_uris: [uri] };
    return freshRequest(`http://127.0.0.1:${port}/mcp/manage/register`, { body, headers });
  };

  it('is rejected if it is the service, in any spelling [sec D5]', async () => {
    const names = ['tools.example.com', 'TOOLS.eXample.com', 't%6fols.example%2ecom', 'any.servers.example.com'];
    const hosts = [...names, 'ANY.servers.example.com', '%61ny.servers.%45xample.com'];
    const paths = ['', '/', '/mcp/evil/callback', '/login/callback', '/mcp', '/login-check/', '/x?y=z'];
    for (const [index, end] of ['', '.', ':443', '.:443', ':0443', ':'].entries())
      for (const [offset, host] of hosts.entries()) {
        const uri = `https://${host}${end}${paths[(index + offset) % paths.length]}`;
        const { status, body } = await register(uri);
        assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'], uri);
        assert.match(String(body.error_description), /leads to this service itself/);
      }
    const spellings = ['https:tools.example.com/cb', 'https:/tools.example.com/cb'];
    for (const uri of [...spellings, 'https://TOOLS.example.com/login-check'])
      assert.equal((await register(uri)).status, 400, uri);
  });

  it("may be any other host, or the dashboard's login check [mcp 54]", async () => {
    const others = [
      ...['tools.example.com/login-check', 'tools.example.com:8443/callback', 'mytools.example.com/callback'],
      ...['tools.example.com.agent.example/callback', 'example.com/callback', 'servers.example.com/callback'],
      ...['a.b.servers.example.com/callback', 'claude.ai/api/mcp/auth_callback'],
    ].map((rest) => `https://${rest}`);
    for (const uri of [...others, `http://127.0.0.1:${port}/callback`])
      assert.equal((await register(uri)).status, 201, uri);
  });
});
