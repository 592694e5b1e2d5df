import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getValidConfig, openApi, planDocument } from '../../../test/support/import/import-plans.ts';
import { type ExampleRequest, requestWriters } from '../../../test/support/import/request-formats.ts';
import { assertAlwaysSync } from '../../../test/support/properties.ts';
import { boolean, integer, listOf, object, pluck, text } from '../../../test/support/schemas.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';
import type { ImportPlan } from './plan/plan-import.ts';

type Tool = { name: string; method: string; url: string; headers?: Json; body?: string; input_schema: Json };
type Argument = { wire: string; location: string; schema: Json; required: boolean; value: unknown };

/** Returns the arguments of a tool by location and name on the wire. */
function getArguments({ method, input_schema: inputSchema, body, url }: Tool): Map<string, Argument> {
  const isSchema = inputSchema.type === 'object' && typeof inputSchema.properties === 'object';
  const definitions = (isSchema ? inputSchema.properties : inputSchema) as Record<string, Json>;
  const listed = (isSchema ? (inputSchema.required ?? []) : undefined) as string[] | undefined;
  const isRead =
    /^(?:GET|DELETE|HEAD|OPTIONS)$/.test(method) || (body !== undefined && !/^(?:json|form|multipart)$/.test(body));
  const inUrl = new Set([...url.matchAll(/:([A-Za-z_][\w.-]*)/g)].map((match) => match[1] as string));
  const entries = Object.entries(definitions).map(([name, schema]): [string, Argument] => {
    const fixedLocation = name === body ? 'whole' : inUrl.has(name) ? 'url' : undefined;
    const location = fixedLocation ?? (schema.in as string | undefined) ?? (isRead ? 'query' : 'body');
    const wire = (schema.wire_name as string | undefined) ?? name;
    const required = listed ? listed.includes(name) : schema.optional !== true;
    const key = `${location} ${location === 'header' ? wire.toLowerCase() : wire}`;
    return [key, { wire, location, schema, required, value: schema.value }];
  });
  return new Map(entries);
}

/** Returns true if a schema accepts a value and names all of its fields. An empty schema accepts everything. */
function acceptsValue(schema: Json, value: unknown): boolean {
  const types = [schema.type ?? []].flat() as string[];
  const isType = (type: string) => types.length === 0 || types.includes(type);
  if (Array.isArray(value))
    return isType('array') && value.every((one) => acceptsValue((schema.items ?? {}) as Json, one));
  if (value === null) return types.length === 0 || types.includes('null');
  if (typeof value === 'object') {
    const properties = schema.properties as Record<string, Json> | undefined;
    if (properties === undefined) return isType('object');
    // A name that clients reject is not in the schema, but in the report.
    const isNamed = (name: string) => Object.hasOwn(properties, name) || !/^[\w.-]+$/.test(name);
    const accepts = ([name, one]: [string, unknown]) => isNamed(name) && acceptsValue(properties[name] ?? {}, one);
    return isType('object') && Object.entries(value).every(accepts);
  }
  if (typeof value === 'number') return isType('number') || (Number.isInteger(value) && isType('integer'));
  return isType(typeof value);
}

/** Returns true if a schema accepts string values of a URL or form. A single value is also a list of one. */
function acceptsStrings(schema: Json, values: readonly string[]): boolean {
  const toInterpretations = (text: string) => [text, Number(text), text === 'true'];
  const isAccepted = (one: Json) =>
    values.every((text) => toInterpretations(text).some((value) => acceptsValue(one, value)));
  const isList = [schema.type].flat().includes('array');
  return (isList && isAccepted((schema.items ?? {}) as Json)) || (values.length === 1 && isAccepted(schema));
}

