import fc from 'fast-check';
import type { Json } from '../toolhost/toolhost.ts';
import { openApi } from './import-plans.ts';

/** Names that are special to a receiver, to HTTP, to the configuration, or to none of them. */
const names = [
  ...['filter', 'filter[x]', 'filter[x][y]', 'ids[]', 'ids', 'a', 'A', 'a.b', 'a_b', 'a b', 'X_Y', 'x-y', '$top'],
  ...['@id'],
  ...['__proto__', 'constructor', 'toString', '', ' ', '1', '-', '.', '..', '[', ']', '[]', 'a[', 'a]b', 'a=b'],
  ...['a&b', 'a#b', 'a?b'],
  ...['é', '名前', '\u{1f600}', '\ud800', '\u0000', 'a\r\nb: c', 'a\u202eb', '\u200b', '\u2028', '%41', '%', 'sort%5B'],
  ...['{{A}}', '{{', '}}', '{{ TOKEN }}', ':a', 'a:b', '{a}', '{', '<a>', '*', '+', ',', ';', '"', '\\', '`', '~'],
  ...['type', 'properties', 'required', '$schema', '$ref', 'in', 'optional', 'value', 'style', 'wire_name'],
  ...['body', 'json', 'form', 'multipart', 'file', 'file_name', 'read_more', 'readMore', 'search_tools'],
  ...['describe_tool'],
  ...['Accept', 'accept', 'Authorization', 'Content-Type', 'content_type', 'Cookie', 'Host', 'User-Agent'],
  ...['user_agent'],
  ...['Content-Length', 'X-Forwarded-For', 'Proxy-X', 'Mcp-Session-Id', 'Sec-Fetch-Mode', 'traceparent', 'X-Api-Key'],
  ...['api_key'],
  ...['x'.repeat(64), 'x'.repeat(65), 'x'.repeat(201), 'é'.repeat(150), 'a.'.repeat(40)],
] as const;

const mediaTypes = [
  ...['application/json', 'application/json;charset=utf-8', 'application/vnd.a+json; version=1', 'APPLICATION/JSON'],
  ...['json', 'JSON'],
  ...['application/json\r\nX-Evil: 1', 'text/plain\n', 'application/xml\u0000', 'text/é', 'text/\u{1f600}', '', ' '],
  ...['*/*', 'text/*', '/', ';'],
  ...['application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=\r\n', 'multipart/form-data'],
  ...['multipart/mixed'],
  ...['multipart/form-data; boundary=x', 'image/png', 'image/*', 'application/octet-stream', 'text/csv'],
  ...['text/plain', `a/${'b'.repeat(5000)}`],
  ...['application/json; profile="{{A}}"', 'application/{{A}}', 'application/json;a=:a', 'text/plain; x={a}'],
  ...['application/x-ndjson'],
  ...['application/json-patch+json', 'application/problem+json', 'application/yaml', 'text/html; charset=:body'],
] as const;

const types = [
  ...['string', 'integer', 'number', 'boolean', 'array', 'object', 'null', 'file', 'date', 'String', 'any', '', 7],
  ...[null, ['string', 'null'], ['string', 'integer'], ['null'], [], {}, ['array', 'object', 'x']],
];
const formats = ['date', 'binary', 'byte', 'base64', 'x'.repeat(100), '', 5, 'date-time'];
const patterns = [
  ...['^a$', '(a+)+$', '(?=a)', '[', '\\\\d', '/a/', '\\p{L}+', 'x'.repeat(200), '{{A}}', '(?<n>a)\\k<n>', 5],
];
const numbers = [0, -1, 1, 1.5, 1e308, -1e308, 2 ** 53 + 2, 5e-324, '3', null, true];
const values: unknown[] = [
  ...[null, true, false, 0, 1.5, -1, 1e308, '', 'a', ' a ', 'a\nb', '{{A}}', '{{ TOKEN }}', ':a', '\ud800', '\u0000'],
  ...['é', 'x'.repeat(300)],
  ...[[], {}, [1], ['a', null], { a: 1 }, { __proto__: null, constructor: 1 }, [[]], '2024-01-01', '1.0', 'no'],
  ...['application/vnd.a+json'],
];
const references = [
  ...['#/components/schemas/Node', '#/components/schemas/Odd', '#node', '#', '#/x', 'https://a.example/x'],
  ...['#/components/schemas/é', '', '%', '#/paths/~1good/get'],
];

