import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { boolean, listOf, object, text } from '../support/schemas.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { buildServerConfig, buildToolConfig, findToolProblems } from '../support/valid-configs.ts';

const dialect = 'https://json-schema.org/draft/2020-12/schema';

describe('the schemas and response fields of a tool', () => {
  let toolhost: TestToolhost;
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  const getProblems = (fields: Json, more?: Json) => findToolProblems(toolhost, fields, more);
  const getSchemaProblems = (input_schema: Json) => getProblems({ method: 'POST', input_schema });
  const listTools = async (slug: string, tools: Json[]) => {
    await toolhost.createServer(buildServerConfig({ slug, tools }));
    const { body, text } = await toolhost.rpc(slug, 'token', 'tools/list');
    return { tools: (body.result as { tools: Json[] }).tools, text };
  };

  it('[behaviour Configuration] converts a flat input_schema into a closed JSON Schema object', async () => {
    const input_schema = {
      id: { type: 'string', description: 'Its id', in: 'query', format: 'uuid', examples: ['a'] },
      count: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
      size: { type: 'number', optional: true, enum: [1, 2.5] },
      type: { type: 'object', optional: true, properties: { a: boolean }, required: ['a'] },
      tags: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 5 }, optional: true },
    };
    const { tools } = await listTools('flat-map', [buildToolConfig({ input_schema })]);
    assert.deepEqual(tools[0]?.inputSchema, {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'Its id', format: 'uuid', examples: ['a'] },
        count: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
        size: { type: 'number', enum: [1, 2.5] },
        type: object({ a: boolean }, ['a']),
        tags: listOf({ type: 'string', minLength: 1, maxLength: 5 }),
      },
      required: ['id'],
      additionalProperties: false,
    });
  });

  it('[behaviour Configuration] accepts the six field types and their optional keywords in input_schema, and validates their values', async () => {
    for (const type of ['string', 'number', 'integer', 'boolean', 'array', 'object']) {
      assert.deepEqual(await getSchemaProblems({ a: { type } }), []);
    }
    const cases: [Json, string][] = [
      [{ type: 'date' }, 'a.type: found "date"; allowed: "string", "number", "integer", "boolean", "array", "object"'],
      [{}, 'a.type: found nothing; allowed: "string", "number", "integer", "boolean", "array", "object"'],
      [{ type: 'string', optional: 'yes' }, 'a.optional: found "yes"; allowed: a boolean'],
      [{ type: 'string', minLength: -1 }, 'a.minLength: found -1; allowed: at least 0'],
      [
        { type: 'string', in: 'nowhere' },
        'a.in: found "nowhere"; allowed: "path", "query", "header", "cookie", "body"',
      ],
      [{ type: 'object', required: true }, 'a.required: found true; allowed: an array'],
      [{ type: 'integer', default: 'x' }, 'a.default: found a value that is not of type integer'],
      [{ type: 'string', enum: ['x', 5] }, 'a.enum[1]: found a value that is not of type string'],
      [
        listOf({ type: 'text' }),
        'a.items.type: found "text"; allowed: "string", "number", "integer", "boolean", "array", "object"',
      ],
    ];
    for (const [field, report] of cases) {
      assert.deepEqual(await getSchemaProblems({ a: field }), [`tools[0].input_schema.${report}`]);
    }
  });

  it('[behaviour Configuration] rejects $ref and every other keyword in a flat map', async () => {
    for (const keyword of ['patternProperties', '$ref', 'oneOf', 'uniqueItems', '$id', 'title', 'optionl']) {
      const [report, ...more] = await getSchemaProblems({ a: { type: 'string', [keyword]: 'x' } });
      assert.match(
        report ?? '',
        new RegExp(`^tools\\[0\\]\\.input_schema\\.a\\.${keyword.replace('$', '\\$')}: unknown field`),
      );
      assert.deepEqual(more, []);
    }
    const [report] = await getSchemaProblems({ a: { type: 'string', optionl: true } });
    assert.match(report ?? '', /did you mean `optional`\?$/);
  });

  it('[behaviour Configuration] accepts argument names of letters, digits, _ . - [ ] that begin with a letter or _', async () => {
    for (const name of [
      'a',
      '_a',
      'user.name',
      'ids[]',
      'x-y',
      'a'.repeat(64),
      'toString',
      'constructor',
      'prototype',
    ]) {
      assert.deepEqual(await getSchemaProblems({ [name]: text }), []);
    }
    for (const name of ['', '1a', 'a b', 'a'.repeat(65), 'ä', 'a:b']) {
      const [report] = await getSchemaProblems({ [name]: text });
      assert.match(report ?? '', /not an argument name; allowed: a letter or _/, name);
      const [full] = await getSchemaProblems(object({ [name]: {} }));
      assert.match(full ?? '', /not an argument name; allowed: a letter or _/, name);
    }
  });

  it('[behaviour Configuration] rejects impossible locations of an argument', async () => {
    const getFieldProblems = (field: Json, fields: Json = {}) =>
      getProblems({ input_schema: { a: { type: 'string', ...field } }, ...fields });
    const basePath = 'tools[0].input_schema.a';
    assert.deepEqual(await getFieldProblems({ in: 'body' }, { method: 'HEAD' }), [
      `${basePath}.in: a HEAD request has no body; allowed: path, query, header, cookie`,
    ]);
    assert.deepEqual(await getFieldProblems({ in: 'path' }), [
      `${basePath}.in: "path" needs the token :a in the path of url`,
    ]);
    assert.deepEqual(await getFieldProblems({ in: 'header' }, { headers: { A: 'x' } }), [
      `${basePath}: this header is already set by headers, authentication, or another argument`,
    ]);
    const host = await getProblems({ input_schema: { Host: { type: 'string', in: 'header' } } });
    assert.match(host.join(), /^tools\[0\]\.input_schema\.Host: this header is set by the service/);
    const full = object({ a: { type: 'string', in: 'nowhere' } });
    assert.deepEqual(await getProblems({ input_schema: full }), [
      'tools[0].input_schema.properties.a.in: found "nowhere"; allowed: path, query, header, cookie, body',
    ]);
  });

  it('[behaviour Configuration] rejects a body, transform, or response_fields that cannot work', async () => {
    const input_schema = { payload: { type: 'object' }, id: text };
    const post = { method: 'POST', input_schema };
    const problem = async (fields: Json) => (await getProblems({ ...post, ...fields })).join();
    assert.match(await problem({ body: 'paylod' }), /^tools\[0\]\.body: found "paylod"; .*did you mean `payload`\?$/);
    assert.match(await problem({ body: 'payload', method: 'HEAD' }), /^tools\[0\]\.body: a HEAD request has no body/);
    assert.match(
      await problem({ body: 'id', url: 'https://api.example.com/:id' }),
      /^tools\[0\]\.body: "id" is already in the url/,
    );
    const withContentType = (type: string) => ({ headers: { 'Content-Type': type } });
    assert.match(
      await problem({ body: 'form', ...withContentType('application/json') }),
      /^tools\[0\]\.body: "form" contradicts/,
    );
    assert.match(
      await problem({ body: 'multipart', ...withContentType('text/plain') }),
      /^tools\[0\]\.body: "multipart" contradicts/,
    );
    for (const path of ['a..b', 'a.', '..', 'a\\\\.']) {
      assert.match(await problem({ response_transform: path }), /^tools\[0\]\.response_transform: allowed: "\."/, path);
      assert.match(
        await problem({ response_fields: ['ok', path] }),
        /^tools\[0\]\.response_fields\[1\]: allowed: "\."/,
        path,
      );
    }
    assert.match(
      await problem({ response_fields: ['ok', '.'] }),
      /^tools\[0\]\.response_fields\[1\]: names no field; leave/,
    );
    for (const path of ['.', '', 'a', 'a.0.b', '.a', 'a b', 'a\\..b', 'a."".b'])
      assert.equal(await problem({ response_transform: path }), '');
  });

  it('[mcp 32] never fetches a schema from the network', async () => {
    const schemas = [{ $ref: `${upstream.url}/schema` }, { $id: upstream.url }, { $schema: upstream.url }];
    for (const schema of schemas) {
      const input_schema = object({ a: schema });
      assert.equal((await getProblems({ url: upstream.url, input_schema })).length, 1);
    }
    assert.equal(upstream.connections, 0);
  });

  it('[mcp 31] rejects a root that is not an object, an unknown dialect, and an invalid tool name', async () => {
    const basePath = 'tools[0].input_schema';
    assert.deepEqual(await getSchemaProblems({ type: 'array' }), [
      `${basePath}.type: found "array"; allowed: "object"`,
    ]);
    assert.deepEqual(await getSchemaProblems({ $schema: dialect }), [
      `${basePath}.type: found nothing; allowed: "object"`,
    ]);
    const draft7 = 'http://json-schema.org/draft-07/schema#';
    assert.deepEqual(await getSchemaProblems({ $schema: draft7, type: 'object' }), [
      `${basePath}.$schema: unknown dialect "${draft7}"; allowed: "${dialect}", or leave it out`,
    ]);
    assert.deepEqual(await getProblems({ output_schema: text }), [
      'tools[0].output_schema.type: found "string"; allowed: "object"',
    ]);
    assert.match((await getProblems({ name: 'no spaces' })).join(), /^tools\[0\]\.name: found "no spaces"; allowed/);
  });

  it('[mcp 31] rejects an x-mcp-header that is not a token, is used twice, or has an unsupported type or position', async () => {
    const withMirrorHeader = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name });
    assert.deepEqual(
      await getSchemaProblems({ a: withMirrorHeader('Region'), b: withMirrorHeader('Zone', 'integer') }),
      [],
    );
    const problem = async (schema: Json) =>
      (await getSchemaProblems(schema)).join().replace('tools[0].input_schema.', '');
    assert.match(
      await problem({ a: withMirrorHeader('Bad Name') }),
      /^a\.x-mcp-header: found "Bad Name"; allowed: a header name/,
    );
    assert.match(await problem({ a: withMirrorHeader('') }), /^a\.x-mcp-header: found ""; allowed: a header name/);
    assert.match(
      await problem({ a: withMirrorHeader('X'), b: withMirrorHeader('x') }),
      /^b\.x-mcp-header: "x" is used twice/,
    );
    assert.match(
      await problem({ a: withMirrorHeader('X', 'number') }),
      /^a\.x-mcp-header: found on type "number"; allowed/,
    );
    const inItems = object({ a: listOf(withMirrorHeader('X')) });
    assert.match(await problem(inItems), /^properties\.a\.items\.x-mcp-header: only allowed on properties/);
  });

  it('[mcp 31] rejects keywords with invalid values, which would only fail at the first call', async () => {
    const values: Json = {
      type: 'text',
      required: 'a',
      enum: 'a',
      properties: { b: null },
      items: [],
      allOf: {},
      anyOf: [],
      not: 5,
      minimum: '1',
      minLength: -1,
      multipleOf: 0,
      dependentRequired: { a: 'b' },
      examples: {},
      format: 1,
      $defs: [],
    };
    for (const [keyword, value] of Object.entries(values)) {
      const [report, ...more] = await getSchemaProblems(object({ a: { [keyword]: value } }));
      assert.match(
        report ?? '',
        new RegExp(
          `^tools\\[0\\]\\.input_schema\\.properties\\.a\\.${keyword.replace('$', '\\$')}: found .*; allowed: `,
        ),
      );
      assert.deepEqual(more, []);
    }
  });

  it('[conf 5] accepts each name once in response_headers, and no cookie or connection headers', async () => {
    assert.deepEqual(await getProblems({ response_headers: ['Link', 'X-Total-Count', 'etag'] }), []);
    const unsupportedNames: [string, RegExp][] = [
      ['Set-Cookie', /agents never receive this header/],
      ['SET-COOKIE2', /agents never receive this header/],
      ['Connection', /agents never receive this header/],
      ['Transfer-Encoding', /agents never receive this header/],
      ['Proxy-Authenticate', /agents never receive this header/],
      ['X A', /found "X A"; allowed: a header name, such as Link$/],
      ['Link: x', /allowed: a header name/],
      ['Lïnk', /allowed: a header name/],
    ];
    for (const [name, message] of unsupportedNames) {
      const [problem = '', ...more] = await getProblems({ response_headers: ['ETag', name] });
      assert.match(problem, /^tools\[0\]\.response_headers\[1\]: /);
      assert.match(problem, message);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(await getProblems({ response_headers: ['Link', 'link'] }), [
      'tools[0].response_headers[1]: this header is listed twice',
    ]);
    for (const wrong of [[], 'Link', [1], Array.from({ length: 21 }, (_, i) => `X-${i}`)])
      assert.match((await getProblems({ response_headers: wrong })).join(), /^tools\[0\]\.response_headers/);
  });

  it('[conf 5] allows redirects only for GET and HEAD, because other requests must not be sent twice', async () => {
    assert.deepEqual(await getProblems({ redirects: 'follow' }), []);
    assert.deepEqual(await getProblems({ redirects: 'follow', method: 'get' }), []);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.deepEqual(await getProblems({ redirects: 'follow', method }), [
        `tools[0].redirects: found "${method}" as the method; only redirects of GET and HEAD are followed, because other requests must not be sent twice; leave this out`,
      ]);
    }
    assert.match((await getProblems({ redirects: 'always' })).join(), /^tools\[0\]\.redirects: .*allowed: "follow"$/);
  });
});
