import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import { after, beforeEach, describe, it } from 'node:test';
import {
  absentId,
  assertRefused,
  buildEchoConfig,
  buildStatelessMessage,
  getRpcResult,
  mirrorHeaders,
} from '../support/mcp.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';

const token = 'caller-token';
const statefulVersions = ['2025-11-25', '2025-06-18', '2025-03-26'];

describe('the stateful protocol (versions up to 2025-11-25)', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  upstream.on('GET /echo', ({ url }) => ({ body: { url } }));
  await toolhost.createServer(buildEchoConfig(upstream.url));
  beforeEach(() => void upstream.take());
  after(stop);

  const rpc = (method: string, params?: Json, headers?: Record<string, string>) =>
    toolhost.rpc('echo', token, method, params, headers);
  const post = (message: unknown, headers: Record<string, string> = {}) =>
    toolhost.post('echo', message, { token, headers });
  const request = (id: unknown, method: string, params: Json | null = {}) => ({ jsonrpc: '2.0', id, method, params });
  /** Returns the id and the result or error code of each response of a batch. */
  const getOutcomes = (reply: Reply) =>
    (reply.body as unknown as Json[]).map(({ id, error, result }) => [id, result ?? (error as Json).code]);

  for (const revision of statefulVersions) {
    it(`[mcp 18] returns ${revision} for initialize with ${revision}, without a session`, async () => {
      const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
      const reply = await rpc('initialize', params, { 'mcp-protocol-version': revision });
      assert.equal(reply.status, 200);
      assert.deepEqual(getRpcResult(reply), {
        protocolVersion: revision,
        capabilities: { tools: {} },
        serverInfo: { name: 'echo', title: 'Echo', version: '1' },
        instructions: 'Says again what it was told.',
      });
      assert.equal(reply.headers.get('mcp-session-id'), null);
    });
  }

  for (const requestedVersion of ['2026-07-28', '1999-01-01', '2099-01-01', 7, null, undefined]) {
    it(`[mcp 18] returns the newest stateful version for initialize with ${JSON.stringify(requestedVersion)}`, async () => {
      const reply = await rpc('initialize', { protocolVersion: requestedVersion });
      assert.equal(getRpcResult(reply).protocolVersion, '2025-11-25');
    });
  }

  for (const method of ['notifications/initialized', 'notifications/cancelled', 'notifications/x', 'tools/call']) {
    it(`[mcp 19] returns 202 and an empty body for the notification ${method}`, async () => {
      const reply = await post({ jsonrpc: '2.0', method, params: { name: 'echo', requestId: 1 } });
      assert.deepEqual([reply.status, reply.text, reply.headers.get('content-type')], [202, '', null]);
      assert.equal(upstream.requests.length, 0);
    });
  }

  it('[mcp 17] [mcp 19] returns 202 for a notification with a stateless version header or in a batch, and for a posted response', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    for (const reply of [
      await post(notification, { 'mcp-protocol-version': '2026-07-28' }),
      await post([notification]),
      await post({ jsonrpc: '2.0', id: 1, result: {} }),
    ])
      assert.deepEqual([reply.status, reply.text], [202, '']);
  });

  it('[mcp 20] accepts any stateful version header or none, and returns 400 for any other', async () => {
    for (const version of ['1999-01-01', '2024-11-05', `1${'x'.repeat(49)}`])
      assertRefused(await rpc('tools/list', {}, { 'mcp-protocol-version': version }), 400, -32600);
    assert.equal((await rpc('tools/list')).status, 200);
    for (const revision of statefulVersions)
      assert.deepEqual(getRpcResult(await rpc('ping', {}, { 'mcp-protocol-version': revision })), {});
  });

  it('[mcp 12] [mcp 13] returns 200 with an error for an unknown method and an unknown tool', async () => {
    for (const method of ['prompts/list', 'server/discover']) assertRefused(await rpc(method), 200, -32601);
    for (const params of [{ name: 'nope' }, {}]) assertRefused(await rpc('tools/call', params), 200, -32602);
  });

  const invalidMessages: [string, unknown, unknown][] = [
    ['a string', '"text"', absentId],
    ['a number', '42', absentId],
    ['null', 'null', absentId],
    ['no jsonrpc', { id: 1, method: 'ping' }, 1],
    ['jsonrpc 1.0', { jsonrpc: '1.0', id: 1, method: 'ping' }, 1],
    ['no method', { jsonrpc: '2.0', id: 1 }, 1],
    ['a method that is no string', { jsonrpc: '2.0', id: 1, method: ['ping'] }, 1],
    ['params in a list', { jsonrpc: '2.0', id: 1, method: 'ping', params: [1] }, 1],
    ['id null', { jsonrpc: '2.0', id: null, method: 'ping' }, absentId],
    ['a fractional id', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, absentId],
    ['an id that is an object', { jsonrpc: '2.0', id: {}, method: 'ping' }, absentId],
    ['an id that is true', { jsonrpc: '2.0', id: true, method: 'ping' }, absentId],
  ];
  for (const [description, message, id] of invalidMessages) {
    it(`[mcp 16] returns 400 -32600 for ${description}`, async () => {
      assertRefused(await post(message), 400, -32600, id);
    });
  }

  it('[mcp 16] rejects ids that are written with a fraction or an exponent', async () => {
    for (const id of ['1.0', '1e2', '10000000000000000.5', '1e400'])
      assertRefused(await post(`{"jsonrpc":"2.0","method":"ping","id":${id}}`), 400, -32600, absentId);
  });

  for (const text of ['', '{', '{"jsonrpc":"2.0",}', "{'a':1}", '{} {}', '\ufeff{}', 'ping', 'NaN']) {
    it(`[mcp 16] returns 400 -32700 for the body ${JSON.stringify(text)}`, async () => {
      assertRefused(await post(text), 400, -32700, absentId);
    });
  }

  it('[mcp 16] treats params, a cursor, and arguments that are null as absent', async () => {
    assert.deepEqual(getRpcResult(await post(request(1, 'ping', null))), {});
    for (const params of [null, { cursor: null }, { _meta: null }])
      assert.equal((getRpcResult(await post(request(1, 'tools/list', params))).tools as Json[]).length, 2);
    assertRefused(await post(request(1, 'tools/call', null)), 200, -32602);
    assert.equal((await post({ jsonrpc: '2.0', method: 'notifications/initialized', params: null })).status, 202);
    assert.equal(getRpcResult(await rpc('tools/call', { name: 'echo', arguments: null })).isError, undefined);
  });

  it('[mcp 17] responds to a batch without version header with an array', async () => {
    const reply = await post([
      request(1, 'ping'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      request('b', 'tools/call', { name: 'echo', arguments: { text: 'x' } }),
      { jsonrpc: '2.0', id: 8, result: {} },
      request(3, 'nope'),
      request(4, 'tools/call', { name: 'nope' }),
    ]);
    assert.equal(reply.status, 200);
    assert.deepEqual(getOutcomes(reply), [
      [1, {}],
      ['b', { content: [{ type: 'text', text: '{"url":"/echo?text=x"}' }] }],
      [3, -32601],
      [4, -32602],
    ]);
  });

  it('[mcp 17] returns an error for each invalid message of a batch, and the results of the others', async () => {
    const reply = await post([
      1,
      request(2, 'ping'),
      [request(3, 'ping')],
      { ...request('four', 'ping'), jsonrpc: '1.0' },
      request(null, 'ping'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      {},
      request(7, 'tools/list', { cursor: 'x' }),
    ]);
    assert.equal(reply.status, 200);
    const invalid = [null, -32600];
    const expected = [invalid, [2, {}], invalid, ['four', -32600], invalid, invalid, [7, -32602]];
    assert.deepEqual(getOutcomes(reply), expected);
    assert.deepEqual(getOutcomes(await post(Array(100).fill(0))), Array(100).fill(invalid));
  });

  it('[mcp 17] returns 400 for a batch that is empty, too long, or contains a message that must be sent alone', async () => {
    const createPings = (count: number) => Array.from({ length: count }, (_, id) => request(id, 'ping'));
    const invalidBatches = [
      [],
      createPings(101),
      [request(1, 'initialize')],
      [request(2, 'ping'), { method: 'initialize' }],
      [buildStatelessMessage('ping')],
      Array(5000).fill(0),
    ];
    for (const messages of invalidBatches) assertRefused(await post(messages), 400, -32600, absentId);
    assert.equal(getOutcomes(await post(createPings(100))).length, 100);
  });

  it('[mcp 17] returns 400 for a batch in a version without batches', async () => {
    for (const version of ['2025-06-18', '2025-11-25', '2026-07-28', '1999-01-01'])
      assertRefused(await post([request(1, 'ping')], { 'mcp-protocol-version': version }), 400, -32600, absentId);
    assert.equal((await post([request(1, 'ping')], { 'mcp-protocol-version': '2025-03-26' })).status, 200);
  });

  it('[mcp 24] serves a request with other _meta keys or Mcp-Method and Mcp-Name, even wrong ones, as stateful', async () => {
    assert.deepEqual(getRpcResult(await rpc('ping', { _meta: { progressToken: 1, traceparent: 'x' } })), {});
    const params = { protocolVersion: '2025-06-18', capabilities: {} };
    const reply = await rpc('initialize', params, { 'mcp-method': 'initialize' });
    assert.equal(getRpcResult(reply).protocolVersion, '2025-06-18');
    const called = await rpc('tools/call', { name: 'echo' }, { 'mcp-method': 'x', 'mcp-name': 'y' });
    assert.equal(getRpcResult(called).isError, undefined);
  });

  it('[mcp 25] can be mixed with stateless requests on one connection', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    const send = async (message: unknown, headers: Record<string, string> = {}): Promise<Json> => {
      const outgoing = http.request(`${toolhost.url}/mcp/echo`, {
        agent,
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
      });
      outgoing.on('socket', (socket) => sockets.add(socket));
      outgoing.end(JSON.stringify(message));
      const [response] = (await once(outgoing, 'response')) as [http.IncomingMessage];
      return JSON.parse((await response.toArray()).join('')) as Json;
    };
    const call = buildStatelessMessage('tools/call', { name: 'echo' }, 3);
    const initialize = request(2, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} });
    const discovered = await send(buildStatelessMessage('server/discover'), mirrorHeaders('server/discover'));
    assert.equal((discovered.result as Json).resultType, 'complete');
    assert.equal(((await send(initialize)).result as Json).protocolVersion, '2025-11-25');
    assert.equal(((await send(call, mirrorHeaders('tools/call', 'echo'))).result as Json).resultType, 'complete');
    assert.deepEqual(await send(request(4, 'ping', {})), { jsonrpc: '2.0', id: 4, result: {} });
    agent.destroy();
    assert.equal(sockets.size, 1);
  });

  for (const accept of ['*/*', 'application/json', 'text/event-stream', '']) {
    it(`[mcp 26] returns JSON for Accept ${JSON.stringify(accept)} in both protocol generations`, async () => {
      for (const call of [toolhost.rpc, toolhost.statelessRpc]) {
        const { status, headers } = await call('echo', token, 'tools/call', { name: 'echo' }, { accept });
        assert.deepEqual([status, headers.get('content-type')], [200, 'application/json']);
      }
    });
  }
});
