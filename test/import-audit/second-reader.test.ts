import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compareRequests } from './compare.ts';
import type { JsonObject } from './json.ts';
import { createRandom } from './random.ts';
import { findLosses } from './reader/expected-outcome.ts';
import { buildExpectedRequest, type Inputs } from './reader/expected-request.ts';
import { type Operation, readOperations } from './reader/operations.ts';
import { createSchemas } from './reader/schemas.ts';
import { createValueMaker, type Value } from './values.ts';
import { readRequest, type WireRequest } from './wire.ts';

/** Reads the operation of a document with a single operation. */
function readOperation(operation: JsonObject, path = '/a', openapi = '3.1.1'): Operation {
  const [read] = readOperations({ openapi, paths: { [path]: { post: operation } } });
  assert.ok(read);
  return read;
}

function buildWith(parameter: JsonObject, value: Value): WireRequest {
  const operation = readOperation({ parameters: [parameter] }, parameter.in === 'path' ? '/a/{color}' : '/a');
  return buildExpectedRequest(operation, '', { parameters: new Map(operation.parameters.map((one) => [one, value])) });
}

const list = ['blue', 'black'];
const map = { R: 100, G: 200 };

describe('second reader of the audit', () => {
  it('serializes parameters as in the examples of OpenAPI 3.1.1 [imp 2]', () => {
    const paths: [JsonObject, Value, string][] = [
      [{ style: 'simple' }, list, 'blue,black'],
      [{ style: 'simple', explode: true }, map, 'R=100,G=200'],
      [{ style: 'label' }, list, '.blue,black'],
      [{ style: 'label', explode: true }, map, '.R=100.G=200'],
      [{ style: 'matrix' }, list, ';color=blue,black'],
      [{ style: 'matrix', explode: true }, list, ';color=blue;color=black'],
      [{ style: 'matrix' }, map, ';color=R,100,G,200'],
    ];
    for (const [style, value, expected] of paths)
      assert.equal(buildWith({ name: 'color', in: 'path', ...style }, value).path, `/a/${expected}`);
    const queries: [JsonObject, Value, string][] = [
      [{}, list, 'color=blue&color=black'],
      [{ explode: false }, list, 'color=blue,black'],
      [{}, map, 'R=100&G=200'],
      [{ explode: false }, map, 'color=R,100,G,200'],
      [{ style: 'spaceDelimited', explode: false }, list, 'color=blue%20black'],
      [{ style: 'pipeDelimited', explode: false }, list, 'color=blue%7Cblack'],
      [{ style: 'deepObject', explode: true }, map, 'color%5BR%5D=100&color%5BG%5D=200'],
      [{ content: { 'application/json': {} } }, map, 'color=%7B%22R%22%3A100%2C%22G%22%3A200%7D'],
    ];
    for (const [style, value, expected] of queries) {
      const { query } = buildWith({ name: 'color', in: 'query', ...style }, value);
      assert.equal(query.map((pair) => pair.join('=')).join('&'), expected);
    }
  });

  it('serializes bodies by media type and encoding [imp 2]', () => {
    const build = (mediaType: string, media: JsonObject, value: Value) => {
      const operation = readOperation({ requestBody: { content: { [mediaType]: media } } });
      const [definition] = operation.bodies;
      assert.ok(definition);
      const inputs: Inputs = { parameters: new Map(), body: { definition, value } };
      return buildExpectedRequest(operation, '', inputs).body;
    };
    const form = 'application/x-www-form-urlencoded';
    assert.deepEqual(build(form, {}, { a: [1, 2], b: { c: 'd' } }), {
      kind: 'form',
      pairs: [
        ['a', '1'],
        ['a', '2'],
        ['b', '{"c":"d"}'],
      ],
    });
    const encoding = { b: { style: 'deepObject', explode: true } };
    assert.deepEqual(build(form, { encoding }, { b: { c: 'd' } }), { kind: 'form', pairs: [['b[c]', 'd']] });
    const file = new TextEncoder().encode('bytes');
    const parts = build(
      'multipart/form-data',
      { encoding: { note: { contentType: 'text/markdown' } } },
      { file, note: 'x', meta: map },
    );
    assert.deepEqual(parts, {
      kind: 'multipart',
      parts: [
        { name: 'file', hasFileName: true, contentType: 'application/octet-stream', content: 'bytes' },
        { name: 'note', hasFileName: false, contentType: 'text/markdown', content: 'x' },
        { name: 'meta', hasFileName: false, contentType: 'application/json', content: '{"R":100,"G":200}' },
      ],
    });
  });

  it('detects inputs that a tool does not accept and rules that it does not enforce [imp 3]', () => {
    const documentSchema: JsonObject = {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', maximum: 9, multipleOf: 3 },
        kind: { enum: ['a', 'b'] },
        inner: { type: 'object', properties: { x: { type: 'string' } } },
      },
    };
    const schemas = createSchemas({}, '3.1');
    const losses = (toolSchema: JsonObject) =>
      findLosses(
        { at: 'body', context: 'json', documentSchema: schemas.convert(documentSchema), toolSchema },
        schemas,
        createValueMaker(schemas),
        createRandom(1),
      )
        .map(({ kind, at, what }) => `${kind} ${at} ${what}`)
        .sort();
    assert.deepEqual(losses({ ...documentSchema, additionalProperties: false }), []);
    assert.deepEqual(
      losses({
        type: 'object',
        properties: { size: { type: 'integer', maximum: 9 }, kind: { type: 'string' }, inner: { type: 'object' } },
      }),
      [
        'loosened body required size',
        'loosened body/inner/x not shown',
        'loosened body/inner/x type',
        'loosened body/kind enum',
        'loosened body/size multipleOf',
      ],
    );
    assert.deepEqual(
      losses({
        ...documentSchema,
        properties: { size: { type: 'integer', multipleOf: 3, maximum: 9 } },
        additionalProperties: false,
      }),
      ['missing body/inner input', 'missing body/kind input'],
    );
    const narrow = {
      ...documentSchema,
      properties: { ...(documentSchema.properties as JsonObject), kind: { enum: ['a'] } },
    };
    assert.ok(losses(narrow).some((loss) => loss.startsWith('refused body')));
  });
});

