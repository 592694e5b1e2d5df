/** Generates OpenAPI 3.1 and 3.2 documents in the style of five frameworks from a seed. */
import type { Json, JsonObject } from '../json.ts';
import type { Random } from '../random.ts';
import {
  addSchema,
  arrayOf,
  frameworks,
  type GeneratorContext,
  integer,
  makeModel,
  makeName,
  makeSimple,
  objectOf,
  orNullType,
  string,
} from './framework-schemas.ts';
import type { Source } from './sources.ts';

const serverUrls = [
  ...['https://api.example.com/v1', 'https://api.example.com', '/api', 'https://{region}.example.com/{stage}'],
];
const variables = { region: { default: 'eu' }, stage: { default: 'live' } };

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
      ...(documentRandom.chance(0.7) && { servers: [{ url: documentRandom.pick(serverUrls), variables }] }),
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
    const options = { method: random.pick(['get', 'post']), path: `${path}${method}`, parameters, isOpenApi32 };
    item.additionalOperations = { [method]: makeOperation(context, options) };
  }
  if (!(path in paths)) paths[path] = item;
}

const makeSegment = ({ random }: GeneratorContext) =>
  random.pick('orders customers invoices items notes tickets devices users reports search bulk'.split(' '));

function makePathParameter({ random, framework }: GeneratorContext, name: string): JsonObject {
  const schema = random.pick<JsonObject>([
    string,
    { ...integer, format: 'int64' },
    { ...string, format: 'uuid' },
    { ...string, pattern: '^[a-z]{3}$' },
  ]);
  const place = { name, in: 'path', required: true };
  if (framework === 'springdoc' && random.chance(0.1)) return { ...place, style: 'matrix', schema: string };
  if (random.chance(0.05))
    return { ...place, style: random.pick(['simple', 'label']), schema: { ...arrayOf(string), minItems: 1 } };
  return { ...place, schema };
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
    ? { 'application/x-www-form-urlencoded': { schema: objectOf(querystringFields) } }
    : jsonContent(makeModel(context, 0)),
});

const querystringFields = { area: string, years: arrayOf(integer), isOpen: { type: 'boolean' } };
const jsonContent = (schema: Json): JsonObject => ({ 'application/json': { schema } });

type Kind = (context: GeneratorContext, isOpenApi32: boolean) => JsonObject;

const optional = (context: GeneratorContext) => (context.random.chance(0.3) ? { required: true } : {});
const nullable = (context: GeneratorContext, schema: JsonObject): JsonObject =>
  context.framework === 'fastapi' && context.random.chance(0.6) ? orNullType(schema) : schema;
const letters = arrayOf(string);
const inQuery = (name: string, more: JsonObject) => ({ name, in: 'query', ...more });
const page = { page: { ...integer, minimum: 0 }, size: { ...integer, minimum: 1 }, sort: string };

const query: Kind = (context) =>
  inQuery(makeName(context), { ...optional(context), schema: nullable(context, makeSimple(context)) });

const kinds: readonly Kind[] = [
  ...[query, query, query],
  (context) =>
    inQuery(makeName(context), { ...optional(context), schema: nullable(context, arrayOf(makeSimple(context))) }),
  (context) => inQuery(makeName(context), { style: 'form', explode: false, schema: letters }),
  (context) => {
    const name = makeName(context);
    const style = context.random.pick(['pipeDelimited', 'spaceDelimited']);
    return inQuery(name, { style, explode: false, schema: letters });
  },
  (context) => {
    const more = context.random.chance(0.3) && { additionalProperties: string };
    const schema = { ...objectOf({ status: string, min: integer }), ...more };
    return inQuery('filter', { style: 'deepObject', explode: true, schema });
  },
  (context) => {
    const required = context.random.chance(0.5);
    return inQuery('pageable', { required, schema: addSchema(context, objectOf(page), 'Pageable') });
  },
  (context) => inQuery('where', { content: jsonContent(makeModel(context, 1)) }),
  (context) => ({
    name: context.random.pick(['X-Request-Id', 'If-Match', 'x-token', 'X-Api-Version', 'Accept-Language']),
    in: 'header',
    ...optional(context),
    schema: nullable(context, string),
  }),
  (context) => ({ name: 'X-Tags', in: 'header', ...optional(context), schema: arrayOf(integer) }),
  (context, isOpenApi32) => ({
    name: context.random.pick(['session', 'ads_id']),
    in: 'cookie',
    ...(isOpenApi32 && { style: 'cookie' }),
    schema: nullable(context, string),
  }),
  (context, isOpenApi32) =>
    inQuery('path', { ...(isOpenApi32 && { allowReserved: true }), ...optional(context), schema: string }),
  (context) => {
    const name = context.random.pick(['$filter', 'ids[]', 'filter[name]', 'order-by', 'größe']);
    return inQuery(name, { schema: context.random.chance(0.5) ? string : letters });
  },
];

