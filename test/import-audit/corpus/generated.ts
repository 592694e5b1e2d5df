/** Generates OpenAPI 3.1 and 3.2 documents in the style of five frameworks from a seed. */
import type { Json, JsonObject } from '../json.ts';
import type { Random } from '../random.ts';
import { frameworks, makeModel, makeName, makeSimple, refer, type Writing } from './schemas-of-frameworks.ts';
import type { Source } from './sources.ts';

export function* generateDocuments(random: Random): Generator<Source> {
  for (let count = 1; ; count++) {
    const framework = frameworks[count % frameworks.length] as (typeof frameworks)[0];
    const isNewest = count % 3 === 0;
    const own = random.fork(`document ${count}`);
    const writing: Writing = { random: own, framework, components: {}, names: new Set() };
    const paths: JsonObject = {};
    for (let left = 4 + own.below(8); left > 0; left--) addPath(writing, paths, isNewest);
    const document: JsonObject = {
      openapi: isNewest ? '3.2.0' : '3.1.0',
      info: { title: `Generated ${count}`, version: '1.0.0' },
      ...(own.chance(0.7) && {
        servers: [
          {
            url: own.pick([
              'https://api.example.com/v1',
              'https://api.example.com',
              '/api',
              'https://{region}.example.com/{stage}',
            ]),
            variables: { region: { default: 'eu' }, stage: { default: 'live' } },
          },
        ],
      }),
      paths,
      components: { schemas: writing.components },
    };
    yield { name: `generated/${framework}-${count}`, load: () => document };
  }
}

function addPath(writing: Writing, paths: JsonObject, isNewest: boolean): void {
  const { random, framework } = writing;
  const parameters: JsonObject[] = [];
  let path = `/${makeSegment(writing)}`;
  for (let count = random.below(3); count > 0; count--) {
    const name = `${framework === 'fastapi' || framework === 'drf' ? `${makeSegment(writing)}_id` : `${makeSegment(writing)}Id`}${parameters.length}`;
    parameters.push(makePathParameter(writing, name));
    path += `/{${name}}${random.chance(0.5) ? `/${makeSegment(writing)}` : ''}`;
  }
  if (framework === 'drf') path += '/';
  const item: JsonObject = {};
  const methods = random.shuffle(['get', 'post', 'put', 'patch', 'delete']).slice(0, 1 + random.below(3));
  for (const method of methods) item[method] = makeOperation(writing, { method, path, parameters, isNewest });
  if (isNewest && random.chance(0.4))
    item.query = makeOperation(writing, { method: 'post', path: `${path}query`, parameters, isNewest });
  if (isNewest && random.chance(0.35)) {
    const method = random.pick(['COPY', 'PROPFIND', 'PURGE', 'LOCK', 'REPORT']);
    item.additionalOperations = {
      [method]: makeOperation(writing, {
        method: random.pick(['get', 'post']),
        path: `${path}${method}`,
        parameters,
        isNewest,
      }),
    };
  }
  if (!(path in paths)) paths[path] = item;
}

const makeSegment = ({ random }: Writing) =>
  random.pick('orders customers invoices items notes tickets devices users reports search bulk'.split(' '));

function makePathParameter({ random, framework }: Writing, name: string): JsonObject {
  const schema = random.pick<JsonObject>([
    { type: 'string' },
    { type: 'integer', format: 'int64' },
    { type: 'string', format: 'uuid' },
    { type: 'string', pattern: '^[a-z]{3}$' },
  ]);
  if (framework === 'springdoc' && random.chance(0.1))
    return { name, in: 'path', required: true, style: 'matrix', schema: { type: 'string' } };
  if (random.chance(0.05))
    return {
      name,
      in: 'path',
      required: true,
      style: random.pick(['simple', 'label']),
      schema: { type: 'array', items: { type: 'string' }, minItems: 1 },
    };
  return { name, in: 'path', required: true, schema };
}

type Asked = { method: string; path: string; parameters: JsonObject[]; isNewest: boolean };

function makeOperation(writing: Writing, { method, path, parameters, isNewest }: Asked): JsonObject {
  const { framework } = writing;
  const id = `${method}_${path.replaceAll(/\W+/g, '_')}`;
  const operation: JsonObject = {
    operationId: framework === 'fastapi' ? `${id.toLowerCase()}_${method}` : id,
    summary: `${method} ${makeSegment(writing)}`,
    parameters: [...parameters, ...makeParameters(writing, isNewest)],
    responses: { '200': { description: 'OK', content: { 'application/json': { schema: {} } } } },
  };
  if (method !== 'get' && method !== 'delete') operation.requestBody = makeBody(writing, isNewest);
  return operation;
}

