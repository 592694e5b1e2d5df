import { openApi } from './plan-of.ts';

const names = [...'abcdefghij'];
const many = <Value>(count: number, make: (index: number) => Value) =>
  Array.from({ length: count }, (_, index) => make(index));
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** A document whose one body has the first of forty schemas, each made of the next one. */
function chain(link: (next: object) => object): string {
  const schemas = Object.fromEntries(many(40, (index) => [`S${index}`, link(ref(`S${index + 1}`))]));
  const content = { 'application/json': { schema: ref('S0') } };
  const post = { summary: 'Takes a body of a strange kind', requestBody: { content } };
  return JSON.stringify(
    openApi({ '/a': { post } }, { components: { schemas: { ...schemas, S40: { type: 'string' } } } }),
  );
}

/** Operations that refer to addresses; none may be asked. */
export function referringTo(address: string): string {
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

/** Documents that should cost little, with the tools or the message that they give. */
export const hostileDocuments: readonly { what: string; text: () => string; gives: number | RegExp }[] = [
  {
    what: 'a billion laughs',
    text: () =>
      `a: &a [${many(9, () => '"x"').join()}]\n${names
        .slice(1)
        .map((name, index) => `${name}: &${name} [${many(9, () => `*${names[index]}`).join()}]`)
        .join('\n')}\npaths: {}`,
    gives: /aliases expand too far/,
  },
  { what: 'an alias of what surrounds it', text: () => 'paths: &p\n  /a: *p', gives: /nested deeper/ },
  {
    what: 'runs of one character that names and addresses lose at their ends',
    text: () => {
      const parameters = [{ name: `a${'.'.repeat(300_000)}a`, in: 'query', schema: { type: 'string' } }];
      const get = { operationId: `${'A'.repeat(300_000)}1`, summary: 'Has long names', parameters };
      return JSON.stringify(openApi({ '/a': { get } }, { servers: [{ url: `https://a.example${'/'.repeat(900)}v` }] }));
    },
    gives: 1,
  },
  { what: 'a million brackets', text: () => '['.repeat(1_000_000), gives: /nested deeper/ },
  { what: 'deep JSON', text: () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, gives: /nested deeper/ },
  { what: 'deep YAML in brackets', text: () => `a: ${'['.repeat(1900)}${']'.repeat(1900)}`, gives: /nested deeper/ },
  {
    what: 'deep YAML in lines',
    text: () => many(3000, (index) => `${' '.repeat(index)}a:`).join('\n'),
    gives: /nested deeper/,
  },
  { what: 'allOf of twice the next', text: () => chain((next) => ({ allOf: [next, next] })), gives: 1 },
  { what: 'anyOf of eight times the next', text: () => chain((next) => ({ anyOf: many(8, () => next) })), gives: 1 },
  {
    what: 'properties of the next',
    text: () =>
      chain((next) => ({ type: 'object', properties: Object.fromEntries(many(200, (index) => [`p${index}`, next])) })),
    gives: 1,
  },
  { what: 'a schema inside itself', text: () => chain(() => ref('S0')), gives: 1 },
  {
    what: 'a path that is itself',
    text: () => JSON.stringify(openApi({ '/a': { $ref: '#/paths/~1a' } })),
    gives: /no operations/,
  },
  {
    what: 'a hundred thousand paths',
    text: () => JSON.stringify(openApi(Object.fromEntries(many(100_000, (index) => [`/p${index}`, { get: {} }])))),
    gives: /100000 operations/,
  },
  {
    what: 'twenty thousand operations of one name',
    text: () =>
      JSON.stringify(
        openApi(
          Object.fromEntries(
            many(20_000, (index) => [`/p${index}`, { get: { operationId: 'same', tags: [`t${index}`] } }]),
          ),
        ),
      ),
    gives: 20_000,
  },
  {
    what: 'names of prototypes',
    text: () =>
      '{"openapi":"3.1.0","servers":[{"url":"https://api.example.com"}],"__proto__":{"x":1},"paths":{"/__proto__/{constructor}":{"post":{"operationId":"__proto__","tags":["__proto__"],"parameters":[{"name":"__proto__","in":"query"},{"name":"prototype","in":"header"}],"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"__proto__":{"type":"string"},"toString":{"type":"string"}},"required":["__proto__"]}}}},"security":[{"__proto__":[]}]}}},"components":{"securitySchemes":{"__proto__":{"type":"http","scheme":"bearer"}}}}',
    gives: 1,
  },
  {
    what: 'text that nobody sees',
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
    what: 'text made for regular expressions',
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
    what: 'a hundred thousand inputs',
    text: () =>
      JSON.stringify(
        openApi({
          '/a': {
            get: {
              summary: 'Takes very many inputs',
              parameters: many(100_000, (index) => ({ name: `p${index}`, in: 'query' })),
            },
          },
        }),
      ),
    gives: 1,
  },
  {
    what: 'values of the wrong kind everywhere',
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
  { what: 'a page of script tags', text: () => `<html>swagger-ui${'<script src="'.repeat(200_000)}`, gives: /page/ },
  { what: 'a page of links', text: () => `<html>redoc ${'<a '.repeat(700_000)}`, gives: /page/ },
  {
    what: 'a page of descriptions that do not end',
    text: () => `<html>${'__redoc_state={"openapi":'.repeat(40_000)}`,
    gives: /page/,
  },
  { what: 'calls of fetch inside of each other', text: () => 'fetch('.repeat(100_000), gives: 1 },
  { what: 'declarations that do not end', text: () => `fetch("/a");${'const a = ['.repeat(100_000)}`, gives: 1 },
  {
    what: 'alternatives and templates of a script',
    text: () => `fetch(a ${'|| b '.repeat(200_000)}, ${'`$\u007b'.repeat(50_000)})`,
    gives: 1,
  },
  { what: 'spaces in requests', text: () => `GET https://a.example.com/a${' '.repeat(500_000)}b\n`, gives: 1 },
  {
    what: 'empty lines in a query',
    text: () => `GRAPHQL https://a.example.com/a\n\nquery A { a }${'\n'.repeat(500_000)}x`,
    gives: 1,
  },
  {
    what: 'pairs of Bruno without an end',
    text: () =>
      `get {\n  url: https://a.example.com\n}\nheaders {\n a${' '.repeat(500_000)}\n b: '''\n${'c\n'.repeat(200_000)}`,
    gives: 1,
  },
  {
    what: 'placeholders that do not end',
    text: () => `curl 'https://a.example.com/${'{{'.repeat(100_000)}${'<a'.repeat(100_000)}${'%7B'.repeat(50_000)}'`,
    gives: 1,
  },
  {
    what: 'variables that hold each other',
    text: () => {
      const twice = (index: number) => `{{v${index + 1}}}{{v${index + 1}}}`.repeat(20);
      const variable = many(40, (index) => ({ key: `v${index}`, value: twice(index) }));
      const item = [{ name: 'A', request: { method: 'GET', url: '{{v0}}/a/{{v1}}' } }];
      return JSON.stringify({ info: { name: 'A' }, variable, item });
    },
    gives: 1,
  },
  {
    what: 'bodies of two thousand shapes',
    text: () => {
      const body = (index: number) => Object.fromEntries(many(30, (field) => [`f${index}_${field}`, 1]));
      const item = many(2000, (index) => ({
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
    what: 'quotes in JSON that is none',
    text: () => {
      const raw = `"${'\\"'.repeat(500_000)}${'/*'.repeat(500_000)}`;
      const header = [{ key: 'Content-Type', value: 'application/json' }];
      const request = { method: 'POST', url: 'https://a.example.com/a', header, body: { mode: 'raw', raw } };
      return JSON.stringify({ info: { name: 'A' }, item: [{ name: 'A', request }] });
    },
    gives: 1,
  },
  {
    what: 'characters that are no document',
    text: () => '\u0000\u0001\u0002'.replaceAll('\u0000', '\u0003'),
    gives: /not an API description/,
  },
];
