import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { getField, isFields, type JsonFields, toEntries, toText } from '../document/lenient.ts';
import type { ApiBody } from '../model.ts';
import { fixFields } from './actions.ts';

/**
 * Call of a protocol that uses one address for all operations: GraphQL, JSON-RPC, SOAP, XML-RPC. Requests with the same
 * `key` are the same operation.
 */
export type NamedCall = { name: string; key: string; body: ApiBody | undefined };

type SentRequest = { headers: readonly (readonly [name: string, value: string])[]; mediaType: string; text: string };

/** Returns the call that a request makes. `body` describes the request's body. */
export function findNamedCall(request: SentRequest, body: ApiBody | undefined): NamedCall | undefined {
  const target = request.headers.find(([name]) => /^(?:soapaction|x-amz-target)$/i.test(name))?.[1] ?? '';
  // In SOAP 1.2, the media type has the action.
  const typeAction = /;\s*action="?([^";]+)/i.exec(request.mediaType)?.[1] ?? '';
  const action = target.replaceAll('"', '').trim() || typeAction;
  if (action !== '' && !action.includes('{{')) return { name: getLastWord(action), key: action, body };
  const properties = getField(body?.contents[0]?.schema, 'properties');
  if (isFields(properties)) return findGraphqlCall(properties, body) ?? findJsonRpcCall(properties, body);
  return /[/+]xml$/.test(parseMediaType(request.mediaType)) ? findXmlCall(request.text, body) : undefined;
}

/** Returns the last word of an action: `http://tempuri.org/GetUser` → `GetUser`. */
function getLastWord(action: string): string {
  return action.split(/[/#:.]/).findLast((word) => word !== '') ?? action;
}

function findJsonRpcCall(properties: JsonFields, body: ApiBody | undefined): NamedCall | undefined {
  const method = toText(getExample(properties, 'method'));
  if (properties.jsonrpc === undefined || method === '') return undefined;
  // A call without an ID is a notification, which has no response (JSON-RPC 2.0, 4.1). IDs only have to differ within
  // one request, so every call uses ID 1.
  const id = properties.id !== undefined && { id: 1 };
  const jsonrpc = toText(getExample(properties, 'jsonrpc')) || '2.0';
  return { name: method, key: method, body: fixFields(body, toFixedFields({ jsonrpc, method, ...id })) };
}

function toFixedFields(constants: Readonly<Record<string, string | number>>) {
  return Object.entries(constants).map(([name, value]) => ({ trail: [name], value }));
}

function getExample(properties: JsonFields, name: string): unknown {
  return getField(getField(properties, name), 'example');
}

function findGraphqlCall(properties: JsonFields, body: ApiBody | undefined): NamedCall | undefined {
  const query = toText(getExample(properties, 'query'));
  if (!/^(?:\s|#[^\n]*\n)*(?:(?:query|mutation|subscription|fragment)\b|\{)/.test(query) || query.includes('{{'))
    return undefined;
  const operationName = toText(getExample(properties, 'operationName'));
  const name =
    operationName ||
    /\b(?:query|mutation|subscription)\s+(\w+)/.exec(query)?.[1] ||
    (/\{\s*(\w+)/.exec(query)?.[1] ?? 'query');
  const variables = collectVariables(query, getField(properties, 'variables'));
  const constants = { query, ...(operationName !== '' && { operationName }) };
  const fixedBody = fixFields(body, toFixedFields(constants));
  const [content] = fixedBody?.contents ?? [];
  if (!fixedBody || !content || !isFields(content.schema)) return undefined;
  const { variables: _, operationName: _name, ...otherProperties } = content.schema.properties as JsonFields;
  const schema = {
    ...content.schema,
    properties: {
      ...otherProperties,
      ...(operationName !== '' && { operationName: { type: 'string', enum: [operationName] } }),
      ...(variables && { variables }),
    },
    required: [...Object.keys(constants), ...(variables?.required.length ? ['variables'] : [])],
  };
  const key = `${operationName} ${query.replaceAll(/\s+/g, ' ')}`;
  return { name, key, body: { ...fixedBody, contents: [{ ...content, schema }] } };
}

const scalars: ReadonlyMap<string, string> = new Map(
  Object.entries({ Int: 'integer', Float: 'number', Boolean: 'boolean', String: 'string', ID: 'string' }),
);

/**
 * Returns the variables that a query declares, such as `$first: Int!`, with the values from the request (GraphQL,
 * 2.10).
 */
function collectVariables(query: string, requestVariables: unknown): (JsonFields & { required: string[] }) | undefined {
  const properties = new Map(toEntries(getField(requestVariables, 'properties')));
  const required: string[] = [];
  for (const [, name = '', type = '', defaultMark] of query.matchAll(/\$(\w+)\s*:\s*([[\]\w!]{1,200})(\s*=)?/g)) {
    properties.set(name, toSchema(type, properties.get(name)));
    if (type.endsWith('!') && defaultMark === undefined && !required.includes(name)) required.push(name);
  }
  return properties.size === 0 ? undefined : { type: 'object', properties: Object.fromEntries(properties), required };
}

function toSchema(type: string, exampleSchema: unknown): unknown {
  const nullableType = type.replace(/!$/, '');
  if (nullableType.startsWith('['))
    return {
      type: 'array',
      items: toSchema(nullableType.slice(1).replace(/\]$/, ''), getField(exampleSchema, 'items')),
    };
  const scalar = scalars.get(nullableType);
  const example = getField(exampleSchema, 'example');
  return scalar === undefined ? (exampleSchema ?? {}) : { type: scalar, ...(example !== undefined && { example }) };
}

/** Returns the call of an XML body: the first element of a SOAP body, the XML-RPC method, or the root element. */
function findXmlCall(text: string, body: ApiBody | undefined): NamedCall | undefined {
  const name =
    /<methodName>\s*([\w.:/-]+)\s*<\/methodName>/.exec(text)?.[1] ??
    /<(?:[\w.-]+:)?Body\b[^<>]*>\s*<(?:[\w.-]+:)?([\w.-]+)/.exec(text)?.[1] ??
    /<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)/.exec(text)?.[1];
  return name === undefined ? undefined : { name, key: name, body };
}
