import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { freshRequest } from '../support/fresh-request.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the host of a server (SERVER_HOSTS)', () => {
  const world = useFixture(() => startLoginWorld({ env: { SERVER_HOSTS: '*.tools.localhost' } }));
  let port: string;
  let slug: string;
  before(async () => {
    port = new URL(world.toolhost.url).port;
    slug = await world.createServer();
  });

  const toHost = (name: string) => `${name}.tools.localhost:${port}`;
  const toUrl = (name: string) => `http://${toHost(name)}/mcp`;

  /** Sends a request to this machine under any host name; `fetch` would resolve the name. */
  const sendRequest = (host: string, path: string, body?: Json, headers: Record<string, string> = {}) =>
    freshRequest(`http://127.0.0.1:${port}${path}`, { ...(body && { body }), headers: { host, ...headers } });
  const bearer = (token: unknown) => ({ authorization: `Bearer ${token}` });
  const html = { accept: 'text/html' };

  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  it('[ship 5] serves the server at /mcp with the same tokens', async () => {
    const { access_token: token } = await world.getTokens(await world.registerClient(slug));
    const response = await sendRequest(toHost(slug), '/mcp', list, bearer(token));
    assert.equal(response.status, 200, response.text);
    const { tools } = response.body.result as { tools: { name: string }[] };
    assert.equal(tools.map(({ name }) => name).join(), 'run');
    const other = await world.createServer();
    assert.equal((await sendRequest(toHost(other), '/mcp', list, bearer(token))).status, 401);
  });

  it('[ship 5] responds to a URL with a trailing slash as to the URL without one', async () => {
    const paths = ['/mcp', '/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server/mcp'];
    for (const path of paths) {
      const message = path === '/mcp' ? list : undefined;
      const plain = await sendRequest(toHost(slug), path, message);
      const slashed = await sendRequest(toHost(slug), `${path}/`, message);
      assert.equal(plain.status, message ? 401 : 200, path);
      assert.deepEqual([slashed.status, slashed.text], [plain.status, plain.text], path);
    }
  });

  it('[ship 5] refers from a 401 response to metadata with exactly this URL', async () => {
    const rejected = await sendRequest(toHost(slug), '/mcp', list);
    assert.equal(rejected.status, 401);
    const url = `http://${toHost(slug)}/.well-known/oauth-protected-resource/mcp`;
    assert.ok(String(rejected.headers['www-authenticate']).includes(`resource_metadata="${url}"`));
    for (const path of [new URL(url).pathname, '/.well-known/oauth-protected-resource']) {
      const { body } = await sendRequest(toHost(slug), path);
      assert.deepEqual([body.resource, body.authorization_servers], [toUrl(slug), [world.issuer(slug)]]);
    }
    for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-authorization-server/mcp'])
      assert.equal((await sendRequest(toHost(slug), path)).body.issuer, world.issuer(slug));
    const { host } = new URL(world.toolhost.url);
    const below = await sendRequest(host, `/.well-known/oauth-protected-resource/mcp/${slug}`);
    assert.equal(below.body.resource, world.issuer(slug));
  });

  it('[ship 5] accepts its URL as the resource of a login, and no other host', async () => {
    const client = await world.registerClient(slug);
    const targetResource = { resource: toUrl(slug) };
    const { code, verifier } = await world.logIn(client, undefined, targetResource);
    const otherResource = await client.redeem(code, verifier, { resource: toUrl('another') });
    assert.deepEqual([otherResource.status, otherResource.body.error], [400, 'invalid_target']);
    const { code: second, verifier: proof } = await world.logIn(client, undefined, targetResource);
    assert.equal((await client.redeem(second, proof, targetResource)).status, 200);
  });

  it('serves the views of the server below /mcp, each with its own metadata [agent 2]', async () => {
    const viewed = await world.createServer({ views: { desk: { tools: ['run'] } } });
    const url = `http://${toHost(viewed)}/.well-known/oauth-protected-resource/mcp/desk`;
    const rejected = await sendRequest(toHost(viewed), '/mcp/desk', list);
    assert.equal(rejected.status, 401);
    assert.ok(String(rejected.headers['www-authenticate']).includes(`resource_metadata="${url}"`));
    const { body: document } = await sendRequest(toHost(viewed), new URL(url).pathname);
    const targetResource = { resource: `${toUrl(viewed)}/desk` };
    assert.equal(document.resource, targetResource.resource);
    assert.deepEqual(document.authorization_servers, [world.issuer(viewed)]);
    const client = await world.registerClient(viewed);
    const { code, verifier } = await world.logIn(client, undefined, targetResource);
    const { access_token } = (await client.redeem(code, verifier, targetResource)).body;
    const headers = bearer(access_token);
    assert.equal((await sendRequest(toHost(viewed), '/mcp/desk', list, headers)).status, 200);
    assert.equal((await sendRequest(toHost(viewed), '/mcp', list, headers)).status, 401);
    const page = await sendRequest(toHost(viewed), '/mcp/desk', undefined, html);
    assert.ok(page.text.includes(`<pre>${toUrl(viewed)}/desk</pre>`));
    for (const path of ['/mcp/nothing', '/mcp/token', '/.well-known/oauth-protected-resource/mcp/nothing'])
      assert.equal((await sendRequest(toHost(viewed), path)).status, 404, path);
    // A server host has no start page.
    for (const path of ['/mcp/nothing', '/']) {
      const notFound = await sendRequest(toHost(viewed), path, undefined, html);
      assert.equal(notFound.status, 404);
      assert.ok(notFound.text.includes(`href="${world.toolhost.url}/"`), notFound.text);
    }
  });

  it('[ship 5] serves the management server on its host', async () => {
    const key = await world.toolhost.createKey();
    const response = await sendRequest(toHost('manage'), '/mcp', list, bearer(key));
    assert.equal(response.status, 200, response.text);
  });

  it('[ship 5] serves nothing else on a server host, and no host that is not a slug', async () => {
    for (const path of ['/', '/login', '/api/v1/servers', `/mcp/${slug}`, `/mcp/${slug}/authorize`, '/metrics'])
      assert.equal((await sendRequest(toHost(slug), path)).status, 404, path);
    const noServer = [`a.${toHost(slug)}`, toHost('-x'), toHost('Ü'), `tools.localhost:${port}`];
    for (const host of [...noServer, `${slug}.tools.localhost:1`])
      assert.equal((await sendRequest(host, '/mcp', list)).status, 421, host);
    assert.equal((await sendRequest(toHost(slug), '/livez')).status, 200);
    assert.equal((await sendRequest(toHost('absent-here'), '/mcp', list)).status, 404);
    assert.equal((await sendRequest(toHost(slug).toUpperCase(), '/mcp', list)).status, 401);
  });

  it('[ship 5] is shown next to the usual URL of the server', async () => {
    const key = await world.toolhost.createKey();
    const { body } = await world.toolhost.rest('GET', `/servers/${slug}`, { key });
    const { server } = body as { server: Json };
    assert.deepEqual([server.url, server.host_url], [world.issuer(slug), toUrl(slug)]);
    const page = await sendRequest(toHost(slug), '/mcp', undefined, html);
    assert.ok(page.text.includes(toUrl(slug)));
  });
});
