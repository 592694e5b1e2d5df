import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { post } from '../support/oauth/oauth-client.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

describe('OAuth discovery', async () => {
  const world = await startLoginWorld();
  const slug = await world.createServer();
  const issuer = world.issuer(slug);
  after(() => world.stop());

  const resourceMetadata = () => `${world.toolhost.url}/.well-known/oauth-protected-resource/mcp/${slug}`;
  const serverMetadata = () => `${world.toolhost.url}/.well-known/oauth-authorization-server/mcp/${slug}`;
  const json = async (url: string) => {
    const response = await fetch(url);
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    return (await response.json()) as Record<string, unknown>;
  };

  it('[mcp 36] [spec 7] returns 401 with discovery hints and without an error when no token is sent', async () => {
    for (const method of ['initialize', 'tools/list', 'tools/call', 'ping', 'server/discover']) {
      const { status, headers } = await world.toolhost.rpc(slug, undefined, method);
      assert.equal(status, 401);
      const hints = `Bearer resource_metadata="${resourceMetadata()}", scope="read write"`;
      assert.equal(headers.get('www-authenticate'), hints, method);
    }
    assert.equal((await fetch(issuer)).status, 401);
    assert.deepEqual(world.upstream.take(), []);
  });

  it('[spec 7] returns a plain 401 when the server has no login', async () => {
    await world.createServer({ slug: 'no-login', oauth: undefined });
    const { status, headers } = await world.toolhost.rpc('no-login', undefined, 'tools/list');
    assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer']);
    for (const path of ['oauth-protected-resource', 'oauth-authorization-server'])
      assert.equal((await fetch(`${world.toolhost.url}/.well-known/${path}/mcp/no-login`)).status, 404);
    assert.equal((await fetch(`${world.toolhost.url}/mcp/no-login/authorize`)).status, 404);
  });

  it('[mcp 37] [mcp 39] [sec A3] returns 401 for anything but a token of this server in a header', async () => {
    const other = await world.createServer();
    const { access_token: foreign } = await world.getTokens(await world.registerClient(other));
    const { access_token: own } = await world.getTokens(await world.registerClient(slug));
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await post(`${issuer}?access_token=${own}&token=${own}`, list)).status, 401);
    const wrong = ['junk', 'provider-access-1', `tha_${'a'.repeat(43)}`, foreign, own.slice(0, -1), `${own}=`];
    for (const token of wrong) {
      for (const method of ['initialize', 'tools/list', 'tools/call']) {
        const { status, headers } = await world.toolhost.rpc(slug, token, method, { name: 'run', arguments: {} });
        assert.equal(status, 401, token);
        assert.match(headers.get('www-authenticate') ?? '', /resource_metadata=".+", error="invalid_token"/);
      }
      assert.equal((await world.toolhost.statelessRpc(slug, token, 'server/discover')).status, 401);
    }
    assert.deepEqual(world.upstream.take(), []);
  });

  it('[mcp 40] treats a URL with a trailing slash as the same URL, at every path of a server and its views', async () => {
    const viewed = await world.createServer({ views: { one: { tools: ['run'] } } });
    const { access_token: token } = await world.getTokens(await world.registerClient(viewed));
    for (const address of [viewed, `${viewed}/one`, 'manage']) {
      const bearer = address === 'manage' ? await world.toolhost.createKey() : token;
      const [plain, slashed] = await Promise.all(
        [address, `${address}/`].map((path) => world.toolhost.rpc(path, bearer, 'tools/list')),
      );
      assert.deepEqual([slashed?.status, slashed?.text], [200, plain?.text], address);
    }
    const discovery = ['oauth-protected-resource', 'oauth-authorization-server'].map((name) => `/.well-known/${name}`);
    const gets = [
      ...[`/mcp/${viewed}`, `/mcp/${viewed}/one`, '/mcp/nowhere'],
      ...discovery.map((path) => `${path}/mcp/${viewed}`),
      ...[`${discovery[0]}/mcp/${viewed}/one`, `${discovery[0]}/api/v1`, `/mcp/${viewed}${discovery[1]}`],
    ];
    for (const path of gets) {
      for (const accept of ['text/html', 'application/json']) {
        const request = async (requestPath: string) => {
          const reply = await fetch(world.toolhost.url + requestPath, { headers: { accept } });
          return { status: reply.status, type: reply.headers.get('content-type'), text: await reply.text() };
        };
        assert.deepEqual(await request(`${path}/`), await request(path), path);
        assert.deepEqual(await request(`${path}/?a=1`), await request(`${path}?a=1`), path);
      }
    }
    const metadata = { redirect_uris: ['https://agent.example/cb'] };
    assert.equal((await post(`${world.issuer(viewed)}/register/`, metadata)).status, 201);
    assert.equal((await fetch(`${world.toolhost.url}/mcp/${viewed}//`)).status, 400);
    assert.equal((await fetch(`${world.toolhost.url}/livez/`)).status, 404);
  });

  it('[mcp 40] describes the resource with exactly the URL that people configure, and omits offline_access', async () => {
    const offline = await world.createServer({}, { scopes: ['offline_access'] });
    assert.deepEqual(await json(resourceMetadata()), {
      resource: issuer,
      authorization_servers: [issuer],
      scopes_supported: ['read', 'write'],
      bearer_methods_supported: ['header'],
      resource_name: 'Things 1',
    });
    const other = await json(resourceMetadata().replace(slug, offline));
    assert.equal('scopes_supported' in other, false, 'RFC 9728, 3.2: no empty lists');
  });

  it('[mcp 41] [mcp 42] [sec D14] describes the authorization server, whose issuer is the URL that led to it', async () => {
    const expected = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      revocation_endpoint: `${issuer}/revoke`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      revocation_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      scopes_supported: ['read', 'write'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    };
    assert.deepEqual(await json(serverMetadata()), expected);
    assert.deepEqual(await json(`${issuer}/.well-known/oauth-authorization-server`), expected);
  });

  it('[mcp 41] returns 404 at the root, for unknown slugs, and for OpenID configuration', async () => {
    const paths = [
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-authorization-server',
      '/.well-known/oauth-protected-resource/mcp',
      `/.well-known/openid-configuration/mcp/${slug}`,
      `/mcp/${slug}/.well-known/openid-configuration`,
      '/.well-known/oauth-protected-resource/mcp/unknown',
      '/.well-known/oauth-authorization-server/mcp/unknown',
    ];
    for (const path of paths) {
      const response = await fetch(world.toolhost.url + path);
      assert.equal(response.status, 404, path);
      assert.match(response.headers.get('content-type') ?? '', /json/, path);
    }
  });

  it('lists the allowed methods of an endpoint to a client that uses another one', async () => {
    const endpoints = { authorize: 'GET', callback: 'GET', consent: 'POST', token: 'POST', register: 'POST' };
    for (const [endpoint, method] of Object.entries(endpoints)) {
      const other = method === 'GET' ? 'POST' : 'GET';
      const { status, headers } = await fetch(`${issuer}/${endpoint}`, { method: other });
      assert.deepEqual([status, headers.get('allow')], [405, method], endpoint);
    }
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
      assert.equal((await fetch(`${issuer}/nothing/here`, { method })).status, 404);
    assert.equal((await fetch(`${new URL(issuer).origin}/assets/nothing.js`, { method: 'HEAD' })).status, 404);
  });

  it('[mcp 56] allows any page to read the metadata and to use the endpoints without cookies', async () => {
    const origin = 'https://agent.example';
    for (const url of [resourceMetadata(), serverMetadata()]) {
      const response = await fetch(url, { headers: { origin } });
      assert.deepEqual([response.status, response.headers.get('access-control-allow-origin')], [200, '*']);
    }
    for (const endpoint of ['register', 'token', 'revoke']) {
      const reply = await post(`${issuer}/${endpoint}`, {}, { origin });
      assert.equal(reply.headers.get('access-control-allow-origin'), '*', endpoint);
      const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
      const headers = { origin, ...asked };
      const preflight = await fetch(`${issuer}/${endpoint}`, { method: 'OPTIONS', headers });
      assert.equal(preflight.status, 204);
      assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /content-type/i);
    }
    for (const endpoint of ['authorize', 'consent', 'callback']) {
      const method = endpoint === 'consent' ? 'POST' : 'GET';
      const { status } = await fetch(`${issuer}/${endpoint}`, { method, headers: { origin } });
      assert.equal(status, 403, endpoint);
    }
    const own = { origin: world.toolhost.url };
    const unauthorized = await world.toolhost.rpc(slug, undefined, 'tools/list', {}, own);
    assert.match(unauthorized.headers.get('access-control-expose-headers') ?? '', /WWW-Authenticate/);
  });

  it('[mcp 57] builds no URL from forwarded host headers', async () => {
    const port = new URL(world.toolhost.url).port;
    const headers = {
      host: `127.0.0.1:${port}`,
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil.example',
    };
    for (const url of [resourceMetadata(), serverMetadata()]) {
      const { status, text } = await sendRawRequest(url, { headers });
      assert.equal(status, 200);
      assert.doesNotMatch(text, /evil|https:/);
    }
    const post = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
    const unauthorized = await sendRawRequest(issuer, post, '{}');
    const hints = `Bearer resource_metadata="${resourceMetadata()}", scope="read write"`;
    assert.deepEqual([unauthorized.status, unauthorized.headers['www-authenticate']], [401, hints]);
    const page = await sendRawRequest(issuer, { headers: { ...headers, accept: 'text/html' } });
    assert.ok(page.text.includes(issuer));
    assert.doesNotMatch(page.text, /evil|localhost/);
    assert.equal((await sendRawRequest(serverMetadata(), { headers: { host: 'evil.example' } })).status, 421);
  });
});
