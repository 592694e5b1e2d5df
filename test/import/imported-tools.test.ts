import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getOnlyTool, getValidConfig, listOutcomes, openApi, planDocument } from '../support/import/import-plans.ts';
import { startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import { boolean, integer, listOf, object, query, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const formType = 'application/x-www-form-urlencoded';
const responses = { 200: { description: 'ok' } };
const planTools = (paths: Json, fields?: Json) => getValidConfig(planDocument(openApi(paths, fields))).tools;

/** Returns a document with one operation that takes a body with this schema. */
const withBody = (schema: unknown, mediaType = 'application/json', schemas: Json = {}) => {
  const requestBody = { required: true, content: { [mediaType]: { schema } } };
  return openApi({ '/things': { post: { operationId: 'send', requestBody } } }, { components: { schemas } });
};

/** Returns the argument names of each tool. */
const listArguments = (tools: ReturnType<typeof planTools>) =>
  tools.map(({ input_schema: schema }) => Object.keys((schema.type === 'object' ? schema.properties : schema) as Json));

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
    const hints = planTools(paths).map(({ name, annotations: { readOnlyHint, destructiveHint } = {} }) => [
      ...[name, readOnlyHint, destructiveHint],
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
    assert.deepEqual(pluck(chosen, 'name'), ['search_orders', 'o', 'list_deleted_orders']);
  });

  it('[imp 2] has the name of the function, without the path and the method that FastAPI appends to it', () => {
    const paths = {
      '/orders/': { get: { operationId: 'list_orders_orders__get' }, post: { operationId: 'orders__post' } },
      '/orders/{orderId}': { get: { operationId: 'read_order_orders__orderId__get' }, delete: { operationId: 'get' } },
      '/': { get: { operationId: 'root__get' } },
      '/about': { get: { operationId: 'drive.about.get' } },
    };
    const names = pluck(planTools(paths), 'name');
    assert.deepEqual(names, ['list_orders', 'orders_post', 'read_order', 'get', 'root', 'drive_about_get']);
  });

  it('[imp 2] has a name that fits Claude Code together with the server slug', () => {
    const titles = ['Amazon Elastic Compute Cloud', 'Internationalization', 'ab', 'Äö', 'Health API', 'x-y-z-1-2-3-4'];
    const plan = (operationId: string, fields?: Json) =>
      getValidConfig(planDocument(openApi({ '/x': { get: { operationId, responses } } }, fields)));
    for (const title of titles) {
      for (const operationId of ['list_resource_record_set_change_batches_for_zone', 'a'.repeat(80), 'get']) {
        const { slug, tools } = plan(operationId, { info: { title, version: '1' } });
        const displayedName = `mcp__${slug}__${tools[0]?.name}`;
        assert.ok(displayedName.length <= 64, displayedName);
      }
    }
    assert.equal(plan('get').slug, 'things');
  });

  it('[imp 2] lists the discriminator values, and the fields of each, at every level', () => {
    const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    const lives = object({ lives: integer, petType: text });
    const barks = object({ barks: boolean, petType: text });
    const base = object({ petType: text }, ['petType']);
    const schemas = {
      Pet: {
        ...base,
        discriminator: { propertyName: 'petType', mapping: { cat: reference('Cat').$ref } },
        oneOf: [reference('Cat'), reference('Dog')],
      },
      Cat: lives,
      Dog: barks,
    };
    const pet = reference('Pet');
    const writeTool = (schema: Json, mediaType?: string, all: Json = schemas) =>
      JSON.stringify(getOnlyTool(withBody(schema, mediaType, all)));
    for (const schema of [pet, object({ pet }), listOf(pet)]) {
      const tool = writeTool(schema);
      assert.match(tool, /"lives":\{"type":"integer"\},"petType":\{"type":"string","enum":\["cat"\]\}/);
      assert.match(tool, /"barks":\{"type":"boolean"\},"petType":\{"type":"string","enum":\["Dog"\]\}/);
    }
    const inherited = {
      Pet: { ...base, discriminator: { propertyName: 'petType' } },
      Cat: { allOf: [pet, lives] },
      Dog: { allOf: [pet, barks] },
    };
    for (const mediaType of [formType, 'multipart/form-data'])
      for (const [all, values] of [
        [schemas, '["cat","Dog"]'],
        [inherited, '["Cat","Dog"]'],
      ] as const) {
        const tool = writeTool(pet, mediaType, all);
        assert.ok(tool.includes(`"petType":{"type":"string","enum":${values}`), tool);
        assert.match(tool, /"lives".*"barks"/);
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
    assert.deepEqual(pluck(plan.all, 'name'), ['read_a', 'add_a', 'read_b']);
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
    const form = (properties: Json) => ({ requestBody: { content: { [formType]: { schema: object(properties) } } } });
    const revoked = { ...text, description: 'The access token to revoke' };
    const tracker = { ...text, description: 'The authentication token' };
    const get = (name: string) => ({
      get: { parameters: [query(name, revoked, { description: 'Access token of a device' })] },
    });
    const paths = {
      '/revoke': { post: form({ client_id: text, token: revoked, api_key: revoked }) },
      '/tracker': { put: form({ token: tracker, subdomain: text }) },
      '/devices': get('token'),
      '/keys': get('api_key'),
    };
    const withScheme = (scheme: Json) => ({ components: { securitySchemes: { k: scheme } }, security: [{ k: [] }] });
    const tools = planTools(paths, withScheme({ type: 'apiKey', in: 'query', name: 'api_key' }));
    assert.deepEqual(listArguments(tools), [['client_id', 'token'], ['token', 'subdomain'], ['token'], []]);
    const listed = { '/a': get('token'), '/b': get('token'), '/c': get('token') };
    assert.deepEqual(listArguments(planTools(listed, withScheme({ type: 'http', scheme: 'bearer' }))), [[], [], []]);
  });
});

describe('request of an imported tool', () => {
  const imports = useFixture(startImports);

  /** Returns the request of the first tool of a document. */
  async function callFirstTool(document: Json, args: Json) {
    const { names, callTool } = await imports.importDocument(JSON.stringify(document));
    const { url, body, headers } = await callTool(String(names[0]), args);
    return { url, body: body.toString(), type: headers['content-type'] };
  }

  it('[imp 2] has no credential for a public operation, which FastAPI generates without security', async () => {
    const get = (operationId: string, fields?: Json) => ({ get: { operationId, responses, ...fields } });
    const security = [{ key: [] }];
    const components = { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } };
    const fastApi = {
      '/orders': get('list_orders_orders_get', { security }),
      '/health': get('get_health_health_get'),
      '/token': get('get_token_token_get', { security: [] }),
    };
    const { callTool } = await imports.importDocument(JSON.stringify(openApi(fastApi, { components })));
    const getCredential = async (tool: string) => (await callTool(tool)).headers.authorization;
    assert.equal(await getCredential('list_orders'), 'Bearer the-secret');
    assert.deepEqual([await getCredential('get_health'), await getCredential('get_token')], [undefined, undefined]);
    const paths = { '/orders': get('listOrders', { security }), '/account': get('getAccount') };
    const planCredentials = (fields: Json) => pluck(planTools(paths, fields), 'credential');
    assert.deepEqual(planCredentials({ components }), [undefined, undefined]);
    const schemas = { HTTPValidationError: object({}) };
    assert.deepEqual(planCredentials({ components: { ...components, schemas } }), [undefined, 'none']);
    assert.deepEqual(planCredentials({ components: { ...components, schemas }, security }), [undefined, undefined]);
  });

  it('[imp 2] encodes a string body as JSON, and sends a JSON content type', async () => {
    const cases: [unknown, string][] = [
      [text, 'application/json'],
      [text, 'text/json'],
      [{ type: ['string', 'null'] }, 'application/merge-patch+json'],
      [{ anyOf: [text, object({ a: text })] }, 'application/json'],
    ];
    for (const [schema, mediaType] of cases) {
      const { body, type } = await callFirstTool(withBody(schema, mediaType), { body: 'hello' });
      assert.deepEqual([body, type], ['"hello"', mediaType]);
    }
    const say = { method: 'POST', url: 'https://a.example.com/say', body: { mode: 'raw', raw: '<a/>' } };
    const collection = { info: { name: 'Echo' }, item: [{ name: 'Say', request: say }] };
    const { body, type } = await callFirstTool(collection, { body: '<b/>' });
    assert.deepEqual([body, type], ['<b/>', 'text/plain']);
  });

  it('[imp 2] takes an unspecified body as an argument, also as a file, and never drops it', async () => {
    const open = { ...object({}), description: 'Depends on the workflow' };
    const map = { type: 'object', additionalProperties: text };
    const file = { ...text, format: 'binary' };
    const done = { body: { state: 'done' } };
    type Case = [mediaType: string, schema: Json, args: Json, sent: string];
    const cases: Case[] = [
      ...[open, { ...open, required: ['state'] }, { type: 'object' }, {}].map(
        (schema): Case => ['application/json', schema, done, '{"state":"done"}'],
      ),
      ['application/json', { type: 'object', additionalProperties: false }, {}, '{}'],
      ['application/json', object({ id: { ...text, readOnly: true } }), {}, '{}'],
      ...[open, {}, map].map((schema): Case => [formType, schema, { fields: { a: 'b c', d: 1 } }, 'a=b%20c&d=1']),
      [formType, { ...object({ a: text }), additionalProperties: true }, { a: 'b', fields: { c: 'd' } }, 'a=b&c=d'],
    ];
    for (const [mediaType, schema, args, sent] of cases)
      assert.equal((await callFirstTool(withBody(schema, mediaType), args)).body, sent, JSON.stringify(schema));
    for (const [schema, content] of [
      [file, 'aGVsbG8='],
      [listOf(file), ['aGVsbG8=']],
    ] as const) {
      const { body } = await callFirstTool(withBody(schema, 'multipart/form-data'), {
        file: content,
        file_name: 'a.txt',
      });
      assert.match(body, /name="file"; filename="a\.txt"[\s\S]*\r\n\r\nhello\r\n/);
    }
    const untyped = { '/a': { post: { requestBody: { required: true }, responses } } };
    assert.deepEqual(listOutcomes(openApi(untyped)), ['POST /a: skipped; a body without a type']);
  });

  it('[conf 1] serializes a parameter in its style, whichever of its alternatives is passed', async () => {
    const createAlternative = (name: string) => object({ [name]: text }, [name]);
    const filter = { type: 'object', oneOf: [createAlternative('user_id'), createAlternative('email')] };
    const orText = { anyOf: [{ $ref: '#/components/schemas/Filter' }, text] };
    const list = listOf(text);
    const cases: [Json, unknown, string][] = [
      [{ schema: filter, style: 'form', explode: true }, { user_id: 'a' }, 'user_id=a'],
      [{ schema: orText }, { email: 'a' }, 'email=a'],
      [{ schema: orText }, 'all', 'filter=all'],
      [{ schema: filter, explode: false }, { email: 'a' }, 'filter=email,a'],
      [{ schema: filter, style: 'deepObject' }, { email: 'a' }, 'filter[email]=a'],
      [{ schema: { oneOf: [text, list] }, explode: false }, ['a', 'b'], 'filter=a,b'],
      [{ schema: { oneOf: [text, list] } }, ['a', 'b'], 'filter=a&filter=b'],
    ];
    for (const [parameter, value, expected] of cases) {
      const get = { parameters: [{ name: 'filter', in: 'query', required: true, ...parameter }] };
      const document = openApi({ '/events': { get } }, { components: { schemas: { Filter: filter } } });
      const { url } = await callFirstTool(document, { filter: value });
      assert.equal(decodeURIComponent(url), `/events?${expected}`, JSON.stringify(parameter));
    }
  });
});