describe('request comparison of the audit', () => {
  const request = (target: string, type = '', body = '', headers: string[] = []) =>
    readRequest({
      method: 'POST',
      target,
      rawHeaders: [...headers, ...(type === '' ? [] : ['Content-Type', type])],
      body: Buffer.from(body),
    });
  const compare = (a: WireRequest, b: WireRequest) => compareRequests(a, b, new Set(['key'])).map(({ id }) => id);
  const parts = (...texts: string[]) =>
    request(
      '/a',
      'multipart/form-data; boundary=b',
      `${texts.map((text) => `--b\r\nContent-Disposition: form-data; ${text}\r\n`).join('')}--b--\r\n`,
    );

  it('ignores differences that the standards allow [imp 2]', () => {
    assert.deepEqual(compare(request('/a%7e/b?x=1&y=%c3%a4'), request('/a~/b?y=%C3%A4&x=1')), []);
    assert.deepEqual(compare(request('/a?key=1', '', '', ['X-Key', '1']), request('/a', '', '', ['x-key', '1'])), []);
    assert.deepEqual(
      compare(
        request('/a', 'application/json', '{"a":1,"b":2}'),
        request('/a', 'application/json; charset=utf-8', '{"b":2,"a":1}'),
      ),
      [],
    );
    assert.deepEqual(compare(parts('name="a"\r\nContent-Type: text/plain\r\n\r\nx'), parts('name="a"\r\n\r\nx')), []);
  });

  it('detects each kind of difference [imp 2]', () => {
    assert.deepEqual(compare(request('/a/1'), request('/a/2')), ['path.value']);
    assert.deepEqual(compare(request('/a%2Fb'), request('/a/b')), ['path.encoding']);
    assert.deepEqual(compare(request('/a?x=1&x=2'), request('/a?x=2&x=1')), ['query.value']);
    assert.deepEqual(compare(request('/a?x=1'), request('/a?y=1')), ['query.missing', 'query.extra']);
    assert.deepEqual(compare(request('/a?x=a%2Cb'), request('/a?x=a,b')), ['query.encoding']);
    assert.deepEqual(compare(request('/a', '', '', ['X-A', '1']), request('/a')), ['header.missing']);
    assert.deepEqual(
      compare(request('/a', 'application/json', '{"a":1}'), request('/a', 'application/json', '{"a":"1"}')),
      ['body.json'],
    );
    assert.deepEqual(compare(request('/a', 'text/plain', 'a'), request('/a', 'text/csv', 'a')), ['body.content-type']);
    const file = 'name="a"; filename="f"\r\nContent-Type: image/png\r\n\r\nx';
    assert.deepEqual(compare(parts(file), parts('name="a"\r\n\r\nx')), ['part.content-type', 'part.file-name']);
    assert.deepEqual(compare(parts(file), parts(file, 'name="b"\r\n\r\nx')), ['part.extra']);
  });
});
