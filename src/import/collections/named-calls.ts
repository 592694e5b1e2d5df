import { mediaTypeOf } from '../../domain/http/headers.ts';
import { asText, entriesOf, field, isFields, type JsonFields } from '../document/lenient.ts';
import type { ApiBody } from '../model.ts';
import { withFixedFields } from './actions.ts';

/**
 * Call of a protocol that uses one address for all operations: GraphQL, JSON-RPC, SOAP, XML-RPC. Requests with the same
 * `key` are the same operation.
 */
export type NamedCall = { name: string; key: string; body: ApiBody | undefined };

type Sent = { headers: readonly (readonly [name: string, value: string])[]; mediaType: string; text: string };

/** Returns the call that a request makes. `body` is its body, read like that of any request. */
export function namedCall(sent: Sent, body: ApiBody | undefined): NamedCall | undefined {
  const target = sent.headers.find(([name]) => /^(?:soapaction|x-amz-target)$/i.test(name))?.[1] ?? '';
  const inType = /;\s*action="?([^";]+)/i.exec(sent.mediaType)?.[1] ?? '';
  const action = target.replaceAll('"', '').trim() || inType;
  if (action !== '' && !action.includes('{{')) return { name: lastWord(action), key: action, body };
  const properties = field(body?.contents[0]?.schema, 'properties');
  if (isFields(properties)) return graphqlCall(properties, body) ?? jsonRpcCall(properties, body);
  return /[/+]xml$/.test(mediaTypeOf(sent.mediaType)) ? xmlCall(sent.text, body) : undefined;
}

/** Returns the last word of an action: `http://tempuri.org/GetUser` → `GetUser`. */
function lastWord(action: string): string {
  return action.split(/[/#:.]/).findLast((word) => word !== '') ?? action;
}

function jsonRpcCall(properties: JsonFields, body: ApiBody | undefined): NamedCall | undefined {
  const method = asText(exampleOf(properties, 'method'));
  if (properties.jsonrpc === undefined || method === '') return undefined;
  // A call without an ID is a notification, which has no response (JSON-RPC 2.0, 4.1). A single call can always use ID
  // 1.
  const id = properties.id !== undefined && { id: 1 };
  const jsonrpc = asText(exampleOf(properties, 'jsonrpc')) || '2.0';
  return { name: method, key: method, body: withFixedFields(body, fixedFields({ jsonrpc, method, ...id })) };
}

function fixedFields(constants: Readonly<Record<string, string | number>>) {
  return Object.entries(constants).map(([name, value]) => ({ trail: [name], value }));
}

function exampleOf(properties: JsonFields, name: string): unknown {
  return field(field(properties, name), 'example');
}

function graphqlCall(properties: JsonFields, body: ApiBody | undefined): NamedCall | undefined {
  const query = asText(exampleOf(properties, 'query'));
  if (!/^(?:\s|#[^\n]*\n)*(?:(?:query|mutation|subscription|fragment)\b|\{)/.test(query) || query.includes('{{'))
    return undefined;
  const operationName = asText(exampleOf(properties, 'operationName'));
  const name =
    operationName ||
    /\b(?:query|mutation|subscription)\s+(\w+)/.exec(query)?.[1] ||
    (/\{\s*(\w+)/.exec(query)?.[1] ?? 'query');
  const variables = collectVariables(query, field(properties, 'variables'));
  const constants = { query, ...(operationName !== '' && { operationName }) };
  const fixed = withFixedFields(body, fixedFields(constants));
  const [content] = fixed?.contents ?? [];
  if (!fixed || !content || !isFields(content.schema)) return undefined;
  const { variables: _, operationName: _name, ...others } = content.schema.properties as JsonFields;
  const schema = {
    ...content.schema,
    properties: {
      ...others,
      ...(operationName !== '' && { operationName: { type: 'string', enum: [operationName] } }),
      ...(variables && { variables }),
    },
    required: [...Object.keys(constants), ...(variables?.required.length ? ['variables'] : [])],
  };
  const key = `${operationName} ${query.replaceAll(/\s+/g, ' ')}`;
  return { name, key, body: { ...fixed, contents: [{ ...content, schema }] } };
}

const scalars: ReadonlyMap<string, string> = new Map(
  Object.entries({ Int: 'integer', Float: 'number', Boolean: 'boolean', String: 'string', ID: 'string' }),
);

/**
 * Returns the variables that a query declares, such as `$first: Int!`, with the values from the request (GraphQL,
 * 2.10).
 */
function collectVariables(query: string, given: unknown): (JsonFields & { required: string[] }) | undefined {
  const properties = new Map(entriesOf(field(given, 'properties')));
  const required: string[] = [];
  for (const [, name = '', type = '', fallback] of query.matchAll(/\$(\w+)\s*:\s*([[\]\w!]{1,200})(\s*=)?/g)) {
    properties.set(name, schemaOfType(type, properties.get(name)));
    if (type.endsWith('!') && fallback === undefined && !required.includes(name)) required.push(name);
  }
  return properties.size === 0 ? undefined : { type: 'object', properties: Object.fromEntries(properties), required };
}

function schemaOfType(type: string, given: unknown): unknown {
  const plain = type.replace(/!$/, '');
  if (plain.startsWith('['))
    return { type: 'array', items: schemaOfType(plain.slice(1).replace(/\]$/, ''), field(given, 'items')) };
  const scalar = scalars.get(plain);
  const example = field(given, 'example');
  return scalar === undefined ? (given ?? {}) : { type: scalar, ...(example !== undefined && { example }) };
}

/** Returns the call of an XML body: the first element of a SOAP body, the XML-RPC method, or the root element. */
function xmlCall(text: string, body: ApiBody | undefined): NamedCall | undefined {
  const name =
    /<methodName>\s*([\w.:/-]+)\s*<\/methodName>/.exec(text)?.[1] ??
    /<(?:[\w.-]+:)?Body\b[^<>]*>\s*<(?:[\w.-]+:)?([\w.-]+)/.exec(text)?.[1] ??
    /<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)/.exec(text)?.[1];
  return name === undefined ? undefined : { name, key: name, body };
}