const partial = <Fields>(fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> }) =>
  fc.record(fields, { requiredKeys: [] });
const name = fc.constantFrom(...names);
const description = fc.constantFrom(
  ...[undefined, '', 'Says what it is for.', '{{A}}', '\u0000\u202e', 'x'.repeat(5000), 5, '| a |\n|---|'],
  ...['Your API key.'],
);

function createObject(entries: readonly (readonly [string, unknown])[]): Json {
  const fields: Json = {};
  for (const [key, value] of entries)
    Object.defineProperty(fields, key, { value, enumerable: true, configurable: true });
  return fields;
}

/** Objects with up to `maxLength` of these names and values. */
const objects = <Key, Value>(key: fc.Arbitrary<Key & string>, value: fc.Arbitrary<Value>, maxLength = 2) =>
  fc.array(fc.tuple(key, value), { maxLength }).map(createObject);

/** Schemas of any dialect, valid or malformed. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom<unknown>(true, false, null, 5, 'string', [], {}, { type: 'string' }, { type: 'integer' }),
    fc.constantFrom(...references).map(($ref) => ({ $ref })),
    partial({
      type: fc.constantFrom(...types),
      format: fc.constantFrom(...formats),
      pattern: fc.constantFrom(...patterns),
      description,
      enum: fc.array(fc.constantFrom(...values), { maxLength: 4 }),
      const: fc.constantFrom(...values),
      default: fc.constantFrom(...values),
      example: fc.constantFrom(...values),
      nullable: fc.constantFrom(true, 'yes'),
      minimum: fc.constantFrom(...numbers),
      maximum: fc.constantFrom(...numbers),
      exclusiveMinimum: fc.constantFrom(true, ...numbers),
      minLength: fc.constantFrom(...numbers),
      maxItems: fc.constantFrom(...numbers),
      uniqueItems: fc.boolean(),
      readOnly: fc.boolean(),
      required: fc.oneof(fc.array(name, { maxLength: 3 }), fc.constantFrom(true, 'a')),
      properties: fc.oneof(objects(name, tie('schema'), 4), fc.constantFrom<unknown>([], 'a', null)),
      additionalProperties: tie('schema'),
      items: fc.oneof(tie('schema'), fc.array(tie('schema'), { maxLength: 2 })),
      allOf: fc.array(tie('schema'), { maxLength: 3 }),
      oneOf: fc.array(tie('schema'), { maxLength: 3 }),
      anyOf: fc.array(tie('schema'), { maxLength: 3 }),
      not: tie('schema'),
      discriminator: fc.constantFrom('a', { propertyName: 'a' }, { propertyName: '{{A}}', mapping: { a: '#/x' } }),
      $ref: fc.constantFrom(...references),
      $anchor: fc.constantFrom('node', '', 5),
    }),
  ),
}));

const encoding = partial({
  contentType: fc.constantFrom(...mediaTypes),
  style: fc.constantFrom('deepObject', 'form', 'x'),
  explode: fc.boolean(),
});
const media = fc.record({ schema, encoding: objects(name, encoding) });
const content = objects(fc.constantFrom(...mediaTypes), media, 3);

const parameter = fc.oneof(
  {
    arbitrary: fc.record(
      {
        name: fc.oneof(name, fc.constantFrom(5, null, {})),
        in: fc.constantFrom(
          ...['query', 'query', 'query', 'header', 'header', 'path', 'cookie', 'querystring', 'body', 'formData', ''],
          ...[5],
        ),
        required: fc.constantFrom(true, false, 'true', 1),
        description,
        style: fc.constantFrom(
          ...['deepObject', 'form', 'pipeDelimited', 'spaceDelimited', 'matrix', 'label', 'simple', 'x', 5],
        ),
        explode: fc.boolean(),
        allowReserved: fc.boolean(),
        schema,
        type: fc.constantFrom('string', 'array', 'file', 5),
        collectionFormat: fc.constantFrom('multi', 'tsv', 'csv'),
        content,
        example: fc.constantFrom(...values),
      },
      { requiredKeys: ['name', 'in'] },
    ),
    weight: 9,
  },
  {
    arbitrary: fc.constantFrom<unknown>(null, 5, 'a', [], { $ref: '#/x' }, { $ref: 'https://a.example/x' }),
    weight: 1,
  },
);

const variable = partial({
  default: fc.constantFrom(...values),
  enum: fc.array(fc.constantFrom(...values), { maxLength: 2 }),
  description,
});
const servers = fc.array(
  fc.record(
    {
      url: fc.constantFrom(
        ...['https://own.example.com/v1', '/relative', 'http://localhost:3000', 'https://{tenant}.example.com'],
        ...['https://a.example.com/{apiKey}/x', 'not a url', 'ftp://a.example', 'https://a b.example'],
        ...['https://[::1', 'https://', '', 5, 'https://a.example?x=1#y', 'https://a.example/{{A}}'],
        ...['https://user:pass@a.example', 'https://a.example:99999', 'https://10.0.0.1', '{base}/x'],
        ...[`https://a.example/${'x'.repeat(3000)}`, 'https://a.example/../x', 'https://a.example/a:b/:c'],
        ...['https://é.example/é'],
      ),
      variables: objects(fc.constantFrom('tenant', 'apiKey', 'base', '__proto__'), variable, 3),
      description,
    },
    { requiredKeys: ['url'] },
  ),
  { maxLength: 2 },
);

const text = fc.oneof(name, description);

const response = partial({ content, headers: objects(name, fc.constant({}), 3) });
const schemeNames = fc.constantFrom('key', 'odd', 'login', 'missing', 'aws', 'cookie');
const operation = partial({
  operationId: fc.oneof(text, fc.constantFrom('listThings', 'list_things')),
  summary: text,
  description: text,
  tags: fc.oneof(fc.array(text, { maxLength: 3 }), fc.constantFrom('a', null)),
  deprecated: fc.boolean(),
  parameters: fc.oneof(
    { arbitrary: fc.array(parameter, { maxLength: 5 }), weight: 9 },
    { arbitrary: fc.constantFrom('a', {}, null), weight: 1 },
  ),
  requestBody: fc.oneof(
    fc.record({ content, required: fc.boolean(), description }, { requiredKeys: ['content'] }),
    fc.constantFrom<unknown>(null, 5, { content: 5 }, { $ref: '#/x' }),
  ),
  consumes: fc.array(fc.constantFrom(...mediaTypes), { maxLength: 2 }),
  responses: objects(fc.constantFrom('200', '2XX', 'default', '302', '404', ''), response),
  security: fc.array(objects(schemeNames, fc.array(text, { maxLength: 2 })), { maxLength: 2 }),
  servers,
});

const path = fc.oneof(
  name.map((segment) => `/${segment}`),
  name.map((segment) => `/things/{${segment}}`),
  fc.tuple(name, name).map(([one, other]) => `/{${one}}/{${other}}`),
  fc.tuple(name, name).map(([one, other]) => `/a?${one}={${other}}`),
  fc.constantFrom(
    ...['', 'a', '/', '//', '//evil.example/x', '/./a', '/a/../b', '/{a}b', '/{a}.{b}', '/{a', '/a}', '/a#b'],
    ...['/{+a*}', '/a b', '/é', `/${'x'.repeat(3000)}`, '/a:b', '/{a}:run', '/a?', '/a?b', 'x-a', '/{{A}}', '/<a>'],
    ...['/a%2Fb', '/%zz', '/things/:a'],
  ),
);

const item = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.constantFrom('get', 'post', 'put', 'delete', 'head', 'patch', 'options', 'query', 'GET'),
        fc.oneof(
          { arbitrary: operation, weight: 15 },
          { arbitrary: fc.constantFrom<unknown>(null, 5, [], { $ref: '#/x' }), weight: 1 },
        ),
      ),
      { minLength: 1, maxLength: 3 },
    ),
    partial({ parameters: fc.array(parameter, { maxLength: 2 }), servers, summary: text }),
  )
  .map(([operations, itemFields]) => ({ ...itemFields, ...createObject(operations) }));

const authorizationCode = fc.record({
  authorizationUrl: fc.constantFrom('https://a.example/auth', 'x', 5),
  tokenUrl: fc.constantFrom('https://a.example/token', 'https://localhost/token', '/token'),
});
const clientCredentials = fc.record({
  tokenUrl: fc.constantFrom(
    ...['https://a.example/token', 'https://localhost/token', 'https://a.example/token?client_id=1'],
    ...['https://a b/', `https://a.example/${'x'.repeat(3000)}`, 'https://a.example/{{A}}'],
  ),
  scopes: fc.constantFrom<unknown>({ a: 'b' }, { 'a b': '' }, { '': '' }, 5),
});
const password = fc.constant({ tokenUrl: 'https://a.example/token' });
const flows = partial({ authorizationCode, clientCredentials, password });
const keyLocation = fc.constantFrom('header', 'query', 'cookie', 'x');
const securitySchemes = partial({
  key: fc.record({ type: fc.constantFrom('apiKey', 'APIKEY'), in: keyLocation, name, description }),
  odd: fc.record({
    type: fc.constantFrom('http', 'mutualTLS', 'openIdConnect', '', 5),
    scheme: fc.constantFrom('basic', 'bearer', 'digest', 'DPoP', '\r\n', 'é'),
  }),
  login: fc.record({ type: fc.constant('oauth2'), flows }),
  aws: fc.constant({ type: 'apiKey', in: 'header', name: 'Authorization', 'x-amazon-apigateway-authtype': 'awsSigv4' }),
  cookie: fc.constant({ type: 'apiKey', in: 'cookie', name: 'a b' }),
});

/** Valid operation that every description contains next to the malformed ones. */
export const validOperation = 'GET /good/{id}';
const validPathItem = {
  get: {
    operationId: 'getGoodThing',
    summary: 'A thing that is described as it should be',
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    security: [],
  },
};