function makeParameters(writing: Writing, isNewest: boolean): JsonObject[] {
  const { random } = writing;
  if (isNewest && random.chance(0.15)) return [makeQuerystring(writing)];
  const made = new Map<string, JsonObject>();
  for (let count = random.below(5); count > 0; count--) {
    const parameter = random.pick(kinds)(writing, isNewest);
    const name = String(parameter.name).toLowerCase();
    if (!made.has(name)) made.set(name, parameter);
  }
  return [...made.values()];
}

const makeQuerystring = (writing: Writing): JsonObject => ({
  name: 'filter',
  in: 'querystring',
  ...(writing.random.chance(0.5) && { required: true }),
  content: writing.random.chance(0.75)
    ? {
        'application/x-www-form-urlencoded': {
          schema: {
            type: 'object',
            properties: {
              area: { type: 'string' },
              years: { type: 'array', items: { type: 'integer' } },
              isOpen: { type: 'boolean' },
            },
          },
        },
      }
    : { 'application/json': { schema: makeModel(writing, 0) } },
});

type Kind = (writing: Writing, isNewest: boolean) => JsonObject;

const optional = (writing: Writing) => (writing.random.chance(0.3) ? { required: true } : {});
const nullable = (writing: Writing, schema: JsonObject): JsonObject =>
  writing.framework === 'fastapi' && writing.random.chance(0.6) ? { anyOf: [schema, { type: 'null' }] } : schema;
const letters: JsonObject = { type: 'array', items: { type: 'string' } };

const query: Kind = (writing) => ({
  name: makeName(writing),
  in: 'query',
  ...optional(writing),
  schema: nullable(writing, makeSimple(writing)),
});

const kinds: readonly Kind[] = [
  query,
  query,
  query,
  (writing) => ({
    name: makeName(writing),
    in: 'query',
    ...optional(writing),
    schema: nullable(writing, { type: 'array', items: makeSimple(writing) }),
  }),
  (writing) => ({ name: makeName(writing), in: 'query', style: 'form', explode: false, schema: letters }),
  (writing) => ({
    name: makeName(writing),
    in: 'query',
    style: writing.random.pick(['pipeDelimited', 'spaceDelimited']),
    explode: false,
    schema: letters,
  }),
  (writing) => ({
    name: 'filter',
    in: 'query',
    style: 'deepObject',
    explode: true,
    schema: {
      type: 'object',
      properties: { status: { type: 'string' }, min: { type: 'integer' } },
      ...(writing.random.chance(0.3) && { additionalProperties: { type: 'string' } }),
    },
  }),
  (writing) => ({
    name: 'pageable',
    in: 'query',
    required: writing.random.chance(0.5),
    schema: refer(
      writing,
      {
        type: 'object',
        properties: {
          page: { type: 'integer', minimum: 0 },
          size: { type: 'integer', minimum: 1 },
          sort: { type: 'string' },
        },
      },
      'Pageable',
    ),
  }),
  (writing) => ({ name: 'where', in: 'query', content: { 'application/json': { schema: makeModel(writing, 1) } } }),
  (writing) => ({
    name: writing.random.pick(['X-Request-Id', 'If-Match', 'x-token', 'X-Api-Version', 'Accept-Language']),
    in: 'header',
    ...optional(writing),
    schema: nullable(writing, { type: 'string' }),
  }),
  (writing) => ({
    name: 'X-Tags',
    in: 'header',
    ...optional(writing),
    schema: { type: 'array', items: { type: 'integer' } },
  }),
  (writing, isNewest) => ({
    name: writing.random.pick(['session', 'ads_id']),
    in: 'cookie',
    ...(isNewest && { style: 'cookie' }),
    schema: nullable(writing, { type: 'string' }),
  }),
  (writing, isNewest) => ({
    name: 'path',
    in: 'query',
    ...(isNewest && { allowReserved: true }),
    ...optional(writing),
    schema: { type: 'string' },
  }),
  (writing) => ({
    name: writing.random.pick(['$filter', 'ids[]', 'filter[name]', 'order-by', 'größe']),
    in: 'query',
    schema: writing.random.chance(0.5) ? { type: 'string' } : letters,
  }),
];

