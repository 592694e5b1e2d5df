import type { Json } from '../toolhost/toolhost.ts';

/**
 * Request that an operation should send, derived from the description without any code of the importer. It uses only
 * inputs whose value is obvious, and omits an operation with a required input of another kind.
 */
export type ExpectedRequest = {
  method: string;
  /** Operation as written in the description, such as `GET /pets`. */
  operation: string;
  /** Values by their names on the wire. */
  inputs: { path: Json; query: Json; header: Json; body: Json };
  path: string;
  query: [string, string][];
  headers: [string, string][];
  body: { kind: 'json'; value: Json } | { kind: 'form'; pairs: [string, string][] } | undefined;
};

const text = 'a&b =ö/+';

function resolveReference(root: Json, value: unknown): Json {
  let target = value as Json;
  for (let hops = 0; typeof target?.$ref === 'string' && hops < 20; hops++) {
    const steps = target.$ref.slice(2).split('/');
    target = steps.reduce<unknown>(
      (at, step) => (at as Json)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
      root,
    ) as Json;
  }
  return target ?? {};
}

/** Returns a value that a schema allows, or undefined if none is obvious. */
function valueFor(schema: Json, isInPath: boolean): unknown {
  const isPlain = [
    'enum',
    'const',
    'pattern',
    'format',
    'oneOf',
    'anyOf',
    'allOf',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
  ].every((keyword) => schema[keyword] === undefined);
  if (!isPlain && schema.enum === undefined) return undefined;
  if (Array.isArray(schema.enum))
    return schema.enum.length > 1 && schema.type === 'string' ? schema.enum[0] : undefined;
  if (schema.type === 'string') return isInPath ? text.replaceAll('/', '') : text;
  if (schema.type === 'integer') return 7;
  return schema.type === 'boolean' ? true : undefined;
}

export function listExpectedRequests(root: Json): ExpectedRequest[] {
  const requests: ExpectedRequest[] = [];
  for (const [path, item] of Object.entries(root.paths as Record<string, Json>)) {
    for (const method of ['get', 'post', 'put', 'patch', 'delete']) {
      const operation = item[method] as Json | undefined;
      const expected =
        operation && !operation.deprecated ? buildExpectedRequest(root, { path, method, item, operation }) : undefined;
      if (expected) requests.push(expected);
    }
  }
  return requests;
}

type OperationInput = { path: string; method: string; item: Json; operation: Json };

function buildExpectedRequest(
  root: Json,
  { path, method, item, operation }: OperationInput,
): ExpectedRequest | undefined {
  const expected: ExpectedRequest = {
    method: method.toUpperCase(),
    operation: `${method.toUpperCase()} ${path}`,
    inputs: { path: {}, query: {}, header: {}, body: {} },
    path,
    query: [],
    headers: [],
    body: undefined,
  };
  if (operation.servers !== undefined || item.servers !== undefined || /[?#:]/.test(path)) return undefined;
  const parameters = [...((item.parameters ?? []) as unknown[]), ...((operation.parameters ?? []) as unknown[])];
  for (const raw of parameters) if (!addParameter(root, resolveReference(root, raw), expected)) return undefined;
  if (/[{}]/.test(expected.path)) return undefined;
  if (operation.requestBody !== undefined && !addBody(root, resolveReference(root, operation.requestBody), expected))
    return undefined;
  return expected;
}

/** Adds a parameter. Returns false if it is required and has no obvious value. */
function addParameter(root: Json, parameter: Json, expected: ExpectedRequest): boolean {
  const name = parameter.name as string;
  const location = parameter.in as keyof ExpectedRequest['inputs'] | 'cookie';
  const schema = resolveReference(root, parameter.schema);
  if (location === 'cookie' || /^(?:authorization|token|accept|content-type)$/i.test(name))
    return parameter.required !== true;
  if (
    location === 'query' &&
    schema.type === 'array' &&
    resolveReference(root, schema.items).type === 'string' &&
    resolveReference(root, schema.items).enum === undefined &&
    parameter.style === undefined &&
    schema.items !== undefined &&
    valueFor(resolveReference(root, schema.items), false) !== undefined
  ) {
    expected.inputs.query[name] = ['one', 'two'];
    if (parameter.explode === false) expected.query.push([name, 'one,two']);
    else expected.query.push([name, 'one'], [name, 'two']);
    return true;
  }
  const value =
    location === 'header' && schema.type === 'string' && schema.enum === undefined
      ? 'plain'
      : valueFor(schema, location === 'path');
  if (value === undefined || parameter.content !== undefined) return parameter.required !== true;
  expected.inputs[location][name] = value;
  if (location === 'path') expected.path = expected.path.replace(`{${name}}`, encodeURIComponent(String(value)));
  else if (location === 'query') expected.query.push([name, String(value)]);
  else expected.headers.push([name.toLowerCase(), String(value)]);
  return true;
}

function addBody(root: Json, body: Json, expected: ExpectedRequest): boolean {
  const contents = (body.content ?? {}) as Record<string, Json>;
  const mediaType = 'application/json' in contents ? 'application/json' : 'application/x-www-form-urlencoded';
  const schema = resolveReference(root, contents[mediaType]?.schema);
  if (expected.method === 'GET') return body.required !== true;
  if (schema.type !== 'object' || schema.allOf || schema.oneOf || schema.anyOf) return false;
  const required = new Set((schema.required ?? []) as string[]);
  for (const [name, raw] of Object.entries((schema.properties ?? {}) as Json)) {
    const property = resolveReference(root, raw);
    const value = property.readOnly === true ? undefined : valueFor(property, false);
    if (value !== undefined && name !== 'token') expected.inputs.body[name] = value;
    else if (required.has(name)) return false;
  }
  if (Object.keys(expected.inputs.body).length === 0) return false;
  expected.body =
    mediaType === 'application/json'
      ? { kind: 'json', value: expected.inputs.body }
      : {
          kind: 'form',
          pairs: Object.entries(expected.inputs.body).map(([name, value]): [string, string] => [name, String(value)]),
        };
  return true;
}
