import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { getOnlyTool, getValidConfig, listOutcomes, openApi, planDocument } from '../support/import/import-plans.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const responses = { 200: { description: 'ok' } };

/** Returns a document with one operation that takes a body with this schema. */
const withBody = (schema: unknown, mediaType = 'application/json', required = true) =>
  openApi({
    '/things': {
      post: {
        operationId: 'send',
        summary: 'Send something to the API',
        requestBody: { required, content: { [mediaType]: { schema } } },
        responses,
      },
    },
  });

const key = {
  components: { securitySchemes: { k: { type: 'apiKey', in: 'query', name: 'api_key' } } },
  security: [{ k: [] }],
};

/** Returns the argument names of each tool of a document. */
function listArguments(document: Json | string): string[][] {
  return getValidConfig(planDocument(document)).tools.map(({ input_schema: schema }) =>
    Object.keys((schema.type === 'object' ? schema.properties : schema) as Json),
  );
}

describe('imported tool', () => {
  it('[imp 2] has hints derived from the operation, and a read-only import follows them', () => {
    const named = (operationId: string, summary = '') => ({ operationId, summary, responses });
    const paths = {
      '/rides/{id}/cancel': { get: named('rides1', 'One ride') },
      '/a': { get: named('deleteScreenshot'), post: named('orders.revoke') },
      '/b': { get: named('GET_TerminateInstances'), post: named('searchOrders', 'Searches orders') },
      '/c': { get: named('c', 'Sends a message'), post: named('search_create') },
      '/orders/search': { post: named('o') },
      '/d': { get: named('listDeletedOrders', 'List of removed orders'), delete: named('d2'), post: named('lists') },
    };
    const hints = getValidConfig(planDocument(openApi(paths))).tools.map(({ name, annotations }) => [
      name,
      annotations?.readOnlyHint,
      annotations?.destructiveHint,
    ]);
    assert.deepEqual(hints, [
      ['rides1', false, true],
      ['delete_screenshot', false, true],
      ['orders_revoke', undefined, true],
      ['get_terminate_instances', false, true],
      ['search_orders', true, undefined],
      ['c', false, false],
      ['search_create', undefined, undefined],
      ['o', true, undefined],
      ['list_deleted_orders', undefined, undefined],
      ['d2', undefined, undefined],
      ['lists', undefined, undefined],
    ]);
    const { chosen } = planDocument(openApi(paths), { include: ['*'], readOnly: true });
    assert.deepEqual(
      chosen.map(({ name }) => name),
      ['search_orders', 'o', 'list_deleted_orders'],
    );
  });

  it('[imp 2] has a name that fits Claude Code together with the server slug', () => {
    for (const title of [
      'Amazon Elastic Compute Cloud',
      'Internationalization',
      'ab',
      'Äö',
      'Health API',
      'x-y-z-1-2-3-4',
    ]) {
      for (const operationId of ['list_resource_record_set_change_batches_for_zone', 'a'.repeat(80), 'get']) {
        const info = { title, version: '1' };
        const { slug, tools } = getValidConfig(
          planDocument(openApi({ '/x': { get: { operationId, responses } } }, { info })),
        );
        const displayedName = `mcp__${slug}__${tools[0]?.name}`;
        assert.ok(displayedName.length <= 64, displayedName);
      }
    }
    const { slug } = getValidConfig(planDocument(openApi({ '/x': { get: { operationId: 'get', responses } } })));
    assert.equal(slug, 'things');
  });

  it('[imp 2] lists the discriminator values, and the fields of each, at every level', () => {
    const petType = { type: 'string' };
    const kind = (name: string, more: Json) => ({ type: 'object', properties: { ...more, [name]: petType } });
    const schemas = {
      Pet: {
        ...kind('petType', {}),
        required: ['petType'],
        discriminator: { propertyName: 'petType', mapping: { cat: '#/components/schemas/Cat' } },
        oneOf: [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Dog' }],
      },
      Cat: kind('petType', { lives: { type: 'integer' } }),
      Dog: kind('petType', { barks: { type: 'boolean' } }),
    };
    const pet = { $ref: '#/components/schemas/Pet' };
    const toolTexts = [pet, { type: 'object', properties: { pet } }, { type: 'array', items: pet }].map((schema) => {
      const { requestBody } = { requestBody: { required: true, content: { 'application/json': { schema } } } };
      return JSON.stringify(
        getOnlyTool(openApi({ '/a': { post: { requestBody, responses } } }, { components: { schemas } })),
      );
    });
    for (const text of toolTexts) {
      assert.match(text, /"lives":\{"type":"integer"\},"petType":\{"type":"string","enum":\["cat"\]\}/);
      assert.match(text, /"barks":\{"type":"boolean"\},"petType":\{"type":"string","enum":\["Dog"\]\}/);
    }
    const inherited = {
      Pet: { ...kind('petType', {}), required: ['petType'], discriminator: { propertyName: 'petType' } },
      Cat: { allOf: [pet, kind('petType', { lives: { type: 'integer' } })] },
      Dog: { allOf: [pet, kind('petType', { barks: { type: 'boolean' } })] },
    };
    for (const mediaType of ['application/x-www-form-urlencoded', 'multipart/form-data'])
      for (const [schemaSet, values] of [
        [schemas, ['cat', 'Dog']],
        [inherited, ['Cat', 'Dog']],
      ] as const) {
        const requestBody = { required: true, content: { [mediaType]: { schema: pet } } };
        const document = openApi(
          { '/a': { post: { requestBody, responses } } },
          { components: { schemas: schemaSet } },
        );
        const text = JSON.stringify(getOnlyTool(document));
        assert.ok(text.includes(`"petType":{"type":"string","enum":${JSON.stringify(values)}`), text);
        assert.match(text, /"lives".*"barks"/);
      }
  });

  it('[imp 3] includes every operation of a path that is written twice, and the plan reports what was replaced', () => {
    const yaml = `openapi: 3.0.3
info: { title: Twice, version: "1" }
servers: [{ url: https://twice.example.com }]
paths:
  /a:
    get: { operationId: readA, summary: Read a, responses: { "200": { description: ok } } }
  /b:
    get: { operationId: readB, summary: Read b, responses: { "200": { description: ok } } }
  /a:
    post: { operationId: writeA, summary: Write a, responses: { "200": { description: ok } } }
    post: { operationId: addA, summary: Add an a, responses: { "200": { description: ok } } }
`;
    const plan = planDocument(yaml);
    assert.deepEqual(
      plan.all.map(({ name }) => name),
      ['read_a', 'add_a', 'read_b'],
    );
    assert.deepEqual(plan.findings, [
      { at: 'paths./a', message: 'is written twice; both are merged' },
      { at: 'post', message: 'is written twice; the last one is used' },
    ]);
    const twice = JSON.stringify(openApi({ '/a': { get: { responses } }, '/b': { get: { responses } } }));
    assert.deepEqual(planDocument(twice).findings, []);
    assert.deepEqual(planDocument(twice.replace('"/b"', '"/a"')).findings, [
      { at: 'document', message: 'an object contains the same name twice, such as a path; the last one is used' },
    ]);
  });

  it('[imp 2] takes a token as an argument, unless it is the credential or a parameter of most operations', () => {
    const form = (properties: Json) => ({
      requestBody: { content: { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties } } } },
      responses,
    });
    const revoked = { type: 'string', description: 'The access token to revoke' };
    const tracker = { type: 'string', description: 'The authentication token' };
    const query = (name: string) => ({
      parameters: [{ name, in: 'query', schema: revoked, description: 'Access token of a device' }],
      responses,
    });
    const paths = {
      '/revoke': { post: form({ client_id: { type: 'string' }, token: revoked, api_key: revoked }) },
      '/tracker': { put: form({ token: tracker, subdomain: { type: 'string' } }) },
      '/devices': { get: query('token') },
      '/keys': { get: query('api_key') },
    };
    const expected = [['client_id', 'token'], ['token', 'subdomain'], ['token'], []];
    assert.deepEqual(listArguments(openApi(paths, key)), expected);
    const oauth = { type: 'http', scheme: 'bearer' };
    const listed = { '/a': { get: query('token') }, '/b': { get: query('token') }, '/c': { get: query('token') } };
    const fields = { components: { securitySchemes: { oauth } }, security: [{ oauth: [] }] };
    assert.deepEqual(listArguments(openApi(listed, fields)), [[], [], []]);
  });
});

