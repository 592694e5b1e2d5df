import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { echoConfig, resultOf } from '../support/mcp.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token';

describe('schemas of tools', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
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

  const refusedTools: [string, Json, string, RegExp][] = [
    ['a name with a space', { name: 'a b' }, 'name', /letters, digits/],
    ['a name of 65 letters', { name: 'a'.repeat(65) }, 'name', /1 to 64/],
    ['an empty description', { description: ' ' }, 'description', /./],
    [
      'a root that is no object',
      { input_schema: { type: 'array' } },
      'input_schema.type',
      /found "array"; allowed: "object"/,
    ],
    [
      'an unknown dialect',
      dialect('http://json-schema.org/draft-07/schema#'),
      'input_schema.$schema',
      /unknown dialect/,
    ],
    [
      'a $ref into the network',
      property({ $ref: 'https://e.example/s' }),
      'input_schema.properties.a.$ref',
      /into this schema/,
    ],
    [
      'an output schema without an object root',
      { output_schema: { type: 'array' } },
      'output_schema.type',
      /allowed: "object"/,
    ],
    [
      'an empty x-mcp-header',
      mirrored({ type: 'string' }, ''),
      'input_schema.properties.a.x-mcp-header',
      /a header name/,
    ],
    [
      'an x-mcp-header with a space',
      mirrored({ type: 'string' }, 'A b'),
      'input_schema.properties.a.x-mcp-header',
      /a header name/,
    ],
    [
      'an x-mcp-header on a number',
      mirrored({ type: 'number' }, 'A'),
      'input_schema.properties.a.x-mcp-header',
      /found on type "number"/,
    ],
    [
      'an x-mcp-header on an object',
      mirrored({ type: 'object' }, 'A'),
      'input_schema.properties.a.x-mcp-header',
      /found on type "object"/,
    ],
    [
      'an x-mcp-header inside items',
      property({ type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } }),
      'input_schema.properties.a.items.x-mcp-header',
      /only allowed on properties/,
    ],
    [
      'one x-mcp-header twice',
      {
        input_schema: { a: { type: 'string', 'x-mcp-header': 'Same' }, b: { type: 'string', 'x-mcp-header': 'sAME' } },
      },
      'input_schema.properties.b.x-mcp-header',
      /used twice/,
    ],
  ];
  for (const [what, fault, path, reason] of refusedTools) {
    it(`[mcp 31] ${what}: the server is not stored, and the reason names the location`, async () => {
      const body = { ...echoConfig(upstream.url, { slug: 'refused' }), tools: [toolOf(fault)] };
      const reply = await toolhost.rest('POST', '/servers', { body });
      assert.equal(reply.status, 400, reply.text);
      const problems = reply.body.problems as { path: string; message: string }[];
      const problem = problems.find((candidate) => candidate.path === `tools[0].${path}`);
      assert.match(problem?.message ?? `only ${JSON.stringify(problems)}`, reason);
      assert.equal((await toolhost.rpc('refused', token, 'tools/list')).status, 404);
    });
  }

  it('[mcp 32] a schema with the keywords of 2020-12 is listed byte for byte, in both eras', async () => {
    const input_schema = JSON.parse(richSchema) as Json;
    await toolhost.createServer({ ...echoConfig(upstream.url, { slug: 'rich' }), tools: [toolOf({ input_schema })] });
    const legacy = await toolhost.rpc('rich', token, 'tools/list');
    const modern = await toolhost.modern('rich', token, 'tools/list');
    for (const { text } of [legacy, modern])
      assert.ok(text.includes(`"inputSchema":${JSON.stringify(input_schema)},`), text);
    const fits = { address: { street: 'A', city: 'B' }, contact: 'email', tags: ['x', 'y'] };
    assert.notEqual((await toolhost.callTool('rich', token, 'tool', fits)).isError, true);
    const misfit = await toolhost.callTool('rich', token, 'tool', { address: { street: 1 } });
    assert.equal(misfit.isError, true);
    assert.match(misfit.content[0]?.text ?? '', /address\.street: found 1/);
    assert.equal(upstream.requests.length, 1);
  });

  it('[mcp 32] a tool without parameters is listed with an object schema that takes nothing', async () => {
    await toolhost.createServer({ ...echoConfig(upstream.url, { slug: 'bare' }), tools: [toolOf()] });
    const [tool] = resultOf(await toolhost.rpc('bare', token, 'tools/list')).tools as Json[];
    assert.deepEqual(tool?.inputSchema, { type: 'object', properties: {}, additionalProperties: false });
    const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };
    assert.deepEqual(tool?.annotations, annotations);
    assert.equal('outputSchema' in (tool ?? {}), false);
  });
});

function dialect($schema: string): Json {
  return { input_schema: { $schema, type: 'object', properties: {} } };
}

function property(schema: Json): Json {
  return { input_schema: { type: 'object', properties: { a: schema } } };
}

function mirrored(schema: Json, header: string): Json {
  return property({ ...schema, 'x-mcp-header': header });
}

/** Close to what `json-schema-2020-12` of the conformance suite registers. */
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
