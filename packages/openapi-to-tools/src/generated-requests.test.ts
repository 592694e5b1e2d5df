import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getValidConfig, planDocument } from '../../../test/support/import/import-plans.ts';
import { type ExampleRequest, requestWriters } from '../../../test/support/import/request-formats.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { assertAlwaysSync } from '../../../test/support/properties.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';

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

describe('import of generated requests', () => {
  for (const [format, write] of Object.entries(requestWriters))
    it(`[imp 2] creates a tool for every request of a ${format} document that can send it unchanged`, () => {
      assertAlwaysSync(600, [fc.array(request, { minLength: 1, maxLength: 5 })], (requests) => {
        const plan = planDocument(write(requests));
        const lossy = plan.all.filter(({ outcome }) => outcome === 'skipped' || outcome === 'partial');
        assert.deepEqual(pluck(lossy, 'notes'), []);
        const tools = getValidConfig(plan).tools as Tool[];
        for (const sent of requests) {
          const reasons = tools.map((tool) => findObstacle(tool, sent));
          assert.ok(reasons.includes(undefined), JSON.stringify({ sent, reasons, tools }));
        }
      });
    });
});
