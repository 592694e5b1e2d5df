import { openApi } from './import-plans.ts';

const names = [...'abcdefghij'];
const repeat = <Value>(count: number, make: (index: number) => Value) =>
  Array.from({ length: count }, (_, index) => make(index));
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** Returns a document whose body uses the first of forty schemas, each of which is built from the next one. */
function chain(link: (next: object) => object): string {
  const schemas = Object.fromEntries(repeat(40, (index) => [`S${index}`, link(ref(`S${index + 1}`))]));
  const content = { 'application/json': { schema: ref('S0') } };
  const post = { summary: 'Takes a body of a strange kind', requestBody: { content } };
  return JSON.stringify(
    openApi({ '/a': { post } }, { components: { schemas: { ...schemas, S40: { type: 'string' } } } }),
  );
}

/** Returns operations that reference an address, which must not be fetched. */
export function createReferencingDocument(address: string): string {
  const get = {
    summary: 'Refers to something elsewhere',
    parameters: [{ $ref: `${address}#/parameter` }],
    requestBody: { $ref: address },
    responses: { 200: { $ref: address } },
  };
  const body = {
    content: { 'application/json': { schema: { type: 'object', properties: { a: { $ref: address } } } } },
  };
  return JSON.stringify(
    openApi({
      '/a': { get, post: { summary: 'Refers to something in its body', requestBody: body } },
      '/b': { $ref: address },
    }),
  );
}

