/** Generates OpenAPI 3.1 and 3.2 documents in the style of five frameworks from a seed. */
import type { Json, JsonObject } from '../json.ts';
import type { Random } from '../random.ts';
import { addSchema, frameworks, type GeneratorContext, makeModel, makeName, makeSimple } from './framework-schemas.ts';
import type { Source } from './sources.ts';

export function* generateDocuments(random: Random): Generator<Source> {
  for (let count = 1; ; count++) {
    const framework = frameworks[count % frameworks.length] as (typeof frameworks)[0];
    const isOpenApi32 = count % 3 === 0;
    const documentRandom = random.fork(`document ${count}`);
    const context: GeneratorContext = { random: documentRandom, framework, components: {}, names: new Set() };
    const paths: JsonObject = {};
    for (let remaining = 4 + documentRandom.below(8); remaining > 0; remaining--) addPath(context, paths, isOpenApi32);
    const document: JsonObject = {
      openapi: isOpenApi32 ? '3.2.0' : '3.1.0',
      info: { title: `Generated ${count}`, version: '1.0.0' },
      ...(documentRandom.chance(0.7) && {
        servers: [
          {
            url: documentRandom.pick([
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
      components: { schemas: context.components },
    };
    yield { name: `generated/${framework}-${count}`, load: () => document };
  }
}

function addPath(context: GeneratorContext, paths: JsonObject, isOpenApi32: boolean): void {
  const { random, framework } = context;
  const parameters: JsonObject[] = [];
  let path = `/${makeSegment(context)}`;
  for (let count = random.below(3); count > 0; count--) {
    const name = `${framework === 'fastapi' || framework === 'drf' ? `${makeSegment(context)}_id` : `${makeSegment(context)}Id`}${parameters.length}`;
    parameters.push(makePathParameter(context, name));
    path += `/{${name}}${random.chance(0.5) ? `/${makeSegment(context)}` : ''}`;
  }
  if (framework === 'drf') path += '/';
  const item: JsonObject = {};
  const methods = random.shuffle(['get', 'post', 'put', 'patch', 'delete']).slice(0, 1 + random.below(3));
  for (const method of methods) item[method] = makeOperation(context, { method, path, parameters, isOpenApi32 });
  if (isOpenApi32 && random.chance(0.4))
    item.query = makeOperation(context, { method: 'post', path: `${path}query`, parameters, isOpenApi32 });
  if (isOpenApi32 && random.chance(0.35)) {
    const method = random.pick(['COPY', 'PROPFIND', 'PURGE', 'LOCK', 'REPORT']);
    item.additionalOperations = {
      [method]: makeOperation(context, {
        method: random.pick(['get', 'post']),
        path: `${path}${method}`,
        parameters,
        isOpenApi32,
      }),
    };
  }
  if (!(path in paths)) paths[path] = item;
}

const makeSegment = ({ random }: GeneratorContext) =>
  random.pick('orders customers invoices items notes tickets devices users reports search bulk'.split(' '));

function makePathParameter({ random, framework }: GeneratorContext, name: string): JsonObject {
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

type OperationOptions = { method: string; path: string; parameters: JsonObject[]; isOpenApi32: boolean };

function makeOperation(
  context: GeneratorContext,
  { method, path, parameters, isOpenApi32 }: OperationOptions,
): JsonObject {
  const { framework } = context;
  const id = `${method}_${path.replaceAll(/\W+/g, '_')}`;
  const operation: JsonObject = {
    operationId: framework === 'fastapi' ? `${id.toLowerCase()}_${method}` : id,
    summary: `${method} ${makeSegment(context)}`,
    parameters: [...parameters, ...makeParameters(context, isOpenApi32)],
    responses: { '200': { description: 'OK', content: { 'application/json': { schema: {} } } } },
  };
  if (method !== 'get' && method !== 'delete') operation.requestBody = makeBody(context, isOpenApi32);
  return operation;
}

function makeParameters(context: GeneratorContext, isOpenApi32: boolean): JsonObject[] {
  const { random } = context;
  if (isOpenApi32 && random.chance(0.15)) return [makeQuerystring(context)];
  const created = new Map<string, JsonObject>();
  for (let count = random.below(5); count > 0; count--) {
    const parameter = random.pick(kinds)(context, isOpenApi32);
    const name = String(parameter.name).toLowerCase();
    if (!created.has(name)) created.set(name, parameter);
  }
  return [...created.values()];
}

const makeQuerystring = (context: GeneratorContext): JsonObject => ({
  name: 'filter',
  in: 'querystring',
  ...(context.random.chance(0.5) && { required: true }),
  content: context.random.chance(0.75)
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
    : { 'application/json': { schema: makeModel(context, 0) } },
});

type Kind = (context: GeneratorContext, isOpenApi32: boolean) => JsonObject;

const optional = (context: GeneratorContext) => (context.random.chance(0.3) ? { required: true } : {});
const nullable = (context: GeneratorContext, schema: JsonObject): JsonObject =>
  context.framework === 'fastapi' && context.random.chance(0.6) ? { anyOf: [schema, { type: 'null' }] } : schema;
const letters: JsonObject = { type: 'array', items: { type: 'string' } };

const query: Kind = (context) => ({
  name: makeName(context),
  in: 'query',
  ...optional(context),
  schema: nullable(context, makeSimple(context)),
});

const kinds: readonly Kind[] = [
  query,
  query,
  query,
  (context) => ({
    name: makeName(context),
    in: 'query',
    ...optional(context),
    schema: nullable(context, { type: 'array', items: makeSimple(context) }),
  }),
  (context) => ({ name: makeName(context), in: 'query', style: 'form', explode: false, schema: letters }),
  (context) => ({
    name: makeName(context),
    in: 'query',
    style: context.random.pick(['pipeDelimited', 'spaceDelimited']),
    explode: false,
    schema: letters,
  }),
  (context) => ({
    name: 'filter',
    in: 'query',
    style: 'deepObject',
    explode: true,
    schema: {
      type: 'object',
      properties: { status: { type: 'string' }, min: { type: 'integer' } },
      ...(context.random.chance(0.3) && { additionalProperties: { type: 'string' } }),
    },
  }),
  (context) => ({
    name: 'pageable',
    in: 'query',
    required: context.random.chance(0.5),
    schema: addSchema(
      context,
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
  (context) => ({ name: 'where', in: 'query', content: { 'application/json': { schema: makeModel(context, 1) } } }),
  (context) => ({
    name: context.random.pick(['X-Request-Id', 'If-Match', 'x-token', 'X-Api-Version', 'Accept-Language']),
    in: 'header',
    ...optional(context),
    schema: nullable(context, { type: 'string' }),
  }),
  (context) => ({
    name: 'X-Tags',
    in: 'header',
    ...optional(context),
    schema: { type: 'array', items: { type: 'integer' } },
  }),
  (context, isOpenApi32) => ({
    name: context.random.pick(['session', 'ads_id']),
    in: 'cookie',
    ...(isOpenApi32 && { style: 'cookie' }),
    schema: nullable(context, { type: 'string' }),
  }),
  (context, isOpenApi32) => ({
    name: 'path',
    in: 'query',
    ...(isOpenApi32 && { allowReserved: true }),
    ...optional(context),
    schema: { type: 'string' },
  }),
  (context) => ({
    name: context.random.pick(['$filter', 'ids[]', 'filter[name]', 'order-by', 'größe']),
    in: 'query',
    schema: context.random.chance(0.5) ? { type: 'string' } : letters,
  }),
];

function makeBody(context: GeneratorContext, isOpenApi32: boolean): JsonObject {
  const { random, framework } = context;
  const model = () =>
    random.chance(0.7)
      ? addSchema(context, makeModel(context), framework === 'drf' ? 'Request' : '')
      : makeModel(context);
  const content = random.pick<() => JsonObject>([
    () => makeJsonContent(context, model()),
    () => makeJsonContent(context, model()),
    () => makeJsonContent(context, model()),
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
    () => ({ 'application/x-www-form-urlencoded': makeForm(context) }),
    () => ({ 'multipart/form-data': makeMultipart(context) }),
    () => ({ 'multipart/form-data': makeMultipart(context) }),
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
    ...(isOpenApi32
      ? [() => ({ 'multipart/mixed': makeMultipart(context) })]
      : [() => ({ 'multipart/related': makeMultipart(context) })]),
  ])();
  return { ...(random.chance(0.8) && { required: true }), content };
}

function makeJsonContent({ framework, random }: GeneratorContext, schema: JsonObject): JsonObject {
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
function makeForm(context: GeneratorContext): JsonObject {
  const { random } = context;
  const properties: JsonObject = {
    [makeName(context)]: makeSimple(context),
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
function makeMultipart(context: GeneratorContext): JsonObject {
  const { random, framework } = context;
  const file: JsonObject =
    framework === 'fastapi' && random.chance(0.6)
      ? { type: 'string', contentMediaType: 'application/octet-stream' }
      : { type: 'string', format: 'binary' };
  const properties: JsonObject = { [makeName(context)]: makeSimple(context) };
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
      addSchema(context, makeModel(context, 1)),
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
