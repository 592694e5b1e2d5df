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
  const assertProblems = async (fields: Json, ...expected: string[]) =>
    assert.deepEqual(
      await getProblems(fields),
      expected.map((line) => `tools[0].${line}`),
      JSON.stringify(fields),
    );
  /** Checks that a tool has one problem, and what it says. */
  const assertProblem = async (fields: Json, pattern: RegExp) => {
    const [problem = '', ...more] = await getProblems(fields);
    assert.match(problem, pattern, JSON.stringify(fields));
    assert.deepEqual(more, []);
  };
  const assertSchema = (input_schema: Json, ...expected: string[]) =>
    assertProblems({ method: 'POST', input_schema }, ...expected.map((line) => `input_schema.${line}`));

  it('[behaviour Configuration] converts a flat input_schema into a closed JSON Schema object', async () => {
    const input_schema = {
      id: { type: 'string', description: 'Its id', in: 'query', format: 'uuid', examples: ['a'] },
      count: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
      size: { type: 'number', optional: true, enum: [1, 2.5] },
      type: { type: 'object', optional: true, properties: { a: boolean }, required: ['a'] },
      tags: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 5 }, optional: true },
    };
    await toolhost.createServer(buildServerConfig({ slug: 'flat-map', tools: [buildToolConfig({ input_schema })] }));
    const { body } = await toolhost.rpc('flat-map', 'token', 'tools/list');
    assert.deepEqual((body.result as { tools: Json[] }).tools[0]?.inputSchema, {
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
    const types = ['string', 'number', 'integer', 'boolean', 'array', 'object'];
    const allowed = `allowed: ${types.map((type) => `"${type}"`).join(', ')}`;
    for (const type of types) await assertSchema({ a: { type } });
    const cases: [Json, string][] = [
      [{ type: 'date' }, `a.type: found "date"; ${allowed}`],
      [{}, `a.type: found nothing; ${allowed}`],
      [{ type: 'string', optional: 'yes' }, 'a.optional: found "yes"; allowed: a boolean'],
      [{ type: 'string', minLength: -1 }, 'a.minLength: found -1; allowed: at least 0'],
      [
        { type: 'string', in: 'nowhere' },
        'a.in: found "nowhere"; allowed: "path", "query", "header", "cookie", "body"',
      ],
      [{ type: 'object', required: true }, 'a.required: found true; allowed: an array'],
      [{ type: 'integer', default: 'x' }, 'a.default: found a value that is not of type integer'],
      [{ type: 'string', enum: ['x', 5] }, 'a.enum[1]: found a value that is not of type string'],
      [listOf({ type: 'text' }), `a.items.type: found "text"; ${allowed}`],
    ];
    for (const [field, report] of cases) await assertSchema({ a: field }, report);
  });

  it('[behaviour Configuration] rejects $ref and every other keyword in a flat map', async () => {
    for (const keyword of ['patternProperties', '$ref', 'oneOf', 'uniqueItems', '$id', 'title', 'optionl']) {
      const report = new RegExp(`^tools\\[0\\]\\.input_schema\\.a\\.${keyword.replace('$', '\\$')}: unknown field`);
      await assertProblem({ method: 'POST', input_schema: { a: { ...text, [keyword]: 'x' } } }, report);
    }
    const misspelled = { a: { ...text, optionl: true } };
    await assertProblem({ method: 'POST', input_schema: misspelled }, /did you mean `optional`\?$/);
  });

  it('[behaviour Configuration] accepts argument names of letters, digits, _ . - [ ] that begin with a letter or _', async () => {
    const inherited = ['toString', 'constructor', 'prototype'];
    for (const name of ['a', '_a', 'user.name', 'ids[]', 'x-y', 'a'.repeat(64), ...inherited])
      await assertSchema({ [name]: text });
    for (const name of ['', '1a', 'a b', 'a'.repeat(65), 'ä', 'a:b']) {
      const [report] = await getSchemaProblems({ [name]: text });
      assert.match(report ?? '', /not an argument name; allowed: a letter or _/, name);
      const [full] = await getSchemaProblems(object({ [name]: {} }));
      assert.match(full ?? '', /not an argument name; allowed: a letter or _/, name);
    }
  });

  it('[behaviour Configuration] rejects impossible locations of an argument', async () => {
    const assertField = (field: Json, fields: Json, problem: string) =>
      assertProblems({ input_schema: { a: { ...text, ...field } }, ...fields }, `input_schema.a${problem}`);
    const inHead = '.in: a HEAD request has no body; allowed: path, query, header, cookie';
    const twice = ': this header is already set by headers, authentication, or another argument';
    await assertField({ in: 'body' }, { method: 'HEAD' }, inHead);
    await assertField({ in: 'path' }, {}, '.in: "path" needs the token :a in the path of url');
    await assertField({ in: 'header' }, { headers: { A: 'x' } }, twice);
    const host = await getProblems({ input_schema: { Host: { ...text, in: 'header' } } });
    assert.match(host.join(), /^tools\[0\]\.input_schema\.Host: this header is set by the service/);
    await assertProblems(
      { input_schema: object({ a: { ...text, in: 'nowhere' } }) },
      'input_schema.properties.a.in: found "nowhere"; allowed: path, query, header, cookie, body',
    );
  });

  it('[behaviour Configuration] rejects a body, transform, or response_fields that cannot work', async () => {
    const input_schema = { payload: { type: 'object' }, id: text };
    const post = { method: 'POST', input_schema };
    const withContentType = (type: string) => ({ headers: { 'Content-Type': type } });
    const cases: [fields: Json, problem: RegExp][] = [
      [{ body: 'paylod' }, /^tools\[0\]\.body: found "paylod"; .*did you mean `payload`\?$/],
      [{ body: 'payload', method: 'HEAD' }, /^tools\[0\]\.body: a HEAD request has no body/],
      [{ body: 'id', url: 'https://api.example.com/:id' }, /^tools\[0\]\.body: "id" is already in the url/],
      [{ body: 'form', ...withContentType('application/json') }, /^tools\[0\]\.body: "form" contradicts/],
      [{ body: 'multipart', ...withContentType('text/plain') }, /^tools\[0\]\.body: "multipart" contradicts/],
      ...['a..b', 'a.', '..', 'a\\\\.'].flatMap((path): [Json, RegExp][] => [
        [{ response_transform: path }, /^tools\[0\]\.response_transform: allowed: "\."/],
        [{ response_fields: ['ok', path] }, /^tools\[0\]\.response_fields\[1\]: allowed: "\."/],
      ]),
      [{ response_fields: ['ok', '.'] }, /^tools\[0\]\.response_fields\[1\]: names no field; leave/],
    ];
    for (const [fields, problem] of cases)
      assert.match((await getProblems({ ...post, ...fields })).join(), problem, JSON.stringify(fields));
    for (const path of ['.', '', 'a', 'a.0.b', '.a', 'a b', 'a\\..b', 'a."".b'])
      await assertProblems({ ...post, response_transform: path });
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
    await assertSchema({ type: 'array' }, 'type: found "array"; allowed: "object"');
    await assertSchema({ $schema: dialect }, 'type: found nothing; allowed: "object"');
    const draft7 = 'http://json-schema.org/draft-07/schema#';
    const unknown = `$schema: unknown dialect "${draft7}"; allowed: "${dialect}", or leave it out`;
    await assertSchema({ $schema: draft7, type: 'object' }, unknown);
    await assertProblems({ output_schema: text }, 'output_schema.type: found "string"; allowed: "object"');
    assert.match((await getProblems({ name: 'no spaces' })).join(), /^tools\[0\]\.name: found "no spaces"; allowed/);
  });

  it('[mcp 31] rejects an x-mcp-header that is not a token, is used twice, or has an unsupported type or position', async () => {
    const withMirrorHeader = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name });
    await assertSchema({ a: withMirrorHeader('Region'), b: withMirrorHeader('Zone', 'integer') });
    const cases: [schema: Json, problem: RegExp][] = [
      [{ a: withMirrorHeader('Bad Name') }, /^a\.x-mcp-header: found "Bad Name"; allowed: a header name/],
      [{ a: withMirrorHeader('') }, /^a\.x-mcp-header: found ""; allowed: a header name/],
      [{ a: withMirrorHeader('X'), b: withMirrorHeader('x') }, /^b\.x-mcp-header: "x" is used twice/],
      [{ a: withMirrorHeader('X', 'number') }, /^a\.x-mcp-header: found on type "number"; allowed/],
      [object({ a: listOf(withMirrorHeader('X')) }), /^properties\.a\.items\.x-mcp-header: only allowed on properties/],
    ];
    for (const [schema, problem] of cases) {
      const problems = (await getSchemaProblems(schema)).join();
      assert.match(problems.replace('tools[0].input_schema.', ''), problem);
    }
  });

  it('[mcp 31] rejects keywords with invalid values, which would only fail at the first call', async () => {
    const values: Json = {
      ...{ type: 'text', required: 'a', enum: 'a', properties: { b: null }, items: [], allOf: {}, anyOf: [], not: 5 },
      ...{ minimum: '1', minLength: -1, multipleOf: 0, dependentRequired: { a: 'b' }, examples: {}, format: 1 },
      $defs: [],
    };
    for (const [keyword, value] of Object.entries(values)) {
      const path = `properties\\.a\\.${keyword.replace('$', '\\$')}`;
      const report = new RegExp(`^tools\\[0\\]\\.input_schema\\.${path}: found .*; allowed: `);
      await assertProblem({ method: 'POST', input_schema: object({ a: { [keyword]: value } }) }, report);
    }
  });

  it('[conf 5] accepts each name once in response_headers, and no cookie or connection headers', async () => {
    await assertProblems({ response_headers: ['Link', 'X-Total-Count', 'etag'] });
    const cases: [name: string, message: string][] = [
      ...['Set-Cookie', 'SET-COOKIE2', 'Connection', 'Transfer-Encoding', 'Proxy-Authenticate'].map(
        (name): [string, string] => [name, '.*agents never receive this header'],
      ),
      ['X A', '.*found "X A"; allowed: a header name, such as Link$'],
      ['Link: x', '.*allowed: a header name'],
      ['Lïnk', '.*allowed: a header name'],
    ];
    for (const [name, message] of cases) {
      const problem = new RegExp(`^tools\\[0\\]\\.response_headers\\[1\\]: ${message}`);
      await assertProblem({ response_headers: ['ETag', name] }, problem);
    }
    await assertProblems({ response_headers: ['Link', 'link'] }, 'response_headers[1]: this header is listed twice');
    for (const wrong of [[], 'Link', [1], Array.from({ length: 21 }, (_, i) => `X-${i}`)])
      assert.match((await getProblems({ response_headers: wrong })).join(), /^tools\[0\]\.response_headers/);
  });

  it('[conf 5] allows redirects only for GET and HEAD, because other requests must not be sent twice', async () => {
    await assertProblems({ redirects: 'follow' });
    await assertProblems({ redirects: 'follow', method: 'get' });
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      await assertProblems(
        { redirects: 'follow', method },
        `redirects: found "${method}" as the method; only redirects of GET and HEAD are followed, because other requests must not be sent twice; leave this out`,
      );
    assert.match((await getProblems({ redirects: 'always' })).join(), /^tools\[0\]\.redirects: .*allowed: "follow"$/);
  });
});
