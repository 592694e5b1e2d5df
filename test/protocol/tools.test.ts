import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { buildEchoConfig, getRpcResult } from '../support/mcp.ts';
import { type Json, statelessMeta, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token';

describe('tool handling in both protocol generations', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  const tool = { name: 'tool', description: 'A tool of this test, for this test.', method: 'GET' };
  const createTool = (overrides: Json = {}): Json => ({ ...tool, url: `${upstream.url}/tool`, ...overrides });
  /** Creates a server with one tool. */
  const createServer = (slug: string, overrides: Json = {}, config: Json = {}) =>
    toolhost.createServer({ ...buildEchoConfig(upstream.url, { slug, ...config }), tools: [createTool(overrides)] });
  const slow = { ...createTool(), name: 'slow', url: `${upstream.url}/slow`, timeout_ms: 40 };
  const config = buildEchoConfig(upstream.url);
  await toolhost.createServer({ ...config, tools: [...(config.tools as Json[]), slow] });
  beforeEach(() => void upstream.take());
  after(stop);

  /** Calls a tool in both protocol generations and asserts equal results except for the envelope. */
  const callInBothGenerations = async (name: string, args: Json, slug = 'echo'): Promise<ToolCallResult> => {
    const statefulReply = await toolhost.rpc(slug, token, 'tools/call', { name, arguments: args });
    const statelessReply = await toolhost.statelessRpc(slug, token, 'tools/call', { name, arguments: args });
    const statuses = [statefulReply.status, statelessReply.status];
    assert.deepEqual(statuses, [200, 200], statefulReply.text + statelessReply.text);
    const { resultType, _meta, ...rest } = getRpcResult(statelessReply);
    assert.equal(resultType, 'complete');
    assert.deepEqual(getRpcResult(statefulReply), rest);
    return rest as ToolCallResult;
  };
  const getErrorText = (reply: ToolCallResult): string => {
    assert.deepEqual([reply.isError, reply.content.length, reply.content[0]?.type], [true, 1, 'text']);
    return reply.content[0]?.text ?? '';
  };

  const invalidArgumentCases: [string, string, Json, RegExp][] = [
    ['a wrong type', 'echo', { text: [7] }, /text: found an array of 1; allowed: string/],
    ['a fraction for an integer', 'echo', { times: 1.5 }, /times: found 1\.5; allowed: integer/],
    ['a missing argument', 'note', {}, /text: is missing/],
    ['an unknown argument', 'note', { text: 'a', txt: 'b' }, /txt: unknown argument; did you mean/],
    ['null', 'note', { text: null }, /text: found null; allowed: string/],
  ];
  for (const [description, name, args, expected] of invalidArgumentCases) {
    it(`[mcp 14] returns an error that names the argument, and sends nothing, for ${description}`, async () => {
      assert.match(getErrorText(await callInBothGenerations(name, args)), expected);
      assert.equal(upstream.requests.length, 0);
    });
  }

  const upstreamErrors: [CannedResponse, RegExp][] = [
    [{ status: 404, body: { message: 'no such row' } }, /^HTTP 404 Not Found\n\{"message":"no such row"\}$/],
    [{ status: 401, body: 'who?' }, /^HTTP 401 Unauthorized\nwho\?$/],
  ];
  for (const [response, expected] of upstreamErrors) {
    it(`[mcp 15] returns the upstream status ${response.status} as an error result that the model can read`, async () => {
      upstream.on('GET /echo', () => response);
      assert.match(getErrorText(await callInBothGenerations('echo', {})), expected);
    });
  }

  it('[mcp 15] returns an error result with the timeout if the upstream does not respond in time', async () => {
    upstream.on('GET /slow', () => 'hold');
    assert.match(getErrorText(await callInBothGenerations('slow', {})), /did not answer within 40 ms/);
  });

  it('[mcp 4] replaces unpaired surrogates of a configuration, so that every client can parse the response', async () => {
    const textWithSurrogate = 'A text that was cut in the middle of an emoji \ud83d';
    const input_schema = { q: { type: 'string', examples: [textWithSurrogate] } };
    const description = textWithSurrogate;
    await createServer('halves', { description, input_schema }, { description });
    const key = await toolhost.createKey();
    for (const { text } of [
      await toolhost.rpc('halves', token, 'initialize', { protocolVersion: '2025-11-25' }),
      await toolhost.rpc('halves', token, 'tools/list'),
      await toolhost.statelessRpc('halves', token, 'server/discover'),
      await toolhost.statelessRpc('halves', token, 'tools/list'),
      await toolhost.rpc('manage', key, 'tools/call', { name: 'getMcpServer', arguments: { slug: 'halves' } }),
    ]) {
      assert.match(text, /emoji (?:\ufffd|\\+ufffd)\\*"/);
      assert.doesNotMatch(text, /(?<!\\)\\u[dD]/);
    }
  });

  it('[mcp 32] lists a schema with the keywords of 2020-12 byte for byte', async () => {
    await createServer('rich', { input_schema: richSchema });
    for (const list of [toolhost.rpc, toolhost.statelessRpc]) {
      const { text } = await list('rich', token, 'tools/list');
      assert.ok(text.includes(`"inputSchema":${JSON.stringify(richSchema)},`), text);
    }
    const fits = { address: { street: 'A', city: 'B' }, contact: 'email', tags: ['x', 'y'] };
    assert.notEqual((await toolhost.callTool('rich', token, 'tool', fits)).isError, true);
    const misfit = await toolhost.callTool('rich', token, 'tool', { address: { street: [1] } });
    assert.equal(misfit.isError, true);
    assert.match(misfit.content[0]?.text ?? '', /address\.street: found an array of 1/);
    assert.equal(upstream.requests.length, 1);
  });

  it('[mcp 32] lists a tool without parameters with an object schema that accepts no properties', async () => {
    await createServer('bare');
    const [tool] = getRpcResult(await toolhost.rpc('bare', token, 'tools/list')).tools as Json[];
    assert.deepEqual(tool?.inputSchema, { type: 'object', properties: {}, additionalProperties: false });
    const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };
    assert.deepEqual(tool?.annotations, annotations);
    assert.equal('outputSchema' in (tool ?? {}), false);
  });

  it('[mcp 33] returns a result that matches output_schema, or an error', async () => {
    const output_schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    await createServer('shaped', { output_schema });
    for (const list of [toolhost.rpc, toolhost.statelessRpc]) {
      const [listed] = getRpcResult(await list('shaped', token, 'tools/list')).tools as Json[];
      assert.deepEqual(listed?.outputSchema, output_schema);
    }
    upstream.on('GET /tool', () => ({ body: { n: 1, more: true } }));
    const fits = await callInBothGenerations('tool', {}, 'shaped');
    assert.deepEqual(fits.structuredContent, { n: 1, more: true });
    assert.deepEqual(fits.content, [{ type: 'text', text: '{"n":1,"more":true}' }]);
    for (const body of [{ n: 'one' }, {}, [1], 'text']) {
      upstream.on('GET /tool', () => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }));
      assert.match(getErrorText(await callInBothGenerations('tool', {}, 'shaped')), /does not match output_schema/);
    }
    // Clients with the official SDKs throw if a successful result has no structured content.
    const type = (name: string) => ({ 'content-type': name });
    const empty = 'has no body; the request itself was carried out$';
    const cases: [CannedResponse, RegExp][] = [
      [{ status: 204 }, RegExp(`^output_schema requires a JSON response, but HTTP 204 No Content ${empty}`)],
      [{ status: 200, body: '' }, RegExp(`^output_schema requires a JSON response, but HTTP 200 OK ${empty}`)],
      [
        { headers: type('text/plain'), body: 'done' },
        /^output_schema requires a JSON response, but .* returned text\/plain; the request/,
      ],
      [
        { headers: type('image/png'), body: Buffer.from([0x89, 0xff]) },
        /^output_schema requires .* image\/png; the request/,
      ],
      [{ headers: type('application/vnd.x.raw+json'), body: 'done' }, /not strict JSON; the request/],
    ];
    for (const [response, expected] of cases) {
      upstream.on('GET /tool', () => response);
      assert.match(getErrorText(await callInBothGenerations('tool', {}, 'shaped')), expected);
    }
  });

  const valid = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const callForTraceHeaders = async (meta: Json, headers: Record<string, string> = {}) => {
    upstream.take();
    const params = { name: 'note', arguments: { text: 'x' }, _meta: { ...statelessMeta, ...meta } };
    assert.equal((await toolhost.statelessRpc('echo', token, 'tools/call', params, headers)).status, 200);
    const { traceparent, tracestate, baggage } = (await upstream.waitForRequest()).headers;
    return [traceparent, tracestate, baggage];
  };

  it('[mcp 35] forwards a valid trace context of _meta, which takes precedence over the headers', async () => {
    const other = valid.replace('0af7', '1111');
    const headers = { traceparent: other, tracestate: 'c=3' };
    const whole = await callForTraceHeaders({ traceparent: valid, tracestate: 'a=1', baggage: 'b=2' });
    assert.deepEqual(whole, [valid, 'a=1', undefined]);
    assert.deepEqual(await callForTraceHeaders({ traceparent: valid }, headers), [valid, undefined, undefined]);
    assert.deepEqual(await callForTraceHeaders({}, headers), [other, 'c=3', undefined]);
    const params = { name: 'note', arguments: { text: 'x' }, _meta: { traceparent: valid } };
    await toolhost.rpc('echo', token, 'tools/call', params);
    assert.equal((await upstream.waitForRequest(2)).headers.traceparent, valid);
  });

  it('[mcp 35] drops an invalid traceparent with its tracestate, and an invalid tracestate alone', async () => {
    const [zeroTrace, zeroParent] = [/0af7\w+/, /b7ad\w+/].map((id) =>
      valid.replace(id, (found) => '0'.repeat(found.length)),
    );
    const changed = [`${valid}x`, valid.toUpperCase(), valid.replace('00-', 'ff-'), `${valid}\r\nx: y`];
    for (const traceparent of [7, null, '', 'x', ...changed, zeroTrace, zeroParent]) {
      const sent = await callForTraceHeaders({ traceparent, tracestate: 'a=1' });
      assert.deepEqual(sent, [undefined, undefined, undefined], String(traceparent));
    }
    for (const tracestate of ['a=1\r\nx: y', 'ü=1', '', 'x'.repeat(513), 5]) {
      const sent = await callForTraceHeaders({ traceparent: valid, tracestate });
      assert.deepEqual(sent, [valid, undefined, undefined], String(tracestate));
    }
  });
});

/** Similar to the schema that `json-schema-2020-12` of the conformance suite registers. */
const richSchema = JSON.parse(`{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": { "address": { "$anchor": "addressDef", "type": "object", "required": ["street"],
    "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
  "properties": {
    "address": { "$ref": "#/$defs/address" },
    "also": { "$ref": "#addressDef" },
    "contact": { "anyOf": [{ "enum": ["email", "phone"] }, { "type": "null" }] },
    "tags": { "type": "array", "prefixItems": [{ "type": "string" }], "minItems": 1 }
  },
  "allOf": [{ "anyOf": [{ "required": ["address"] }, { "required": ["also"] }] }],
  "if": { "required": ["contact"] }, "then": { "required": ["tags"] }, "else": { "properties": { "tags": false } },
  "additionalProperties": false
}`) as Json;