/** Returns the reason why a tool cannot send exactly this request, or undefined if it can. */
function findObstacle(tool: Tool, { method, url, headers = {}, body, form }: ExampleRequest): string | undefined {
  const requestUrl = new URL(url);
  const [route = '', constants = ''] = tool.url.split('?');
  const toPattern = (segment: string) => (segment.startsWith(':') ? '[^/]+' : segment.replaceAll('.', '\\.'));
  const segments = route.split('/').map(toPattern);
  if (tool.method !== method || !new RegExp(`^${segments.join('/')}$`).test(requestUrl.pathname)) return 'address';
  const args = getArguments(tool);
  const usedArguments = new Set<string>();
  const fixed = new URLSearchParams(constants);
  for (const name of new Set([...requestUrl.searchParams.keys(), ...fixed.keys()])) {
    const values = requestUrl.searchParams.getAll(name);
    const argument = args.get(`query ${name}`);
    usedArguments.add(`query ${name}`);
    if (fixed.has(name) ? fixed.get(name) !== values.join() : !argument || !acceptsStrings(argument.schema, values))
      return `query ${name}`;
  }
  for (const [name, value] of Object.entries(tool.headers ?? {}))
    if (!/^(?:accept|content-type)$/i.test(name) && headers[name] !== value) return `constant header ${name}`;
  for (const name of Object.keys(headers)) {
    usedArguments.add(`header ${name.toLowerCase()}`);
    if (!args.has(`header ${name.toLowerCase()}`) && !Object.hasOwn(tool.headers ?? {}, name)) return `header ${name}`;
  }
  for (const [name, value] of Object.entries(form ?? {})) {
    const argument = args.get(`body ${name}`);
    usedArguments.add(`body ${name}`);
    if (tool.body !== 'form' || !argument) return `form ${name}`;
    if (argument.value === undefined ? !acceptsStrings(argument.schema, [String(value)]) : argument.value !== value)
      return `form ${name}`;
  }
  const wholeArgument = [...args.values()].find(({ location }) => location === 'whole');
  if (body !== undefined && wholeArgument) {
    usedArguments.add(`whole ${wholeArgument.wire}`);
    if (!acceptsValue(wholeArgument.schema, body)) return 'body';
  } else if (body !== undefined) {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'body';
    for (const [name, value] of Object.entries(body)) {
      const argument = args.get(`body ${name}`);
      usedArguments.add(`body ${name}`);
      const isSent =
        argument &&
        (argument.value === undefined
          ? acceptsValue(argument.schema, value)
          : argument.value === value || name === 'id');
      if (!isSent) return `body ${name}`;
    }
  }
  const unused = [...args].filter(([key, { location }]) => location !== 'url' && !usedArguments.has(key));
  const missing = unused.find(([, { required }]) => required);
  return missing && `needs ${missing[0]}`;
}

const word = fc.constantFrom('open', 'list', 'users', 'north', '5', 'true', 'a b', '', 'x&y');
const names = fc.constantFrom('m', 'action', 'status', 'page', 'ids[]', 'q', 'type', 'f[name]', 'constructor', 'ä b');
const leaf = fc.oneof(
  word,
  fc.integer({ min: -5, max: 5 }),
  fc.boolean(),
  fc.constant(null),
  fc.double({ noNaN: true, min: 0.5, max: 1 }),
);
const json = fc.oneof(
  { weight: 3, arbitrary: leaf },
  fc.array(leaf, { maxLength: 3 }),
  fc.array(fc.dictionary(fc.constantFrom('sku', 'count'), leaf), { maxLength: 3 }),
  fc.dictionary(fc.constantFrom('id', 'more', 'list'), fc.oneof(leaf, fc.array(leaf, { maxLength: 2 }))),
);
const called = fc.oneof(
  fc.record({
    jsonrpc: fc.constant('2.0'),
    id: fc.constant(3),
    method: fc.constantFrom('user.get', 'user.drop'),
    params: fc.dictionary(fc.constantFrom('id', 'by'), leaf),
  }),
  fc.record({
    query: fc.constantFrom('query A($id: ID) { a(id: $id) }', '{ b }', 'mutation C { c }'),
    variables: fc.constantFrom({ id: 'x' }, { id: 'y', by: null }),
  }),
);
const fieldNames = fc.constantFrom('name', 'action', 'type', 'items', 'note', 'ä b', 'method');
const bodies = fc.oneof(
  { weight: 4, arbitrary: fc.dictionary(fieldNames, json, { minKeys: 1, maxKeys: 4 }) },
  { weight: 2, arbitrary: called },
  fc.array(json, { minLength: 1, maxLength: 2 }),
);
const request = fc
  .record({
    path: fc.constantFrom('/things', '/things/17', '/index.php', '/api'),
    query: fc.array(fc.tuple(names, word), { maxLength: 4 }),
    headers: fc.dictionary(fc.constantFrom('X-Region', 'X-Mode', 'X-Action'), fc.constantFrom('eu', 'us', 'a b')),
    content: fc.oneof(
      fc.constant({ method: 'GET' }),
      bodies.map((body) => ({ method: 'POST', body })),
      fc.dictionary(fieldNames, word, { minKeys: 1, maxKeys: 3 }).map((form) => ({ method: 'POST', form })),
    ),
    name: fc.constantFrom('One', 'Another', 'A third'),
  })
  .map(({ path, query, headers, content, name }): ExampleRequest => {
    const search = query.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&');
    return { url: `https://api.example.com${path}${search && `?${search}`}`, headers, name, ...content };
  });