describe('request of an imported tool', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let count = 0;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  /** Returns the request of the first tool of a document. */
  async function callFirstTool(document: Json | string, args: Json) {
    const slug = `lost-${++count}`;
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    const body = { mode: 'create', document: text, include: ['*'], server: upstream.url, slug };
    const created = await toolhost.rest('POST', '/import', { body });
    assert.equal(created.status, 200, created.text.slice(0, 500));
    const { config } = (await toolhost.rest('GET', `/servers/${slug}`)).body as {
      config: { tools: { name: string }[] };
    };
    upstream.take();
    const result = await toolhost.callTool(slug, 'caller-token', config.tools[0]?.name ?? '', args);
    const [request] = upstream.take();
    return request ?? assert.fail(JSON.stringify(result.content));
  }

  it('[imp 2] encodes a string body as JSON, and sends a JSON content type', async () => {
    const cases: [unknown, string][] = [
      [{ type: 'string' }, 'application/json'],
      [{ type: 'string' }, 'text/json'],
      [{ type: ['string', 'null'] }, 'application/merge-patch+json'],
      [{ anyOf: [{ type: 'string' }, { type: 'object', properties: { a: { type: 'string' } } }] }, 'application/json'],
    ];
    for (const [schema, mediaType] of cases) {
      const sent = await callFirstTool(withBody(schema, mediaType), { body: 'hello' });
      assert.deepEqual([sent.body.toString(), sent.headers['content-type']], ['"hello"', mediaType], mediaType);
    }
    const collection = {
      info: { name: 'Echo' },
      item: [
        {
          name: 'Say',
          request: { method: 'POST', url: 'https://a.example.com/say', body: { mode: 'raw', raw: '<a/>' } },
        },
      ],
    };
    const sent = await callFirstTool(collection, { body: '<b/>' });
    assert.deepEqual([sent.body.toString(), sent.headers['content-type']], ['<b/>', 'text/plain']);
  });

  it('[imp 2] takes an unspecified body as an argument, also as a file, and never drops it', async () => {
    const open = { type: 'object', description: 'Depends on the workflow', properties: {} };
    for (const schema of [open, { ...open, required: ['state'] }, { type: 'object' }, {}]) {
      const { body } = await callFirstTool(withBody(schema), { body: { state: 'done' } });
      assert.deepEqual(JSON.parse(body.toString()), { state: 'done' }, JSON.stringify(schema));
    }
    for (const schema of [
      { type: 'object', additionalProperties: false },
      { type: 'object', properties: { id: { type: 'string', readOnly: true } } },
    ])
      assert.equal((await callFirstTool(withBody(schema), {})).body.toString(), '{}');
    const form = 'application/x-www-form-urlencoded';
    for (const schema of [open, {}, { type: 'object', additionalProperties: { type: 'string' } }]) {
      const { body } = await callFirstTool(withBody(schema, form), { fields: { a: 'b c', d: 1 } });
      assert.equal(body.toString(), 'a=b%20c&d=1', JSON.stringify(schema));
    }
    const some = { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: true };
    assert.equal(
      (await callFirstTool(withBody(some, form), { a: 'b', fields: { c: 'd' } })).body.toString(),
      'a=b&c=d',
    );
    const file = { type: 'string', format: 'binary' };
    for (const [schema, argument] of [
      [file, 'aGVsbG8='],
      [{ type: 'array', items: file }, ['aGVsbG8=']],
    ]) {
      const { body } = await callFirstTool(withBody(schema, 'multipart/form-data'), {
        file: argument,
        file_name: 'a.txt',
      });
      assert.match(body.toString(), /name="file"; filename="a\.txt"[\s\S]*\r\n\r\nhello\r\n/);
    }
    const untyped = { '/a': { post: { requestBody: { required: true }, responses } } };
    assert.deepEqual(listOutcomes(openApi(untyped)), ['POST /a: skipped; a body without a type']);
  });

  it('[conf 1] serializes a parameter in its style, whichever of its alternatives is passed', async () => {
    const createAlternative = (name: string) => ({
      type: 'object',
      required: [name],
      properties: { [name]: { type: 'string' } },
    });
    const filter = { type: 'object', oneOf: [createAlternative('user_id'), createAlternative('email')] };
    const list = { type: 'array', items: { type: 'string' } };
    const cases: [Json, unknown, string][] = [
      [{ schema: filter, style: 'form', explode: true }, { user_id: 'a' }, 'user_id=a'],
      [{ schema: { anyOf: [{ $ref: '#/components/schemas/Filter' }, { type: 'string' }] } }, { email: 'a' }, 'email=a'],
      [{ schema: { anyOf: [{ $ref: '#/components/schemas/Filter' }, { type: 'string' }] } }, 'all', 'filter=all'],
      [{ schema: filter, explode: false }, { email: 'a' }, 'filter=email,a'],
      [{ schema: filter, style: 'deepObject' }, { email: 'a' }, 'filter[email]=a'],
      [{ schema: { oneOf: [{ type: 'string' }, list] }, explode: false }, ['a', 'b'], 'filter=a,b'],
      [{ schema: { oneOf: [{ type: 'string' }, list] } }, ['a', 'b'], 'filter=a&filter=b'],
    ];
    for (const [parameter, value, expected] of cases) {
      const parameters = [{ name: 'filter', in: 'query', required: true, ...parameter }];
      const components = { schemas: { Filter: filter } };
      const sent = await callFirstTool(openApi({ '/events': { get: { parameters, responses } } }, { components }), {
        filter: value,
      });
      assert.equal(decodeURIComponent(sent.url), `/events?${expected}`, JSON.stringify(parameter));
    }
  });
});