function makeBody(writing: Writing, isNewest: boolean): JsonObject {
  const { random, framework } = writing;
  const model = () =>
    random.chance(0.7) ? refer(writing, makeModel(writing), framework === 'drf' ? 'Request' : '') : makeModel(writing);
  const content = random.pick<() => JsonObject>([
    () => makeJsonContent(writing, model()),
    () => makeJsonContent(writing, model()),
    () => makeJsonContent(writing, model()),
    () => ({
      'application/json': {
        schema: random.pick<Json>([
          { type: 'array', items: model() },
          { type: 'string' },
          { type: 'array', items: { type: 'integer' } },
          { type: 'object', additionalProperties: { type: 'integer' } },
        ]),
      },
    }),
    () => ({ 'application/x-www-form-urlencoded': makeForm(writing) }),
    () => ({ 'multipart/form-data': makeMultipart(writing) }),
    () => ({ 'multipart/form-data': makeMultipart(writing) }),
    () => ({
      [random.pick(['application/octet-stream', 'image/png', '*/*', 'image/*'])]: {
        schema: random.pick<JsonObject>([
          { type: 'string', format: 'binary' },
          {},
          { type: 'string', contentMediaType: 'application/octet-stream' },
        ]),
      },
    }),
    () => ({ [random.pick(['text/plain', 'text/csv'])]: { schema: { type: 'string' } } }),
    () => ({
      [random.pick(['application/merge-patch+json', 'application/vnd.api+json', 'application/problem+json'])]: {
        schema: model(),
      },
    }),
    ...(isNewest
      ? [() => ({ 'multipart/mixed': makeMultipart(writing) })]
      : [() => ({ 'multipart/related': makeMultipart(writing) })]),
  ])();
  return { ...(random.chance(0.8) && { required: true }), content };
}

function makeJsonContent({ framework, random }: Writing, schema: JsonObject): JsonObject {
  if (framework === 'aspnet' && random.chance(0.6))
    return Object.fromEntries(
      ['application/json', 'text/json', 'application/*+json'].map((type) => [type, { schema }]),
    );
  if (framework === 'drf' && random.chance(0.7))
    return Object.fromEntries(
      ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'].map((type) => [
        type,
        { schema },
      ]),
    );
  if (framework === 'springdoc' && random.chance(0.2))
    return { 'application/json': { schema }, 'application/xml': { schema } };
  return { 'application/json': { schema } };
}

/** Returns a form of simple values, lists, and objects, with encodings for some. */
function makeForm(writing: Writing): JsonObject {
  const { random } = writing;
  const properties: JsonObject = {
    [makeName(writing)]: makeSimple(writing),
    tags: { type: 'array', items: { type: 'string' } },
  };
  if (random.chance(0.5))
    properties.address = { type: 'object', properties: { city: { type: 'string' }, zip: { type: 'string' } } };
  const encoding: JsonObject = {};
  if (random.chance(0.4)) encoding.tags = { style: 'form', explode: random.chance(0.5) };
  if (properties.address && random.chance(0.5))
    encoding.address = random.pick<JsonObject>([
      { style: 'deepObject', explode: true },
      { contentType: 'application/json' },
    ]);
  return {
    schema: { type: 'object', properties, required: Object.keys(properties).slice(0, 1) },
    ...(Object.keys(encoding).length > 0 && { encoding }),
  };
}

/** Returns a multipart body of fields, JSON parts, and files, as each framework describes uploads. */
function makeMultipart(writing: Writing): JsonObject {
  const { random, framework } = writing;
  const file: JsonObject =
    framework === 'fastapi' && random.chance(0.6)
      ? { type: 'string', contentMediaType: 'application/octet-stream' }
      : { type: 'string', format: 'binary' };
  const properties: JsonObject = { [makeName(writing)]: makeSimple(writing) };
  const encoding: JsonObject = {};
  const add = (name: string, schema: JsonObject, one?: JsonObject) => {
    properties[name] = schema;
    if (one) encoding[name] = one;
  };
  if (random.chance(0.8))
    add(
      'file',
      random.chance(0.3) ? { anyOf: [file, { type: 'null' }] } : file,
      random.chance(0.3)
        ? { contentType: random.pick(['image/png', 'image/png, image/jpeg', 'application/pdf']) }
        : undefined,
    );
  if (random.chance(0.3)) add('files', { type: 'array', items: file });
  if (random.chance(0.4))
    add(
      'metadata',
      refer(writing, makeModel(writing, 1)),
      random.chance(0.6) ? { contentType: 'application/json' } : undefined,
    );
  if (random.chance(0.3)) add('tags', { type: 'array', items: { type: 'string' } });
  if (random.chance(0.2)) add('note', { type: 'string' }, { contentType: 'text/markdown' });
  if (framework === 'aspnet' && random.chance(0.5))
    for (const name of Object.keys(properties)) encoding[name] = { style: 'form' };
  return {
    schema: { type: 'object', properties, required: Object.keys(properties).filter(() => random.chance(0.4)) },
    ...(Object.keys(encoding).length > 0 && { encoding }),
  };
}
