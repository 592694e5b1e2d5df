import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { assertRefused, echoConfig, resultOf } from '../support/mcp.ts';
import {
  type Json,
  modernMeta,
  startToolhost,
  type TestToolhost,
  type ToolReply,
} from '../support/toolhost/toolhost.ts';
import {
  type Answer,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token';

describe('tool handling in both protocol generations', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
    const slow = { ...toolOf(), name: 'slow', url: `${upstream.url}/slow`, timeout_ms: 40 };
    const config = echoConfig(upstream.url);
    await toolhost.createServer({ ...config, tools: [...(config.tools as Json[]), slow] });
  });
  beforeEach(() => void upstream.take());
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  const toolOf = (more: Json = {}): Json => ({
    name: 'tool',
    description: 'A tool of this test, for this test.',
    method: 'GET',
    url: `${upstream.url}/tool`,
    ...more,
  });
  /** Calls a tool in both protocol generations and asserts equal results except for the envelope. */
  const callBoth = async (name: string, args: Json, slug = 'echo'): Promise<ToolReply> => {
    const legacy = await toolhost.rpc(slug, token, 'tools/call', { name, arguments: args });
    const modern = await toolhost.modern(slug, token, 'tools/call', { name, arguments: args });
    assert.deepEqual([legacy.status, modern.status], [200, 200], legacy.text + modern.text);
    const { resultType, _meta, ...rest } = resultOf(modern);
    assert.equal(resultType, 'complete');
    assert.deepEqual(resultOf(legacy), rest);
    return rest as ToolReply;
  };
  const failureText = (reply: ToolReply): string => {
    assert.equal(reply.isError, true);
    assert.deepEqual(
      reply.content.map((block) => block.type),
      ['text'],
    );
    return reply.content[0]?.text ?? '';
  };

  const misfits: [string, string, Json, RegExp][] = [
    ['a wrong type', 'echo', { text: [7] }, /text: found an array of 1; allowed: string/],
    ['a fraction for an integer', 'echo', { times: 1.5 }, /times: found 1\.5; allowed: integer/],
    ['a missing argument', 'note', {}, /text: is missing/],
    ['an unknown argument', 'note', { text: 'a', txt: 'b' }, /txt: unknown argument; did you mean/],
    ['null', 'note', { text: null }, /text: found null; allowed: string/],
  ];
  for (const [what, name, args, said] of misfits) {
    it(`[mcp 14] returns an error that names the argument, and sends nothing, for ${what}`, async () => {
      assert.match(failureText(await callBoth(name, args)), said);
      assert.equal(upstream.requests.length, 0);
    });
  }

  const unhappy: [Answer, RegExp][] = [
    [{ status: 404, body: { message: 'no such row' } }, /^HTTP 404 Not Found\n\{"message":"no such row"\}$/],
    [{ status: 401, body: 'who?' }, /^HTTP 401 Unauthorized\nwho\?$/],
    [{ status: 429, headers: { 'retry-after': '7' }, body: '' }, /^HTTP 429 Too Many Requests\nRetry-After: 7$/],
    [{ status: 500, body: '' }, /^HTTP 500 Internal Server Error$/],
    [{ status: 503, body: '<h1>down</h1>' }, /^HTTP 503 Service Unavailable\n<h1>down<\/h1>$/],
  ];
  for (const [answer, said] of unhappy) {
    it(`[mcp 15] returns the upstream status ${answer.status} as an error result that the model can read`, async () => {
      upstream.on('GET /echo', () => answer);
      assert.match(failureText(await callBoth('echo', {})), said);
    });
  }

  it('[mcp 15] returns an error result with the timeout if the upstream does not respond in time', async () => {
    upstream.on('GET /slow', () => 'hold');
    assert.match(failureText(await callBoth('slow', {})), /did not answer within 40 ms/);
  });

  it('[mcp 4] replaces unpaired surrogates of a configuration, so that every client can parse the response', async () => {
    const half = 'A text that was cut in the middle of an emoji \ud83d';
    await toolhost.createServer({
      ...echoConfig(upstream.url, { slug: 'halves', description: half }),
      tools: [toolOf({ description: half, input_schema: { q: { type: 'string', examples: [half] } } })],
    });
    const key = await toolhost.key();
    for (const { text } of [
      await toolhost.rpc('halves', token, 'initialize', { protocolVersion: '2025-11-25' }),
      await toolhost.rpc('halves', token, 'tools/list'),
      await toolhost.modern('halves', token, 'server/discover'),
      await toolhost.modern('halves', token, 'tools/list'),
      await toolhost.rpc('manage', key, 'tools/call', { name: 'getMcpServer', arguments: { slug: 'halves' } }),
    ]) {
      assert.match(text, /emoji (?:\ufffd|\\+ufffd)\\*"/);
      assert.doesNotMatch(text, /(?<!\\)\\u[dD]/);
    }
  });

  it('[mcp 32] lists a schema with the keywords of 2020-12 byte for byte', async () => {
    const input_schema = JSON.parse(richSchema) as Json;
    await toolhost.createServer({ ...echoConfig(upstream.url, { slug: 'rich' }), tools: [toolOf({ input_schema })] });
    const legacy = await toolhost.rpc('rich', token, 'tools/list');
    const modern = await toolhost.modern('rich', token, 'tools/list');
    for (const { text } of [legacy, modern])
      assert.ok(text.includes(`"inputSchema":${JSON.stringify(input_schema)},`), text);
    const fits = { address: { street: 'A', city: 'B' }, contact: 'email', tags: ['x', 'y'] };
    assert.notEqual((await toolhost.callTool('rich', token, 'tool', fits)).isError, true);
    const misfit = await toolhost.callTool('rich', token, 'tool', { address: { street: [1] } });
    assert.equal(misfit.isError, true);
    assert.match(misfit.content[0]?.text ?? '', /address\.street: found an array of 1/);
    assert.equal(upstream.requests.length, 1);
  });

  it('[mcp 32] lists a tool without parameters with an object schema that accepts no properties', async () => {
    await toolhost.createServer({ ...echoConfig(upstream.url, { slug: 'bare' }), tools: [toolOf()] });
    const [tool] = resultOf(await toolhost.rpc('bare', token, 'tools/list')).tools as Json[];
    assert.deepEqual(tool?.inputSchema, { type: 'object', properties: {}, additionalProperties: false });
    const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };
    assert.deepEqual(tool?.annotations, annotations);
    assert.equal('outputSchema' in (tool ?? {}), false);
  });

  it('[mcp 33] returns a result that matches output_schema, or an error', async () => {
    const output_schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    await toolhost.createServer({
      ...echoConfig(upstream.url, { slug: 'shaped' }),
      tools: [toolOf({ output_schema })],
    });
    for (const reply of [
      await toolhost.rpc('shaped', token, 'tools/list'),
      await toolhost.modern('shaped', token, 'tools/list'),
    ]) {
      assert.deepEqual((resultOf(reply).tools as Json[])[0]?.outputSchema, output_schema);
    }
    upstream.on('GET /tool', () => ({ body: { n: 1, more: true } }));
    const fits = await callBoth('tool', {}, 'shaped');
    assert.deepEqual(fits.structuredContent, { n: 1, more: true });
    assert.deepEqual(fits.content, [{ type: 'text', text: '{"n":1,"more":true}' }]);
    for (const body of [{ n: 'one' }, {}, [1], 'text']) {
      upstream.on('GET /tool', () => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }));
      assert.match(failureText(await callBoth('tool', {}, 'shaped')), /does not match output_schema/);
    }
    // Clients with the official SDKs throw if a successful result has no structured content.
    const type = (name: string) => ({ 'content-type': name });
    for (const [answer, said] of [
      [
        { status: 204 },
        /^output_schema requires a JSON response, but HTTP 204 No Content has no body; the request itself was carried out$/,
      ],
      [
        { status: 200, body: '' },
        /^output_schema requires a JSON response, but HTTP 200 OK has no body; the request itself was carried out$/,
      ],
      [
        { headers: type('text/plain'), body: 'done' },
        /^output_schema requires a JSON response, but .* returned text\/plain; the request/,
      ],
      [
        { headers: type('image/png'), body: Buffer.from([0x89, 0xff]) },
        /^output_schema requires .* image\/png; the request/,
      ],
      [{ headers: type('application/vnd.x.raw+json'), body: 'done' }, /not strict JSON; the request/],
    ] as [Answer, RegExp][]) {
      upstream.on('GET /tool', () => answer);
      assert.match(failureText(await callBoth('tool', {}, 'shaped')), said);
    }
  });

  it('[mcp 33] returns structured content without output_schema only to stateful clients, for JSON other than an object', async () => {
    upstream.on('GET /echo', () => ({ body: [1, 2] }));
    const legacy = resultOf(await toolhost.rpc('echo', token, 'tools/call', { name: 'echo' }));
    assert.deepEqual(legacy, { content: [{ type: 'text', text: '[1,2]' }], structuredContent: { result: [1, 2] } });
    const modern = resultOf(await toolhost.modern('echo', token, 'tools/call', { name: 'echo' }));
    assert.equal(modern.structuredContent, undefined);
  });

  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const sent = async (meta: Json, headers: Record<string, string> = {}) => {
    upstream.take();
    const params = { name: 'note', arguments: { text: 'x' }, _meta: { ...modernMeta, ...meta } };
    assert.equal((await toolhost.modern('echo', token, 'tools/call', params, headers)).status, 200);
    const { traceparent, tracestate, baggage } = (await upstream.waitForRequest()).headers;
    return [traceparent, tracestate, baggage];
  };

  it('[mcp 35] forwards a valid trace context of _meta, which takes precedence over the headers', async () => {
    const other = parent.replace('0af7', '1111');
    assert.deepEqual(await sent({ traceparent: parent, tracestate: 'a=1', baggage: 'b=2' }), [
      parent,
      'a=1',
      undefined,
    ]);
    assert.deepEqual(await sent({ traceparent: parent }, { traceparent: other, tracestate: 'c=3' }), [
      parent,
      undefined,
      undefined,
    ]);
    assert.deepEqual(await sent({}, { traceparent: other, tracestate: 'c=3' }), [other, 'c=3', undefined]);
    await toolhost.rpc('echo', token, 'tools/call', {
      name: 'note',
      arguments: { text: 'x' },
      _meta: { traceparent: parent },
    });
    assert.equal((await upstream.waitForRequest(2)).headers.traceparent, parent);
  });

  const badParents = [
    7,
    null,
    '',
    'x',
    `${parent}x`,
    parent.toUpperCase(),
    parent.replace('00-', 'ff-'),
    `${parent}\r\nx: y`,
  ];
  badParents.push(
    parent.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)),
    parent.replace('b7ad6b7169203331', '0'.repeat(16)),
  );
  it('[mcp 35] drops an invalid traceparent with its tracestate, and an invalid tracestate alone', async () => {
    for (const traceparent of badParents) {
      assert.deepEqual(
        await sent({ traceparent, tracestate: 'a=1' }),
        [undefined, undefined, undefined],
        String(traceparent),
      );
    }
    for (const tracestate of ['a=1\r\nx: y', 'ü=1', '', 'x'.repeat(513), 5]) {
      assert.deepEqual(
        await sent({ traceparent: parent, tracestate }),
        [parent, undefined, undefined],
        String(tracestate),
      );
    }
  });

  it('[mcp 34] returns 429 with Retry-After beyond the rate of a server, and other servers are not affected', async () => {
    const limited = await startToolhost({
      egress: [upstream.port],
      env: { CALLS_PER_SECOND: '1' },
      surroundings: { clock: () => 0 },
    });
    try {
      for (const slug of ['echo', 'other']) await limited.createServer(echoConfig(upstream.url, { slug }));
      const call = (slug: string) =>
        limited.modern(slug, token, 'tools/call', { name: 'note', arguments: { text: 'x' } });
      upstream.take();
      const replies = [await call('echo'), await call('echo'), await call('echo')];
      assert.deepEqual(
        replies.map((reply) => reply.status),
        [200, 200, 429],
      );
      const [, , refused] = replies;
      assert.ok(refused);
      assert.match(assertRefused(refused, 429, 429), /gets at most 1 per second\. The call was not made; retry in 1 s/);
      assert.equal(refused.headers.get('retry-after'), '1');
      assert.equal((await call('other')).status, 200);
      assert.equal((await limited.rpc('echo', token, 'tools/list')).status, 200);
      const batch = await limited.post(
        'echo',
        ['a', 'b']
          .map((id) => ({
            jsonrpc: '2.0',
            id,
            method: 'tools/call',
            params: { name: 'note', arguments: { text: id } },
          }))
          .concat({ jsonrpc: '2.0', id: 'c', method: 'ping' } as never),
        { token },
      );
      assert.equal(batch.status, 200, batch.text);
      assert.deepEqual(
        (batch.body as unknown as Json[]).map(({ id, error, result }) => [
          id,
          (error as Json | undefined)?.code ?? result,
        ]),
        [
          ['a', 429],
          ['b', 429],
          ['c', {}],
        ],
      );
      assert.equal(upstream.requests.length, 3);
    } finally {
      await limited.stop();
    }
  });
});

/** Similar to the schema that `json-schema-2020-12` of the conformance suite registers. */
const richSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
      "required": ["street"]
    }
  },
  "properties": {
    "address": { "$ref": "#/$defs/address" },
    "also": { "$ref": "#addressDef" },
    "contact": { "anyOf": [{ "enum": ["email", "phone"] }, { "type": "null" }] },
    "tags": { "type": "array", "prefixItems": [{ "type": "string" }], "minItems": 1 }
  },
  "allOf": [{ "anyOf": [{ "required": ["address"] }, { "required": ["also"] }] }],
  "if": { "required": ["contact"] },
  "then": { "required": ["tags"] },
  "else": { "properties": { "tags": false } },
  "additionalProperties": false
}`;