/** Descriptions with one valid operation and others that are malformed in every way. */
export const malformedDescriptions: fc.Arbitrary<Json> = fc
  .record({
    paths: fc.array(fc.tuple(path, item), { minLength: 1, maxLength: 4 }),
    securitySchemes,
    schemas: fc.tuple(schema, schema),
    info: partial({ title: text, description: text }),
    tags: fc.oneof(fc.array(fc.record({ name: text }), { maxLength: 2 }), fc.constant(5)),
    version: fc.constantFrom('3.0.3', '3.1.0', '2.0', 3.1),
    own: fc.oneof(
      { arbitrary: fc.constant([{ url: 'https://api.example.com/v1' }]), weight: 2 },
      { arbitrary: servers, weight: 1 },
    ),
  })
  .map(({ paths, schemas, info, tags, version, own, securitySchemes: schemes }) => {
    const components = {
      securitySchemes: schemes,
      schemas: { Node: { $anchor: 'node', properties: { next: { $ref: '#node' } } }, Odd: schemas[0], é: schemas[1] },
    };
    const all = createObject([...paths, ['/good/{id}', validPathItem]]);
    if (version !== '2.0') return openApi(all, { openapi: version, components, info, tags, servers: own });
    const fields = { info, tags, components, securityDefinitions: schemes, host: 'api.example.com' };
    const { openapi: _, ...rest } = openApi(all, fields);
    return { swagger: version, ...rest };
  });
