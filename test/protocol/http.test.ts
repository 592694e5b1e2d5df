import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { absentId, assertRefused, buildEchoConfig, buildStatelessMessage, mirrorHeaders } from '../support/mcp.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const token = 'caller-token';
const allowedOrigin = 'https://app.example';
const disallowedOrigins = [
  ...['https://evil.example', 'null', 'http://localhost.evil.example', ''],
  ...[`${allowedOrigin}.evil.example`, `${allowedOrigin}:444`],
];

const oauth = {
  authorization_url: 'https://provider.example/authorize',
  token_url: 'https://provider.example/token',
  client_id: 'client',
  client_secret: 'secret',
  scopes: ['read', 'write'],
};

describe('the MCP endpoint over HTTP', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({
    env: { ALLOWED_ORIGINS: `${allowedOrigin}, https://other.example` },
  });
  const endpoint = `${toolhost.url}/mcp/echo`;
  const name = '<script>alert(1)</script>';
  await toolhost.createServer(buildEchoConfig(upstream.url, { name, authentication: { type: 'Bearer' } }));
  await toolhost.createServer(
    buildEchoConfig(upstream.url, { slug: 'guarded', authentication: { type: 'Bearer' }, oauth }),
  );
  beforeEach(() => void upstream.take());
  after(stop);

  const call = (id: unknown = 1) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } });
  const post = (headers: Record<string, string>, body: unknown = call()) =>
    toolhost.post('echo', body, { token, headers });
  const assertNothingSent = () => assert.equal(upstream.requests.length, 0);
  const toLocalOrigin = (name: string) => `http://${name}:${new URL(toolhost.url).port}`;

  for (const origin of disallowedOrigins) {
    it(`[mcp 23] [sec F2] returns 403 for the Origin ${JSON.stringify(origin)}, and no page may read the response`, async () => {
      const reply = await post({ origin });
      assertRefused(reply, 403, -32600, absentId);
      assert.equal(reply.headers.get('access-control-allow-origin'), null);
      const preflight = { origin, 'access-control-request-method': 'POST' };
      assert.equal((await sendRawRequest(endpoint, { method: 'OPTIONS', headers: preflight })).status, 403);
      const headers = { origin, authorization: `Bearer ${token}` };
      assert.equal((await sendRawRequest(endpoint, { headers })).status, 403);
      assertNothingSent();
    });
  }

  it('[mcp 30] accepts a body of exactly the limit, and returns 413 for a longer one, with or without Content-Length, and sends nothing upstream', async () => {
    const large = JSON.stringify({ ...call(), padding: 'x'.repeat(1024 * 1024) });
    assertRefused(await post({}, large), 413, -32600, absentId);
    const type = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const headers = { ...type, authorization: `Bearer ${token}` };
    assert.equal((await sendRawRequest(endpoint, { method: 'POST', headers }, large)).status, 413);
    assertNothingSent();
    const empty = JSON.stringify({ ...call(), padding: '' });
    const full = JSON.stringify({ ...call(), padding: 'x'.repeat(1024 * 1024 - empty.length) });
    assert.equal((await post({ 'content-type': 'Application/JSON ; charset=utf-8' }, full)).status, 200);
  });

  const formType = 'application/x-www-form-urlencoded';
  for (const type of ['text/plain', formType, 'application/jsonp', 'application/json-rpc', '']) {
    it(`[mcp 30] returns 415 for Content-Type ${JSON.stringify(type)} and sends nothing upstream`, async () => {
      assertRefused(await post({ 'content-type': type }), 415, -32600, absentId);
      assertNothingSent();
    });
  }

  it('[mcp 23] accepts no Origin, an origin of this service, and an allowed one', async () => {
    assert.equal((await post({})).headers.get('access-control-allow-origin'), null);
    const localOrigins = [toolhost.url, toLocalOrigin('localhost'), toLocalOrigin('[::1]')];
    for (const origin of [...localOrigins, allowedOrigin, 'https://other.example']) {
      const { status, headers } = await post({ origin });
      const shown = [status, headers.get('access-control-allow-origin'), headers.get('vary')];
      assert.deepEqual(shown, [200, origin, 'Origin']);
    }
  });

  it('[mcp 23] [spec 5.4.7] accepts a preflight of an allowed page without a credential and allows the MCP headers', async () => {
    const asked = 'authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,apikey';
    const request = { 'access-control-request-method': 'POST', 'access-control-request-headers': asked };
    const options = { method: 'OPTIONS', headers: { origin: allowedOrigin, ...request } };
    const { status, text, headers } = await sendRawRequest(endpoint, options);
    assert.deepEqual([status, text, headers['access-control-allow-origin']], [204, '', allowedOrigin]);
    assert.match(String(headers['access-control-allow-methods']), /\bPOST\b/);
    assert.equal(String(headers['access-control-allow-headers']).toLowerCase().replaceAll(', ', ','), asked);
    assert.equal(headers['access-control-allow-credentials'], undefined);
  });

  it('[mcp 23] lets an allowed page read the headers that clients need, also of a 401', async () => {
    const reply = await toolhost.post('guarded', call(), { headers: { origin: allowedOrigin } });
    assert.equal(reply.status, 401);
    const exposed = (reply.headers.get('access-control-expose-headers') ?? '').split(', ');
    for (const name of ['WWW-Authenticate', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'X-Request-Id', 'Retry-After'])
      assert.ok(exposed.includes(name), name);
  });

  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']) {
    it(`[mcp 21] returns 405 with Allow: POST for ${method}, and no stream`, async () => {
      const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
      const reply = await sendRawRequest(endpoint, { method, headers });
      const shown = [reply.status, reply.headers.allow, reply.headers['content-type']];
      assert.deepEqual(shown, [405, 'POST', 'application/json']);
      assert.equal((await sendRawRequest(endpoint, { method })).status, 401);
    });
  }

  it('[mcp 22] ignores session ids and last event ids and never echoes them', async () => {
    for (const headers of [{ 'mcp-session-id': 'abc', 'last-event-id': '7' }, { 'mcp-session-id': '' }]) {
      const replies = [
        await post(headers),
        await post({ ...headers, ...mirrorHeaders('tools/list') }, buildStatelessMessage('tools/list')),
        await toolhost.rpc('echo', token, 'initialize', { protocolVersion: '2025-06-18' }, headers),
      ];
      for (const reply of replies) {
        assert.equal(reply.status, 200);
        assert.deepEqual([reply.headers.get('mcp-session-id'), reply.headers.get('last-event-id')], [null, null]);
      }
    }
  });

  it('[mcp 21] shows a browser a page that describes the server and escapes its name', async () => {
    const reply = await sendRawRequest(endpoint, { headers: { accept: 'text/html,application/xhtml+xml' } });
    assert.deepEqual([reply.status, reply.headers['content-type']], [200, 'text/html; charset=utf-8']);
    assert.match(reply.text, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
    assert.doesNotMatch(reply.text, /<script/);
    assert.ok(reply.text.includes(endpoint));
    assert.match(String(reply.headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(reply.headers['x-content-type-options'], 'nosniff');
    const other = { accept: 'text/html', authorization: `Bearer ${token}` };
    assert.equal((await sendRawRequest(endpoint, { method: 'DELETE', headers: other })).status, 405);
  });

  it('returns 401 for a missing or malformed credential, with a JSON-RPC error that echoes the id if there is one', async () => {
    const malformedHeaders = ['', 'Basic YTpi', 'Bearer', 'Bearer a b', 'Bearer a, Bearer b'];
    const send = (authorization: string | undefined, body: unknown) =>
      toolhost.post('echo', body, authorization === undefined ? {} : { headers: { authorization } });
    for (const authorization of [undefined, ...malformedHeaders]) {
      assertRefused(await send(authorization, call('who')), 401, 401, 'who');
      assertRefused(await send(authorization, 'not json'), 401, 401, absentId);
    }
    assert.equal((await send(undefined, call())).headers.get('www-authenticate'), 'Bearer');
    const description = `the Authorization header must be 'Bearer' and one token of visible ASCII characters without spaces`;
    const { headers } = await send('Bearer a b', call());
    const challenge = `Bearer error="invalid_token", error_description="${description}"`;
    assert.equal(headers.get('www-authenticate'), challenge);
    assertNothingSent();
  });

  it('sends a unique request id, no-store, and nosniff with every response', async () => {
    const notified = await post({}, { jsonrpc: '2.0', method: 'notifications/initialized' });
    const replies = [await post({}), await post({}, 'not json'), await toolhost.post('absent', call()), notified];
    assert.equal(replies[0]?.status, 200);
    const ids = new Set(replies.map((reply) => reply.headers.get('x-request-id')));
    assert.deepEqual([ids.size, ids.has(null)], [replies.length, false]);
    for (const { headers } of replies)
      assert.deepEqual([headers.get('cache-control'), headers.get('x-content-type-options')], ['no-store', 'nosniff']);
  });

  it('[find B8] returns 508 for a request that already passed through a tool of this service, at every path', async () => {
    assertRefused(await post({ 'toolhost-hop': '1' }), 508, -32600, absentId);
    assertNothingSent();
    const metadata = 'GET /.well-known/oauth-authorization-server/mcp/manage';
    const posts = ['POST /mcp/manage/token', 'POST /mcp/manage/register'];
    for (const request of [...posts, metadata, 'GET /api/v1/servers', 'GET /']) {
      const [method = '', path] = request.split(' ');
      const reply = await fetch(`${toolhost.url}${path}`, { method, headers: { 'toolhost-hop': '1' } });
      assert.equal(reply.status, 508, request);
    }
  });
});