/** Documents that must stay within the CPU budget, with the expected number of tools or the error message. */
export const adversarialDocuments: readonly { what: string; text: () => string; gives: number | RegExp }[] = [
  {
    what: 'a billion laughs attack',
    text: () =>
      `a: &a [${repeat(9, () => '"x"').join()}]\n${names
        .slice(1)
        .map((name, index) => `${name}: &${name} [${repeat(9, () => `*${names[index]}`).join()}]`)
        .join('\n')}\npaths: {}`,
    gives: /aliases expand too far/,
  },
  { what: 'a YAML alias inside its own anchor', text: () => 'paths: &p\n  /a: *p', gives: /nested deeper/ },
  {
    what: 'names and URLs with long runs of a trimmed character',
    text: () => {
      const parameters = [{ name: `a${'.'.repeat(300_000)}a`, in: 'query', schema: { type: 'string' } }];
      const get = { operationId: `${'A'.repeat(300_000)}1`, summary: 'Has long names', parameters };
      return JSON.stringify(openApi({ '/a': { get } }, { servers: [{ url: `https://a.example${'/'.repeat(900)}v` }] }));
    },
    gives: 1,
  },
  { what: 'a million opening brackets', text: () => '['.repeat(1_000_000), gives: /nested deeper/ },
  {
    what: 'deeply nested JSON',
    text: () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
    gives: /nested deeper/,
  },
  {
    what: 'deeply nested YAML flow sequences',
    text: () => `a: ${'['.repeat(1900)}${']'.repeat(1900)}`,
    gives: /nested deeper/,
  },
  {
    what: 'deeply nested YAML mappings',
    text: () => repeat(3000, (index) => `${' '.repeat(index)}a:`).join('\n'),
    gives: /nested deeper/,
  },
  {
    what: 'a chain of schemas with allOf of two references each',
    text: () => chain((next) => ({ allOf: [next, next] })),
    gives: 1,
  },
  {
    what: 'a chain of schemas with anyOf of eight references each',
    text: () => chain((next) => ({ anyOf: repeat(8, () => next) })),
    gives: 1,
  },
  {
    what: 'a chain of schemas with 200 properties each',
    text: () =>
      chain((next) => ({
        type: 'object',
        properties: Object.fromEntries(repeat(200, (index) => [`p${index}`, next])),
      })),
    gives: 1,
  },
  { what: 'a recursive schema', text: () => chain(() => ref('S0')), gives: 1 },
  {
    what: 'a path item that references itself',
    text: () => JSON.stringify(openApi({ '/a': { $ref: '#/paths/~1a' } })),
    gives: /no operations/,
  },
  {
    what: 'a document with 100,000 paths',
    text: () => JSON.stringify(openApi(Object.fromEntries(repeat(100_000, (index) => [`/p${index}`, { get: {} }])))),
    gives: /100000 operations/,
  },
  {
    what: 'a document with 20,000 operations of the same name',
    text: () =>
      JSON.stringify(
        openApi(
          Object.fromEntries(
            repeat(20_000, (index) => [`/p${index}`, { get: { operationId: 'same', tags: [`t${index}`] } }]),
          ),
        ),
      ),
    gives: 20_000,
  },
  {
    what: 'a document with prototype property names',
    text: () =>
      '{"openapi":"3.1.0","servers":[{"url":"https://api.example.com"}],"__proto__":{"x":1},"paths":{"/__proto__/{constructor}":{"post":{"operationId":"__proto__","tags":["__proto__"],"parameters":[{"name":"__proto__","in":"query"},{"name":"prototype","in":"header"}],"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"__proto__":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__"]}}}},"security":[{"__proto__":[]}]}}},"components":{"securitySchemes":{"__proto__":{"type":"http","scheme":"bearer"}}}}',
    gives: 1,
  },
  {
    what: 'a document with invisible characters',
    text: () =>
      JSON.stringify(
        openApi({
          '/a\u202eb': {
            get: {
              operationId: 'a\u202eb',
              summary: 'Lists\u202e stsil \u200ball\u0007 things \ud800',
              parameters: [{ name: 'x\u2066', in: 'query', description: '\u2066hidden' }],
            },
          },
        }),
      ),
    gives: 1,
  },
  {
    what: 'text that causes backtracking in regular expressions',
    text: () =>
      JSON.stringify(
        openApi({
          '/a': {
            get: {
              summary: `${'<'.repeat(50_000)}${'a '.repeat(50_000)}`,
              description: `${'['.repeat(50_000)}](${'<!--'.repeat(20_000)}${'<table'.repeat(20_000)}${'*'.repeat(50_000)}`,
            },
          },
        }),
      ),
    gives: 1,
  },
  {
    what: 'an operation with 100,000 parameters',
    text: () =>
      JSON.stringify(
        openApi({
          '/a': {
            get: {
              summary: 'Takes very many inputs',
              parameters: repeat(100_000, (index) => ({ name: `p${index}`, in: 'query' })),
            },
          },
        }),
      ),
    gives: 1,
  },
  {
    what: 'a document with values of the wrong type everywhere',
    text: () =>
      JSON.stringify({
        openapi: 3,
        info: [],
        servers: {},
        tags: 7,
        paths: {
          '/a': {
            get: {
              operationId: {},
              tags: 'x',
              summary: [],
              parameters: {},
              requestBody: [],
              responses: [],
              security: {},
              servers: 'x',
            },
            put: {
              parameters: [
                { name: {}, in: [] },
                {
                  name: 'q',
                  in: 'query',
                  schema: { type: 7, enum: 7, properties: 7, items: 7, allOf: 7, oneOf: 'x', required: 7 },
                },
              ],
            },
          },
        },
      }),
    gives: 2,
  },
  {
    what: 'a web page with 200,000 script tags',
    text: () => `<html>swagger-ui${'<script src="'.repeat(200_000)}`,
    gives: /page/,
  },
  { what: 'a web page with 700,000 links', text: () => `<html>redoc ${'<a '.repeat(700_000)}`, gives: /page/ },
  {
    what: 'a web page with unterminated descriptions',
    text: () => `<html>${'__redoc_state={"openapi":'.repeat(40_000)}`,
    gives: /page/,
  },
  { what: '100,000 nested fetch calls', text: () => 'fetch('.repeat(100_000), gives: 1 },
  {
    what: 'a script with unterminated declarations',
    text: () => `fetch("/a");${'const a = ['.repeat(100_000)}`,
    gives: 1,
  },
  {
    what: 'a script with many alternatives and unterminated templates',
    text: () => `fetch(a ${'|| b '.repeat(200_000)}, ${'`$\u007b'.repeat(50_000)})`,
    gives: 1,
  },
  {
    what: 'a request line with 500,000 spaces',
    text: () => `GET https://a.example.com/a${' '.repeat(500_000)}b\n`,
    gives: 1,
  },
  {
    what: 'a GraphQL query with 500,000 empty lines',
    text: () => `GRAPHQL https://a.example.com/a\n\nquery A { a }${'\n'.repeat(500_000)}x`,
    gives: 1,
  },
  {
    what: 'a Bruno file with unterminated pairs',
    text: () =>
      `get {\n  url: https://a.example.com\n}\nheaders {\n a${' '.repeat(500_000)}\n b: '''\n${'c\n'.repeat(200_000)}`,
    gives: 1,
  },
  {
    what: 'a URL with unterminated placeholders',
    text: () => `curl 'https://a.example.com/${'{{'.repeat(100_000)}${'<a'.repeat(100_000)}${'%7B'.repeat(50_000)}'`,
    gives: 1,
  },
  {
    what: 'a chain of variables that contain each other',
    text: () => {
      const twice = (index: number) => `{{v${index + 1}}}{{v${index + 1}}}`.repeat(20);
      const variable = repeat(40, (index) => ({ key: `v${index}`, value: twice(index) }));
      const item = [{ name: 'A', request: { method: 'GET', url: '{{v0}}/a/{{v1}}' } }];
      return JSON.stringify({ info: { name: 'A' }, variable, item });
    },
    gives: 1,
  },
  {
    what: 'a collection with 2,000 body shapes',
    text: () => {
      const body = (index: number) => Object.fromEntries(repeat(30, (field) => [`f${index}_${field}`, 1]));
      const item = repeat(2000, (index) => ({
        name: `R${index}`,
        request: {
          method: 'POST',
          url: 'https://a.example.com/a',
          body: { mode: 'raw', raw: JSON.stringify(body(index)) },
        },
      }));
      return JSON.stringify({ info: { name: 'A' }, item });
    },
    gives: 1,
  },
  {
    what: 'a malformed JSON body with many escaped quotes',
    text: () => {
      const raw = `"${'\\"'.repeat(500_000)}${'/*'.repeat(500_000)}`;
      const header = [{ key: 'Content-Type', value: 'application/json' }];
      const request = { method: 'POST', url: 'https://a.example.com/a', header, body: { mode: 'raw', raw } };
      return JSON.stringify({ info: { name: 'A' }, item: [{ name: 'A', request }] });
    },
    gives: 1,
  },
  {
    what: 'control characters instead of a document',
    text: () => '\u0000\u0001\u0002'.replaceAll('\u0000', '\u0003'),
    gives: /not an API description/,
  },
];