const binary = { ...string, format: 'binary' };
const octets = { ...string, contentMediaType: 'application/octet-stream' };

function makeBody(context: GeneratorContext, isOpenApi32: boolean): JsonObject {
  const { random, framework } = context;
  const model = () =>
    random.chance(0.7)
      ? addSchema(context, makeModel(context), framework === 'drf' ? 'Request' : '')
      : makeModel(context);
  const content = random.pick<() => JsonObject>([
    ...Array(3).fill(() => makeJsonContent(context, model())),
    () =>
      jsonContent(
        random.pick<Json>([
          ...[arrayOf(model()), string, arrayOf(integer), { type: 'object', additionalProperties: integer }],
        ]),
      ),
    () => ({ 'application/x-www-form-urlencoded': makeForm(context) }),
    ...Array(2).fill(() => ({ 'multipart/form-data': makeMultipart(context) })),
    () => ({
      [random.pick(['application/octet-stream', 'image/png', '*/*', 'image/*'])]: {
        schema: random.pick<JsonObject>([binary, {}, octets]),
      },
    }),
    () => ({ [random.pick(['text/plain', 'text/csv'])]: { schema: string } }),
    () => {
      const types = ['application/merge-patch+json', 'application/vnd.api+json', 'application/problem+json'];
      return { [random.pick(types)]: { schema: model() } };
    },
    () => ({ [isOpenApi32 ? 'multipart/mixed' : 'multipart/related']: makeMultipart(context) }),
  ])();
  return { ...(random.chance(0.8) && { required: true }), content };
}

function makeJsonContent({ framework, random }: GeneratorContext, schema: JsonObject): JsonObject {
  const forTypes = (...types: string[]) => Object.fromEntries(types.map((type) => [type, { schema }]));
  if (framework === 'aspnet' && random.chance(0.6))
    return forTypes('application/json', 'text/json', 'application/*+json');
  if (framework === 'drf' && random.chance(0.7))
    return forTypes('application/json', 'application/x-www-form-urlencoded', 'multipart/form-data');
  if (framework === 'springdoc' && random.chance(0.2)) return forTypes('application/json', 'application/xml');
  return jsonContent(schema);
}

const withEncoding = (schema: JsonObject, encoding: JsonObject): JsonObject => ({
  schema,
  ...(Object.keys(encoding).length > 0 && { encoding }),
});

/** Returns a form of simple values, lists, and objects, with encodings for some. */
function makeForm(context: GeneratorContext): JsonObject {
  const { random } = context;
  const properties: JsonObject = { [makeName(context)]: makeSimple(context), tags: letters };
  if (random.chance(0.5)) properties.address = objectOf({ city: string, zip: string });
  const encoding: JsonObject = {};
  if (random.chance(0.4)) encoding.tags = { style: 'form', explode: random.chance(0.5) };
  if (properties.address && random.chance(0.5))
    encoding.address = random.pick<JsonObject>([
      { style: 'deepObject', explode: true },
      { contentType: 'application/json' },
    ]);
  return withEncoding({ ...objectOf(properties), required: Object.keys(properties).slice(0, 1) }, encoding);
}

/** Returns a multipart body of fields, JSON parts, and files, as each framework describes uploads. */
function makeMultipart(context: GeneratorContext): JsonObject {
  const { random, framework } = context;
  const file = framework === 'fastapi' && random.chance(0.6) ? octets : binary;
  const properties: JsonObject = { [makeName(context)]: makeSimple(context) };
  const encoding: JsonObject = {};
  const add = (name: string, schema: JsonObject, one?: JsonObject) => {
    properties[name] = schema;
    if (one) encoding[name] = one;
  };
  const sometimes = (probability: number, one: () => JsonObject) => (random.chance(probability) ? one() : undefined);
  if (random.chance(0.8)) {
    const schema = random.chance(0.3) ? orNullType(file) : file;
    const fileTypes = ['image/png', 'image/png, image/jpeg', 'application/pdf'];
    add(
      'file',
      schema,
      sometimes(0.3, () => ({ contentType: random.pick(fileTypes) })),
    );
  }
  if (random.chance(0.3)) add('files', arrayOf(file));
  if (random.chance(0.4)) {
    const schema = addSchema(context, makeModel(context, 1));
    add(
      'metadata',
      schema,
      sometimes(0.6, () => ({ contentType: 'application/json' })),
    );
  }
  if (random.chance(0.3)) add('tags', letters);
  if (random.chance(0.2)) add('note', string, { contentType: 'text/markdown' });
  if (framework === 'aspnet' && random.chance(0.5))
    for (const name of Object.keys(properties)) encoding[name] = { style: 'form' };
  const required = Object.keys(properties).filter(() => random.chance(0.4));
  return withEncoding({ ...objectOf(properties), required }, encoding);
}
