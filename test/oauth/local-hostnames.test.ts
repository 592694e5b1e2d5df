import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens, registerClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

describe('hostnames of the machine in local mode', async () => {
  const world = await startLoginWorld({ env: { ALLOWED_HOSTS: 'host.docker.internal, toolhost:9000' } });
  const slug = await world.createServer();
  const { port } = new URL(world.toolhost.url);
  after(() => world.stop());

  const ownNames = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  const hostnames = [...ownNames, `host.docker.internal:${port}`, 'toolhost:9000'];
  /** Sends a request with this Host header. */
  const sendRequest = (path: string, host: string) =>
    sendRawRequest(world.toolhost.url + path, { method: 'GET', headers: { host, accept: 'application/json' } });

  it('[mcp 57] builds metadata, issuer, endpoints, and challenge from the hostname of the request', async () => {
    for (const host of hostnames) {
      const base = `http://${host}`;
      const issuer = `${base}/mcp/${slug}`;
      const getMetadata = async (name: string) =>
        JSON.parse((await sendRequest(`/.well-known/oauth-${name}/mcp/${slug}`, host)).text) as Json;
      const resource = await getMetadata('protected-resource');
      assert.deepEqual([resource.resource, resource.authorization_servers], [issuer, [issuer]]);
      const server = await getMetadata('authorization-server');
      assert.equal(server.issuer, issuer);
      for (const name of ['authorization', 'token', 'registration', 'revocation'])
        assert.ok(String(server[`${name}_endpoint`]).startsWith(`${issuer}/`), `${name} ${host}`);
      const { status, headers } = await sendRequest(`/mcp/${slug}`, host);
      const metadata = `${base}/.well-known/oauth-protected-resource/mcp/${slug}`;
      assert.deepEqual([status, String(headers['www-authenticate']).includes(`"${metadata}"`)], [401, true], host);
    }
    for (const host of ['evil.example', '127.0.0.1', '127.0.0.1:1', 'toolhost', `toolhost:${port}`, 'localhost:9000'])
      assert.equal((await sendRequest(`/mcp/${slug}`, host)).status, 421, host);
  });

  for (const name of ['127.0.0.1', 'localhost']) {
    it(`[mcp 57] ends a login at ${name} where it began, and sends the provider the one redirect URI that it knows`, async () => {
      world.provider.takeLoginRequests();
      const issuer = `http://${name}:${port}/mcp/${slug}`;
      const client = await registerClient({ issuer });
      const browser = createBrowser();
      const { url, verifier, state } = client.authorization();
      const departure = await browser.press(await browser.get(url), 'Allow and log in');
      const redirect = getNextUrl(await browser.get(getNextUrl(departure)));
      assert.equal(redirect.origin, world.toolhost.url);
      assert.equal(world.provider.takeLoginRequests()[0]?.get('redirect_uri'), `${world.issuer(slug)}/callback`);
      let page = await browser.get(redirect);
      if (name === 'localhost') {
        assert.deepEqual([page.status, getNextUrl(page).origin], [302, `http://localhost:${port}`]);
        page = await browser.get(getNextUrl(page));
      }
      const { searchParams } = getNextUrl(page);
      assert.deepEqual([searchParams.get('iss'), searchParams.get('state')], [issuer, state]);
      const tokens = expectTokens(await client.redeem(searchParams.get('code') ?? '', verifier));
      assert.equal((await world.listTools(slug, tokens.access_token)).status, 200);
    });
  }

  it("[mcp 45] accepts the server's URL with any of the hostnames as the resource", async () => {
    const client = await world.registerClient(slug);
    for (const host of hostnames) {
      const { url } = client.authorization({ resource: `http://${host}/mcp/${slug}` });
      assert.equal((await world.newBrowser().get(url)).status, 200, host);
    }
  });

  it('[sec D12] does not redirect a state to any other host', async () => {
    for (const host of ['evil.example', `localhost:${port}@evil.example`, 'localhost', '']) {
      const url = new URL(`${world.issuer(slug)}/callback?code=x`);
      url.searchParams.set('state', `x.${Buffer.from(host).toString('base64url')}`);
      const page = await world.newBrowser().get(url);
      assert.deepEqual([page.status, page.headers.get('location')], [400, null], host);
    }
  });
});
