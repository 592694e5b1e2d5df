import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import {
  absentId,
  assertRefused,
  buildEchoConfig,
  buildStatelessMessage,
  getRpcResult,
  mirrorHeaders,
} from '../support/mcp.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token';
const allowedOrigin = 'https://app.example';
const disallowedOrigins = [
  'https://evil.example',
  'null',
  'http://localhost.evil.example',
  `${allowedOrigin}.evil.example`,
  `${allowedOrigin}:444`,
  '',
];

const oauth = {
  authorization_url: 'https://provider.example/authorize',
  token_url: 'https://provider.example/token',
  client_id: 'client',
  client_secret: 'secret',
  scopes: ['read', 'write'],
};

describe('the MCP endpoint over HTTP', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let endpoint: string;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({
      egressPorts: [upstream.port],
      env: { ALLOWED_ORIGINS: `${allowedOrigin}, https://other.example` },
    });
    endpoint = `${toolhost.url}/mcp/echo`;
    const name = '<script>alert(1)</script>';
    await toolhost.createServer(buildEchoConfig(upstream.url, { name, authentication: { type: 'Bearer' } }));
    await toolhost.createServer(
      buildEchoConfig(upstream.url, { slug: 'guarded', authentication: { type: 'Bearer' }, oauth }),
    );
  });
  beforeEach(() => void upstream.take());
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

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
      assert.equal(
        (await sendRawRequest(endpoint, { headers: { origin, authorization: `Bearer ${token}` } })).status,
        403,
      );
      assertNothingSent();
    });
  }

  it('[mcp 30] returns 413 for a body above the limit, with or without Content-Length, and sends nothing upstream', async () => {
    const large = JSON.stringify({ ...call(), padding: 'x'.repeat(1024 * 1024) });
    assertRefused(await post({}, large), 413, -32600, absentId);
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const chunked = await sendRawRequest(
      endpoint,
      { method: 'POST', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      large,
    );
    assert.equal(chunked.status, 413);
    assertNothingSent();
  });

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'application/json-rpc',
    '',
  ]) {
    it(`[mcp 30] returns 415 for Content-Type ${JSON.stringify(type)} and sends nothing upstream`, async () => {
      assertRefused(await post({ 'content-type': type }), 415, -32600, absentId);
      assertNothingSent();
    });
  }

  it('[mcp 30] accepts a body of exactly the limit and a Content-Type with parameters', async () => {
    const empty = JSON.stringify({ ...call(), padding: '' });
    const full = JSON.stringify({ ...call(), padding: 'x'.repeat(1024 * 1024 - empty.length) });
    assert.equal(full.length, 1024 * 1024);
    assert.equal((await post({ 'content-type': 'Application/JSON ; charset=utf-8' }, full)).status, 200);
  });

  it('[mcp 23] accepts no Origin, an origin of this service, and an allowed one', async () => {
    assert.equal((await post({})).headers.get('access-control-allow-origin'), null);
    for (const origin of [
      toolhost.url,
      toLocalOrigin('localhost'),
      toLocalOrigin('[::1]'),
      allowedOrigin,
      'https://other.example',
    ]) {
      const reply = await post({ origin });
      assert.equal(reply.status, 200, origin);
      assert.equal(reply.headers.get('access-control-allow-origin'), origin);
      assert.equal(reply.headers.get('vary'), 'Origin');
    }
  });

  it('[mcp 23] [spec 5.4.7] accepts a preflight of an allowed page without a credential and allows the MCP headers', async () => {
    const requestedHeaders =
      'authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,apikey';
    const headers = {
      origin: allowedOrigin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': requestedHeaders,
    };
    const reply = await sendRawRequest(endpoint, { method: 'OPTIONS', headers });
    assert.deepEqual(
      [reply.status, reply.text, reply.headers['access-control-allow-origin']],
      [204, '', allowedOrigin],
    );
    assert.match(String(reply.headers['access-control-allow-methods']), /\bPOST\b/);
    const allowed = String(reply.headers['access-control-allow-headers']).toLowerCase().split(', ');
    assert.deepEqual(allowed.join(',').split(','), requestedHeaders.split(','));
    assert.equal(reply.headers['access-control-allow-credentials'], undefined);
  });

  it('[mcp 23] lets an allowed page read the headers that clients need, also of a 401', async () => {
    const reply = await toolhost.post('guarded', call(), { headers: { origin: allowedOrigin } });
    assert.equal(reply.status, 401);
    const exposed = (reply.headers.get('access-control-expose-headers') ?? '').split(', ');
    for (const name of ['WWW-Authenticate', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'X-Request-Id', 'Retry-After']) {
      assert.ok(exposed.includes(name), name);
    }
  });

  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']) {
    it(`[mcp 21] returns 405 with Allow: POST for ${method}, and no stream`, async () => {
      const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
      const reply = await sendRawRequest(endpoint, { method, headers });
      assert.deepEqual(
        [reply.status, reply.headers.allow, reply.headers['content-type']],
        [405, 'POST', 'application/json'],
      );
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

  it('returns 404 for an unknown slug, with a JSON-RPC error that echoes the id if there is one', async () => {
    const unknown = (body: unknown) => toolhost.post('nobody', body, { token });
    for (const id of ['x', 17]) assertRefused(await unknown(call(id)), 404, -32600, id);
    for (const body of ['not json', [call()], call(null)]) assertRefused(await unknown(body), 404, -32600, absentId);
    for (const accept of ['application/json, text/event-stream', 'text/event-stream']) {
      const reply = await sendRawRequest(`${toolhost.url}/mcp/nobody`, { headers: { accept } });
      assert.deepEqual([reply.status, reply.headers['content-type']], [404, 'application/json']);
    }
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
    assert.equal(
      (await send('Bearer a b', call())).headers.get('www-authenticate'),
      `Bearer error="invalid_token", error_description="the Authorization header must be 'Bearer' and one token of visible ASCII characters without spaces"`,
    );
    assertNothingSent();
  });

  it('[mcp 57] builds URLs from the base URL, whatever Host and forwarding headers say', async () => {
    const { port } = new URL(toolhost.url);
    const headers = {
      'content-type': 'application/json',
      host: `127.0.0.1:${port}`,
      forwarded: 'host=evil.example;proto=https',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    };
    const unauthorized = await sendRawRequest(
      `${toolhost.url}/mcp/guarded`,
      { method: 'POST', headers },
      JSON.stringify(call()),
    );
    assert.equal(unauthorized.status, 401);
    const metadata = `${toolhost.url}/.well-known/oauth-protected-resource/mcp/guarded`;
    assert.equal(
      unauthorized.headers['www-authenticate'],
      `Bearer resource_metadata="${metadata}", scope="read write"`,
    );
    const page = await sendRawRequest(endpoint, { headers: { ...headers, accept: 'text/html' } });
    assert.ok(page.text.includes(endpoint));
    assert.doesNotMatch(page.text, /evil|localhost/);
  });

  for (const host of ['evil.example', '127.0.0.1', '127.0.0.1:1', 'localhost.evil.example']) {
    it(`[mcp 57] returns 421 for the unknown Host ${host}`, async () => {
      const reply = await sendRawRequest(endpoint, { headers: { host, accept: 'text/html' } });
      assert.equal(reply.status, 421);
      assert.doesNotMatch(reply.text, /evil/);
    });
  }

  it('sends a unique request id, no-store, and nosniff with every response', async () => {
    const replies: Reply[] = [await post({}), await post({}, 'not json'), await toolhost.post('nobody', call())];
    replies.push(await post({}, { jsonrpc: '2.0', method: 'notifications/initialized' }));
    const ids = new Set(replies.map((reply) => reply.headers.get('x-request-id')));
    assert.deepEqual([ids.size, ids.has(null)], [replies.length, false]);
    for (const { headers } of replies) {
      assert.deepEqual([headers.get('cache-control'), headers.get('x-content-type-options')], ['no-store', 'nosniff']);
    }
    assert.equal((getRpcResult(replies[0] as Reply) as Json).isError, undefined);
  });

  it('returns 508 for a request that already passed through a tool of this service', async () => {
    assertRefused(await post({ 'toolhost-hop': '1' }), 508, -32600, absentId);
    assertNothingSent();
  });

  it('[find B8] returns 508 for such a request to any other path, including token endpoints and metadata', async () => {
    for (const [method, path] of [
      ['POST', '/mcp/manage/token'],
      ['POST', '/mcp/manage/register'],
      ['GET', '/.well-known/oauth-authorization-server/mcp/manage'],
      ['GET', '/api/v1/servers'],
      ['GET', '/'],
    ] as const) {
      const reply = await fetch(`${toolhost.url}${path}`, { method, headers: { 'toolhost-hop': '1' } });
      assert.equal(reply.status, 508, path);
    }
  });
});
