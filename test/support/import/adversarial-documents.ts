import { jsonBody, object, text } from '../schemas.ts';
import { openApi } from './import-plans.ts';

const names = [...'abcdefghij'];
const repeat = <Value>(count: number, make: (index: number) => Value) =>
  Array.from({ length: count }, (_, index) => make(index));
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const write = (...parts: Parameters<typeof openApi>) => JSON.stringify(openApi(...parts));

/** Returns a document whose body uses the first of forty schemas, each of which is built from the next one. */
function chain(link: (next: object) => object): string {
  const schemas = Object.fromEntries(repeat(40, (index) => [`S${index}`, link(ref(`S${index + 1}`))]));
  const post = { summary: 'Takes a body of a strange kind', requestBody: jsonBody(ref('S0')) };
  return write({ '/a': { post } }, { components: { schemas: { ...schemas, S40: text } } });
}

/** Returns operations that reference an address, which must not be fetched. */
export function createReferencingDocument(address: string): string {
  const get = {
    summary: 'Refers to something elsewhere',
    parameters: [{ $ref: `${address}#/parameter` }],
    requestBody: { $ref: address },
    responses: { 200: { $ref: address } },
  };
  const requestBody = jsonBody(object({ a: { $ref: address } }));
  const post = { summary: 'Refers to something in its body', requestBody };
  return write({ '/a': { get, post }, '/b': { $ref: address } });
}

type AdversarialDocument = { what: string; gives: number | RegExp; text: () => string };
const attack = (what: string, gives: number | RegExp, text: () => string): AdversarialDocument => ({
  what,
  gives,
  text,
});