const getTools = (plan: ImportPlan) => getValidConfig(plan).tools as Tool[];
const choose = (...values: string[]) => ({ type: 'string', enum: values });

type DescribedOperation = {
  method: string;
  route: string;
  inputs: { name: string; in: string; schema: Json; required: boolean }[];
  content: { type: string; fields: Json; required: string[] } | undefined;
};

const schemaArbitrary: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom(text, integer, boolean, listOf(text)),
  fc.constantFrom<Json>(choose('only'), choose('a', 'b'), { type: 'integer', enum: [1] }),
);
const described: fc.Arbitrary<DescribedOperation> = fc
  .record({
    method: fc.constantFrom('get', 'post', 'put', 'delete', 'patch'),
    route: fc.constantFrom('/things', '/v1/things', '/index.php?m=list', '/rpc#method=x', '/a.b'),
    inputs: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('id', 'page', 'filter[name]', 'X-Mode', 'constructor', 'ä b', '$top', 'body', 'ids[]'),
        in: fc.constantFrom('path', 'query', 'query', 'header', 'cookie'),
        schema: schemaArbitrary,
        required: fc.boolean(),
      }),
      { maxLength: 5, selector: (input) => `${input.in} ${input.name}` },
    ),
    content: fc.option(
      fc.record({
        type: fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'),
        fields: fc.dictionary(fc.constantFrom('id', 'name', 'ä b', 'constructor', 'ids'), schemaArbitrary, {
          minKeys: 1,
          maxKeys: 4,
        }),
        required: fc.subarray(['id', 'name', 'ids']),
      }),
      { nil: undefined },
    ),
  })
  .map(({ route, inputs, method, content }) => {
    const [path = '', suffix = ''] = route.split(/(?=[?#])/);
    // Lists in a path and header names with non-ASCII characters are not valid parameters.
    const usable = inputs.filter(
      (one) => (one.in !== 'path' || one.schema.type !== 'array') && (one.in !== 'header' || /^[\w-]+$/.test(one.name)),
    );
    const pathSegments = usable.filter((one) => one.in === 'path').map(({ name }) => `/{${name}}`);
    const isRead = method === 'get' || method === 'delete';
    return {
      method,
      route: `${path}${pathSegments.join('')}${suffix}`,
      inputs: usable,
      content: isRead ? undefined : content,
    };
  });
const operations = fc.uniqueArray(described, {
  minLength: 1,
  maxLength: 4,
  selector: ({ method, route }) => `${method} ${route}`,
});

function createPaths(all: readonly DescribedOperation[], createOperation: (one: DescribedOperation) => Json): Json {
  const paths: Record<string, Json> = {};
  for (const one of all) paths[one.route] = { ...paths[one.route], [one.method]: createOperation(one) };
  return paths;
}

const toSchema = ({ fields, required }: NonNullable<DescribedOperation['content']>) => object(fields, required);
const responses = { 200: { description: 'ok' } };
const descriptions: Record<string, (all: readonly DescribedOperation[]) => Json> = {
  'OpenAPI 3': (all) =>
    openApi(
      createPaths(all, ({ inputs, content }) => ({
        parameters: inputs.map((input) => ({ ...input, required: input.required || input.in === 'path' })),
        ...(content && { requestBody: { required: true, content: { [content.type]: { schema: toSchema(content) } } } }),
        responses,
      })),
    ),
  'Swagger 2': (all) => ({
    swagger: '2.0',
    info: { title: 'Things', version: '1' },
    host: 'api.example.com',
    paths: createPaths(all, ({ inputs, content }) => {
      const isForm = content && content.type !== 'application/json';
      const fields = Object.entries(content?.fields ?? {}).map(([name, field]) => ({
        name,
        in: 'formData',
        required: content?.required.includes(name) === true,
        ...(field as Json),
      }));
      return {
        ...(content && { consumes: [content.type] }),
        parameters: [
          ...inputs.filter((input) => input.in !== 'cookie').map(({ schema: own, ...input }) => ({ ...input, ...own })),
          ...(isForm
            ? fields
            : content
              ? [{ name: 'body', in: 'body', required: true, schema: toSchema(content) }]
              : []),
        ],
        responses,
      };
    }),
  }),
};

/** Returns the parts of an operation that are neither in its tool nor in its report. */
function findLostParts(one: DescribedOperation, plan: ImportPlan, isSwagger: boolean): string[] {
  const key = `${one.method.toUpperCase()} ${one.route}`;
  const planned = plan.all.find(({ operation }) => `${operation.method} ${operation.path}` === key);
  if (!planned?.tool) return planned && planned.notes.length > 0 ? [] : [key];
  const tool = planned.tool as Tool;
  const args = getArguments(tool);
  const noteText = planned.notes.join('\n');
  const constants = new URLSearchParams(tool.url.split('?')[1]);
  const isThere = (location: string, name: string, schema: Json, required: boolean): boolean => {
    if (noteText.includes(JSON.stringify(name))) return true;
    const [onlyValue, ...more] = (schema.enum ?? []) as unknown[];
    const isFixed = onlyValue !== undefined && more.length === 0 && required;
    if (isFixed && location === 'query' && constants.get(name) === String(onlyValue)) return true;
    if (isFixed && location === 'header' && tool.headers?.[name] === String(onlyValue)) return true;
    const wholeArgument = [...args.values()].find((argument) => argument.location === 'whole');
    const properties = (wholeArgument?.schema.properties ?? {}) as Record<string, Json>;
    const listed = location === 'body' && Object.hasOwn(properties, name) ? properties[name] : undefined;
    const argument = args.get(`${location} ${location === 'header' ? name.toLowerCase() : name}`);
    if (location === 'body' && wholeArgument && !listed) return noteText.includes(name);
    const foundSchema = listed ?? argument?.schema;
    const values =
      isFixed && argument?.value !== undefined
        ? [argument.value]
        : ((foundSchema?.enum ?? (foundSchema?.items as Json | undefined)?.enum ?? []) as unknown[]);
    return foundSchema !== undefined && JSON.stringify(values) === JSON.stringify(schema.enum ?? []);
  };
  const pathInputs = one.inputs.filter((input) => input.in === 'path');
  const tokens = [...args.values()].filter(({ location }) => location === 'url');
  const otherInputs = one.inputs.filter((input) => input.in !== 'path' && !(isSwagger && input.in === 'cookie'));
  return [
    ...(tokens.length === pathInputs.length ? [] : ['path']),
    ...otherInputs
      .filter((input) => !isThere(input.in, input.name, input.schema, input.required))
      .map(({ name }) => name),
    ...Object.entries(one.content?.fields ?? {})
      .filter(([name, schema]) => !isThere('body', name, schema as Json, one.content?.required.includes(name) === true))
      .map(([name]) => `body ${name}`),
    ...(/[?]m=list/.test(one.route) && constants.get('m') !== 'list' ? ['m=list'] : []),
  ];
}

describe('import of generated documents', () => {
  for (const [format, write] of Object.entries(requestWriters))
    it(`[imp 2] creates a tool for every request of a ${format} document that can send it unchanged`, () => {
      assertAlwaysSync(600, [fc.array(request, { minLength: 1, maxLength: 5 })], (requests) => {
        const plan = planDocument(write(requests));
        const lossy = plan.all.filter(({ outcome }) => outcome === 'skipped' || outcome === 'partial');
        assert.deepEqual(pluck(lossy, 'notes'), []);
        const tools = getTools(plan);
        for (const sent of requests) {
          const reasons = tools.map((tool) => findObstacle(tool, sent));
          assert.ok(reasons.includes(undefined), JSON.stringify({ sent, reasons, tools }));
        }
      });
    });

  for (const [format, write] of Object.entries(descriptions))
    it(`[imp 2] puts every operation, parameter, value, and field of a ${format} document into a tool or its report`, () => {
      assertAlwaysSync(600, [operations], (all) => {
        const plan = planDocument(write(all));
        getTools(plan);
        for (const one of all) {
          const planned = plan.all.map(({ notes, tool }) => ({ notes, tool }));
          const lost = findLostParts(one, plan, format === 'Swagger 2');
          assert.deepEqual(lost, [], JSON.stringify({ one, planned }));
        }
      });
    });
});
