import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { assertRefused, buildEchoConfig, buildStatelessMessage, getRpcResult, mirrorHeaders } from '../support/mcp.ts';
import { type Json, statelessMeta } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';

const token = 'caller-token';
const versionKey = 'io.modelcontextprotocol/protocolVersion';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const clientKey = 'io.modelcontextprotocol/clientInfo';
const infoKey = 'io.modelcontextprotocol/serverInfo';

describe('the stateless protocol (version 2026-07-28)', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  upstream.on('GET /echo', () => ({ body: { said: 'hello' } }));
  await toolhost.createServer(buildEchoConfig(upstream.url));
  after(stop);

  const rpc = (method: string, params: Json = {}) => toolhost.statelessRpc('echo', token, method, params);
  /** Sends a message unchanged, with the headers of a valid message. */
  const post = (message: unknown, method = 'tools/list') =>
    toolhost.post('echo', message, { token, headers: mirrorHeaders(method) });

  it('[mcp 1] [mcp 2] returns a complete result that names the server for tools/call', async () => {
    const reply = await rpc('tools/call', { name: 'echo', arguments: { text: 'hello' } });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get('content-type'), 'application/json');
    const content = [{ type: 'text', text: '{"said":"hello"}' }];
    const _meta = { [infoKey]: { name: 'echo', title: 'Echo', version: '1' } };
    assert.deepEqual(reply.body, { jsonrpc: '2.0', id: 1, result: { content, resultType: 'complete', _meta } });
  });

  const ids = ['"a string"', '""', '0', '-7', String(Number.MAX_SAFE_INTEGER), '"\ud83d\ude00\\"\\\\"', '"\\ud800"'];
  const longIds = ['9007199254740992', '9007199254740993', '-9007199254740992', '100000000000000000000'];
  for (const id of [...ids, ...longIds, '1000000000000000000000', '12345678901234567000']) {
    it(`[mcp 1] returns the id ${id} unchanged, in results and errors of both protocol generations`, async () => {
      for (const method of ['tools/list', 'no/such'])
        for (const params of [`,"params":${JSON.stringify({ _meta: statelessMeta })}`, '']) {
          const message = `{"jsonrpc":"2.0","id":${id},"method":"${method}"${params}}`;
          const headers = params === '' ? {} : mirrorHeaders(method);
          const { text } = await toolhost.post('echo', message, { token, headers });
          assert.ok(text.startsWith(`{"jsonrpc":"2.0","id":${id},"`), text);
        }
    });
  }

  for (const slug of ['echo', 'manage']) {
    it(`[mcp 3] lists versions and capabilities in server/discover of ${slug}`, async () => {
      const bearer = slug === 'manage' ? await toolhost.createKey() : token;
      const reply = await toolhost.statelessRpc(slug, bearer, 'server/discover');
      assert.equal(reply.status, 200);
      const { instructions, ttlMs, _meta, ...rest } = getRpcResult(reply);
      assert.deepEqual(rest, {
        supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
        capabilities: { tools: {} },
        cacheScope: 'private',
        resultType: 'complete',
      });
      assert.ok(Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 0);
      assert.equal(typeof instructions, 'string');
      assert.equal(typeof ((_meta as Json)[infoKey] as Json).name, 'string');
    });
  }

  it('[mcp 4] returns tools/list in a stable order with a cache lifetime, unlike the stateful versions', async () => {
    const [first, second] = [await rpc('tools/list'), await rpc('tools/list')];
    assert.equal(first.text, second.text);
    const { tools, ttlMs, cacheScope, resultType } = getRpcResult(first);
    const names = (tools as Json[]).map((tool) => tool.name);
    assert.deepEqual(names, ['echo', 'note']);
    assert.ok(Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 0);
    assert.deepEqual([cacheScope, resultType], ['private', 'complete']);
    assert.deepEqual(getRpcResult(await toolhost.rpc('echo', token, 'tools/list')), { tools });
    assertRefused(await rpc('tools/list', { cursor: 'never issued' }), 200, -32602);
  });

  const { [versionKey]: _version, ...withoutVersion }: Json = statelessMeta;
  const { [capabilitiesKey]: _capabilities, ...withoutCapabilities }: Json = statelessMeta;
  const { [clientKey]: _client, ...withoutClient }: Json = statelessMeta;
  const invalidParams: [string, Json | undefined][] = [
    ['no params', undefined],
    ['no _meta', {}],
    ['_meta that is a list', { _meta: [statelessMeta] }],
    ['no protocolVersion', { _meta: withoutVersion }],
    ['a protocolVersion that is a number', { _meta: { ...statelessMeta, [versionKey]: 20260728 } }],
    ['a protocolVersion that is null', { _meta: { ...statelessMeta, [versionKey]: null } }],
    ['no clientCapabilities', { _meta: withoutCapabilities }],
    ['clientCapabilities that are null', { _meta: { ...statelessMeta, [capabilitiesKey]: null } }],
    ['clientCapabilities that are a list', { _meta: { ...statelessMeta, [capabilitiesKey]: [] } }],
    ['a clientInfo without a version', { _meta: { ...statelessMeta, [clientKey]: { name: 'x' } } }],
  ];
  for (const [description, params] of invalidParams) {
    it(`[mcp 5] returns 400 -32602 with the id for ${description}`, async () => {
      const message = { jsonrpc: '2.0', id: 'seven', method: 'tools/list', ...(params && { params }) };
      assertRefused(await post(message), 400, -32602, 'seven');
    });
  }

  it('[mcp 5] is assumed for an unknown future version header without _meta', async () => {
    const headers = { 'mcp-protocol-version': 'v999.0.0' };
    assertRefused(await toolhost.rpc('echo', token, 'tools/list', {}, headers), 400, -32602);
    const initialize = await toolhost.rpc('echo', token, 'initialize', { protocolVersion: '2025-11-25' }, headers);
    assertRefused(initialize, 400, -32020);
  });

  it('[mcp 6] does not require clientInfo', async () => {
    const reply = await rpc('tools/call', { name: 'echo', _meta: withoutClient });
    assert.equal(reply.status, 200);
    assert.equal(getRpcResult(reply).resultType, 'complete');
  });

  for (const method of ['initialize', 'ping', 'logging/setLevel', 'prompts/list', 'resources/read', 'foo/bar', '']) {
    it(`[mcp 12] returns 404 -32601 with the id for ${method || 'an empty method'}, which does not exist`, async () => {
      assertRefused(await post(buildStatelessMessage(method, {}, 'twelve'), method), 404, -32601, 'twelve');
    });
  }

  for (const name of ['nope', '', '__proto__', 'constructor', 'echo ']) {
    it(`[mcp 13] returns 200 -32602 for the unknown tool ${JSON.stringify(name)}`, async () => {
      const encoded = `=?base64?${Buffer.from(name).toString('base64')}?=`;
      const reply = await toolhost.statelessRpc('echo', token, 'tools/call', { name }, { 'mcp-name': encoded });
      assertRefused(reply, 200, -32602);
    });
  }

  it('[mcp 13] returns 200 -32602 for a name that is not a string and for arguments that are not an object', async () => {
    for (const params of [{ name: 7 }, { name: 'echo', arguments: [1] }, { name: 'echo', arguments: 'text' }])
      assertRefused(await rpc('tools/call', params), 200, -32602);
  });

  const subscribe = (params: Json, id: unknown = 'sub-1') =>
    post(buildStatelessMessage('subscriptions/listen', params, id), 'subscriptions/listen');

  for (const id of ['sub-1', 41]) {
    it(`[mcp 27] acknowledges subscriptions/listen ${JSON.stringify(id)} without notifications, cancels it, and ends it`, async () => {
      const notifications = { toolsListChanged: true, resourceSubscriptions: ['file:///x'] };
      const reply = await subscribe({ notifications }, id);
      const shown = ['content-type', 'x-accel-buffering'].map((name) => reply.headers.get(name));
      assert.deepEqual([reply.status, ...shown], [200, 'text/event-stream', 'no']);
      const frames = reply.text.split('\n\n').filter((frame) => frame !== '');
      const messages = frames.map((frame) => JSON.parse(frame.replace(/^data: /, '')) as Json);
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      const acknowledged = { notifications: {}, _meta };
      const cancelled = { requestId: id, reason: 'no notifications are offered', _meta };
      assert.deepEqual(messages, [
        { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: acknowledged },
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: cancelled },
        { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta } },
      ]);
    });
  }

  it('[mcp 27] returns -32602 for subscriptions/listen without its filter', async () => {
    for (const params of [{}, { notifications: ['toolsListChanged'] }])
      assertRefused(await subscribe(params), 400, -32602, 'sub-1');
  });

  it('[mcp 28] returns one complete result even if the client requests logs, progress, and further input', async () => {
    const _meta = { ...statelessMeta, 'io.modelcontextprotocol/logLevel': 'debug', progressToken: 'p' };
    const extra = { _meta, inputResponses: { a: 1 }, requestState: 'x' };
    const replies = [
      await rpc('tools/call', { name: 'echo', ...extra }),
      await rpc('tools/call', { name: 'note', arguments: {}, ...extra }),
      await rpc('tools/list', extra),
      await rpc('server/discover', extra),
    ];
    for (const reply of replies) {
      assert.equal(reply.headers.get('content-type'), 'application/json');
      assert.equal(getRpcResult(reply).resultType, 'complete');
      assert.doesNotMatch(reply.text, /"method"|input_required/);
    }
  });

  it('[mcp 12] accepts a notification with any name and returns 202 without a body', async () => {
    const message = { jsonrpc: '2.0', method: 'notifications/anything', params: { _meta: statelessMeta } };
    const reply = await post(message, 'notifications/anything');
    assert.deepEqual([reply.status, reply.text], [202, '']);
  });

  it('[mcp 16] rejects a posted response', async () => {
    const reply = await post({ jsonrpc: '2.0', id: 9, result: {} });
    const message = assertRefused(reply, 400, -32600, 9);
    assert.match(message, /the body is a JSON-RPC response; send a request or a notification/);
  });
});