/** Documents that must stay within the CPU budget, with the expected number of tools or the error message. */
export const adversarialDocuments: readonly AdversarialDocument[] = [
  attack(
    'a billion laughs attack',
    /aliases expand too far/,
    () =>
      `a: &a [${repeat(9, () => '"x"').join()}]\n${names
        .slice(1)
        .map((name, index) => `${name}: &${name} [${repeat(9, () => `*${names[index]}`).join()}]`)
        .join('\n')}\npaths: {}`,
  ),
  attack('a YAML alias inside its own anchor', /nested deeper/, () => 'paths: &p\n  /a: *p'),
  attack('names and URLs with long runs of a trimmed character', 1, () => {
    const parameters = [{ name: `a${'.'.repeat(300_000)}a`, in: 'query', schema: text }];
    const get = { operationId: `${'A'.repeat(300_000)}1`, summary: 'Has long names', parameters };
    return write({ '/a': { get } }, { servers: [{ url: `https://a.example${'/'.repeat(900)}v` }] });
  }),
  attack('a million opening brackets', /nested deeper/, () => '['.repeat(1_000_000)),
  attack('deeply nested JSON', /nested deeper/, () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  attack('deeply nested YAML flow sequences', /nested deeper/, () => `a: ${'['.repeat(1900)}${']'.repeat(1900)}`),
  attack('deeply nested YAML mappings', /nested deeper/, () =>
    repeat(3000, (index) => `${' '.repeat(index)}a:`).join('\n'),
  ),
  attack('a chain of schemas with allOf of two references each', 1, () => chain((next) => ({ allOf: [next, next] }))),
  attack('a chain of schemas with anyOf of eight references each', 1, () =>
    chain((next) => ({ anyOf: repeat(8, () => next) })),
  ),
  attack('a chain of schemas with 200 properties each', 1, () =>
    chain((next) => object(Object.fromEntries(repeat(200, (index) => [`p${index}`, next])))),
  ),
  attack('a recursive schema', 1, () => chain(() => ref('S0'))),
  attack('a path item that references itself', /no operations/, () => write({ '/a': { $ref: '#/paths/~1a' } })),
  attack('a document with 100,000 paths', /100000 operations/, () =>
    write(Object.fromEntries(repeat(100_000, (index) => [`/p${index}`, { get: {} }]))),
  ),
  attack('a document with 20,000 operations of the same name', 20_000, () => {
    const get = (index: number) => ({ operationId: 'same', tags: [`t${index}`] });
    return write(Object.fromEntries(repeat(20_000, (index) => [`/p${index}`, { get: get(index) }])));
  }),
  attack(
    'a document with prototype property names',
    1,
    () =>
      '{"openapi":"3.1.0","servers":[{"url":"https://api.example.com"}],"__proto__":{"x":1},"paths":{"/__proto__/{constructor}":{"post":{"operationId":"__proto__","tags":["__proto__"],"parameters":[{"name":"__proto__","in":"query"},{"name":"prototype","in":"header"}],"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"__proto__":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__"]}}}},"security":[{"__proto__":[]}]}}},"components":{"securitySchemes":{"__proto__":{"type":"http","scheme":"bearer"}}}}',
  ),
  attack('a document with invisible characters', 1, () => {
    const parameters = [{ name: 'x\u2066', in: 'query', description: '\u2066hidden' }];
    const summary = 'Lists\u202e stsil \u200ball\u0007 things \ud800';
    return write({ '/a\u202eb': { get: { operationId: 'a\u202eb', summary, parameters } } });
  }),
  attack('text that causes backtracking in regular expressions', 1, () => {
    const summary = `${'<'.repeat(50_000)}${'a '.repeat(50_000)}`;
    const tags = `${'<!--'.repeat(20_000)}${'<table'.repeat(20_000)}`;
    const description = `${'['.repeat(50_000)}](${tags}${'*'.repeat(50_000)}`;
    return write({ '/a': { get: { summary, description } } });
  }),
  attack('an operation with 100,000 parameters', 1, () => {
    const parameters = repeat(100_000, (index) => ({ name: `p${index}`, in: 'query' }));
    return write({ '/a': { get: { summary: 'Takes very many inputs', parameters } } });
  }),
  attack('a document with values of the wrong type everywhere', 2, () => {
    const schema = { type: 7, enum: 7, properties: 7, items: 7, allOf: 7, oneOf: 'x', required: 7 };
    const put = {
      parameters: [
        { name: {}, in: [] },
        { name: 'q', in: 'query', schema },
      ],
    };
    const described = { operationId: {}, tags: 'x', summary: [], parameters: {}, requestBody: [] };
    const get = { ...described, responses: [], security: {}, servers: 'x' };
    return JSON.stringify({ openapi: 3, info: [], servers: {}, tags: 7, paths: { '/a': { get, put } } });
  }),
  attack('a web page with 200,000 script tags', /page/, () => `<html>swagger-ui${'<script src="'.repeat(200_000)}`),
  attack('a web page with 700,000 links', /page/, () => `<html>redoc ${'<a '.repeat(700_000)}`),
  attack(
    'a web page with unterminated descriptions',
    /page/,
    () => `<html>${'__redoc_state={"openapi":'.repeat(40_000)}`,
  ),
  attack('100,000 nested fetch calls', 1, () => 'fetch('.repeat(100_000)),
  attack('a script with unterminated declarations', 1, () => `fetch("/a");${'const a = ['.repeat(100_000)}`),
  attack(
    'a script with many alternatives and unterminated templates',
    1,
    () => `fetch(a ${'|| b '.repeat(200_000)}, ${'`$\u007b'.repeat(50_000)})`,
  ),
  attack('a request line with 500,000 spaces', 1, () => `GET https://a.example.com/a${' '.repeat(500_000)}b\n`),
  attack(
    'a GraphQL query with 500,000 empty lines',
    1,
    () => `GRAPHQL https://a.example.com/a\n\nquery A { a }${'\n'.repeat(500_000)}x`,
  ),
  attack(
    'a Bruno file with unterminated pairs',
    1,
    () =>
      `get {\n  url: https://a.example.com\n}\nheaders {\n a${' '.repeat(500_000)}\n b: '''\n${'c\n'.repeat(200_000)}`,
  ),
  attack(
    'a URL with unterminated placeholders',
    1,
    () => `curl 'https://a.example.com/${'{{'.repeat(100_000)}${'<a'.repeat(100_000)}${'%7B'.repeat(50_000)}'`,
  ),
  attack('a chain of variables that contain each other', 1, () => {
    const twice = (index: number) => `{{v${index + 1}}}{{v${index + 1}}}`.repeat(20);
    const variable = repeat(40, (index) => ({ key: `v${index}`, value: twice(index) }));
    const item = [{ name: 'A', request: { method: 'GET', url: '{{v0}}/a/{{v1}}' } }];
    return JSON.stringify({ info: { name: 'A' }, variable, item });
  }),
  attack('a collection with 2,000 body shapes', 1, () => {
    const body = (index: number) => Object.fromEntries(repeat(30, (field) => [`f${index}_${field}`, 1]));
    const request = (index: number) => ({
      method: 'POST',
      url: 'https://a.example.com/a',
      body: { mode: 'raw', raw: JSON.stringify(body(index)) },
    });
    const item = repeat(2000, (index) => ({ name: `R${index}`, request: request(index) }));
    return JSON.stringify({ info: { name: 'A' }, item });
  }),
  attack('a malformed JSON body with many escaped quotes', 1, () => {
    const raw = `"${'\\"'.repeat(500_000)}${'/*'.repeat(500_000)}`;
    const header = [{ key: 'Content-Type', value: 'application/json' }];
    const request = { method: 'POST', url: 'https://a.example.com/a', header, body: { mode: 'raw', raw } };
    return JSON.stringify({ info: { name: 'A' }, item: [{ name: 'A', request }] });
  }),
  attack('control characters instead of a document', /not an API description/, () =>
    '\u0000\u0001\u0002'.replaceAll('\u0000', '\u0003'),
  ),
];
