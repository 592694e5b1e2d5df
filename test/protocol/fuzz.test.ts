import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { buildEchoConfig, getRpcResult } from '../support/mcp.ts';
import { type Json, statelessMeta, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { type RawReply, sendRawRequest } from '../support/upstreams/raw-request.ts';

const token = 'caller-token';
const errorCodes = new Set([-32700, -32600, -32601, -32602, -32020, -32022, 401]);

const methods = ['initialize', 'ping', 'tools/list', 'tools/call', 'server/discover', 'subscriptions/listen', 'x'];
const versions = ['2026-07-28', '2025-11-25', '2025-03-26', '2099-01-01', '1999-01-01'];

/** One of these values, or any other JSON value. */
const oneOfOrAny = (...known: unknown[]) => fc.oneof(fc.constantFrom(...known), fc.jsonValue({ maxDepth: 2 }));
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** An almost valid message: each member is valid, invalid, or missing. */
const message = fc.record(
  {
    jsonrpc: oneOfOrAny('2.0'),
    id: oneOfOrAny(1, 'one', 0),
    method: oneOfOrAny(...methods),
    params: fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.record(
        {
          name: oneOfOrAny('echo', 'note', 'nope'),
          arguments: fc.oneof(
            fc.jsonValue({ maxDepth: 3 }),
            fc.record(
              { text: oneOfOrAny('x'), times: oneOfOrAny(1), ['__proto__']: oneOfOrAny({}) },
              { requiredKeys: [] },
            ),
          ),
          cursor: oneOfOrAny(''),
          notifications: oneOfOrAny({}),
          protocolVersion: oneOfOrAny(...versions),
          _meta: oneOfOrAny(
            statelessMeta,
            ...versions.map((version) => ({ ...statelessMeta, 'io.modelcontextprotocol/protocolVersion': version })),
          ),
        },
        { requiredKeys: [] },
      ),
    ),
    result: oneOfOrAny({}),
  },
  { requiredKeys: [] },
);

const fieldValue = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 30,
});
const headers = fc.record({
  'mcp-protocol-version': optional(fc.oneof(fc.constantFrom(...versions), fieldValue)),
  'mcp-method': optional(fc.oneof(fc.constantFrom(...methods), fieldValue)),
  'mcp-name': optional(fc.oneof(fc.constantFrom('echo', 'note', '=?base64?ZWNobw==?=', '=?base64?x?='), fieldValue)),
  'mcp-session-id': optional(fieldValue),
  accept: optional(fc.oneof(fc.constantFrom('application/json', 'text/html', '*/*'), fieldValue)),
  traceparent: optional(fieldValue),
});

describe('an MCP endpoint that receives random input', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  await toolhost.createServer(buildEchoConfig(upstream.url));
  after(stop);

  const post = (body: string | Buffer, overrides: Record<string, string | undefined> = {}) => {
    const fields = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...overrides };
    const headers = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    return sendRawRequest(`${toolhost.url}/mcp/echo`, { method: 'POST', headers }, body);
  };

  /** Asserts that a value is either one JSON-RPC result or one JSON-RPC error with an MCP error code. */
  const assertJsonRpc = (value: Json, status: number) => {
    assert.equal(value.jsonrpc, '2.0');
    if (value.error === undefined)
      return assert.deepEqual([status, ...Object.keys(value)], [200, 'jsonrpc', 'id', 'result']);
    assert.ok(errorCodes.has((value.error as { code: number }).code), JSON.stringify(value));
    assert.equal(value.result, undefined);
  };
  const assertValidResponse = (reply: RawReply) => {
    assert.ok([200, 202, 400, 401, 404, 413].includes(reply.status), `${reply.status} ${reply.text}`);
    if (reply.status === 202) return assert.equal(reply.text, '');
    if (reply.headers['content-type'] === 'text/event-stream') return;
    assert.equal(reply.headers['content-type'], 'application/json');
    for (const value of [JSON.parse(reply.text) as Json | Json[]].flat()) assertJsonRpc(value, reply.status);
  };
  const assertAlive = async () => assert.deepEqual(getRpcResult(await toolhost.rpc('echo', token, 'ping')), {});

  it('[mcp 16] responds to random bytes with a JSON error', async () => {
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      const reply = await post(Buffer.from(bytes));
      assertValidResponse(reply);
      assert.notEqual(reply.status, 404);
    });
    await fc.assert(property, { numRuns: getRunCount(200) });
    await assertAlive();
  });

  it('[mcp 5] [mcp 16] responds to almost valid messages and headers with JSON-RPC', async () => {
    const body = fc.oneof(
      { weight: 4, arbitrary: message },
      { weight: 1, arbitrary: fc.array(message, { maxLength: 4 }) },
    );
    const property = fc.asyncProperty(body, headers, async (messageOrBatch, fields) =>
      assertValidResponse(await post(JSON.stringify(messageOrBatch), fields)),
    );
    await fc.assert(property, { numRuns: getRunCount(500) });
    await assertAlive();
  });

  it('[mcp 14] sends exactly the arguments of a call to the upstream, or nothing', async () => {
    upstream.on('GET /echo', ({ url }) => ({ body: { text: new URL(url, upstream.url).searchParams.get('text') } }));
    const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary-ascii' }));
    const property = fc.asyncProperty(anyText, async (text) => {
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text } } };
      const { result } = JSON.parse((await post(JSON.stringify(call))).text) as { result: ToolCallResult };
      if (result.isError) assert.equal(text.isWellFormed(), false, JSON.stringify(result));
      else assert.deepEqual(JSON.parse(String(result.content[0]?.text)), { text });
    });
    await fc.assert(property, { numRuns: getRunCount(200) });
  });
});
