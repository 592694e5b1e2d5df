/**
 * Builds the request that a document describes from the OpenAPI specification alone. It shares no code with the import,
 * so that it can judge it.
 */
import { toPlain, type Value } from '../values.ts';
import { isJsonType, normalizePercent, type Part, readMediaType, readQuery, type WireRequest } from '../wire.ts';
import type { Body, Encoding, Operation, Parameter, Style } from './operations.ts';
import { encode, toText, UndefinedSerialization, writeHeader, writePairs, writePath } from './wire-styles.ts';

export type Inputs = {
  parameters: Map<Parameter, Value>;
  body?: {
    definition: Body;
    value: Value;
    /** Media type that the caller chooses if the document has a range. */
    chosenType?: string;
  };
};

/** @throws UndefinedSerialization if no standard defines the serialization of a value */
export function buildExpectedRequest(operation: Operation, basePath: string, inputs: Inputs): WireRequest {
  const headers = new Map<string, string>();
  const cookies: [string, string][] = [];
  const query: [string, string][] = [];
  let path = `${basePath.replace(/\/$/, '')}${operation.template}`;
  for (const [parameter, value] of inputs.parameters) {
    const { name, place } = parameter;
    if (place === 'path') path = path.replaceAll(`{${name}}`, () => writePathParameter(parameter, value));
    if (place === 'query') query.push(...writeQueryParameter(parameter, value));
    if (place === 'querystring') query.push(...writeQuerystring(parameter, value));
    if (place === 'header')
      headers.set(
        name.toLowerCase(),
        parameter.mediaType === undefined ? writeHeader(value, parameter) : writeContent(parameter.mediaType, value),
      );
    if (place === 'cookie') cookies.push(...writeCookie(parameter, value));
  }
  const [pathname = '', search = ''] = path.split('?', 2);
  // A query parameter replaces a pair of the same name in the path.
  query.unshift(...readQuery(search).filter(([name]) => !query.some(([other]) => other === name)));
  const { body } = inputs;
  return {
    method: operation.method,
    path: normalizePercent(encodeIllegal(pathname)),
    query: query.map(([name, value]) => [normalizePercent(name), normalizePercent(value)]),
    headers,
    cookies,
    contentType: body ? (body.chosenType ?? readMediaType(body.definition.mediaType)) : '',
    body: body ? writeBody(body.definition, body.value) : { kind: 'none' },
  };
}

/** Encodes characters in the literal text of a path that are not allowed in a URL. */
const encodeIllegal = (path: string) => path.replaceAll(/[^\w\-.~!$&'()*+,;=:@/%]/gu, encode);

function writeContent(mediaType: string, value: Value): string {
  if (isJsonType(mediaType)) return JSON.stringify(toPlain(value));
  return toText(value);
}

const writePathParameter = (parameter: Parameter, value: Value) =>
  parameter.mediaType === undefined
    ? writePath(parameter.name, value, parameter)
    : encode(writeContent(parameter.mediaType, value));

const writeQueryParameter = (parameter: Parameter, value: Value): [string, string][] =>
  parameter.mediaType === undefined
    ? writePairs(parameter.name, value, parameter)
    : [[encode(parameter.name), encode(writeContent(parameter.mediaType, value))]];

/** OpenAPI 3.2, `in: querystring`: the whole query is the serialized content. */
function writeQuerystring({ mediaType = '' }: Parameter, value: Value): [string, string][] {
  if (readMediaType(mediaType) === formType) return writeFormPairs(value, new Map(), encode);
  return [[encode(writeContent(mediaType, value)), '']];
}

function writeCookie(parameter: Parameter, value: Value): [string, string][] {
  if (parameter.mediaType !== undefined) return [[parameter.name, writeContent(parameter.mediaType, value)]];
  if (typeof value === 'object' && value !== null && parameter.explode && parameter.style === 'form')
    throw new UndefinedSerialization('an exploded list in a cookie');
  return writePairs(parameter.name, value, { ...parameter, style: 'form' }, (text) => text);
}

export const formType = 'application/x-www-form-urlencoded';

function writeBody(body: Body, value: Value): WireRequest['body'] {
  const type = readMediaType(body.mediaType);
  const isJson = isJsonType(type) || (type === '*/*' && !(value instanceof Uint8Array));
  if (isJson) return { kind: 'json', value: toPlain(value) };
  if (type === formType) return { kind: 'form', pairs: writeFormPairs(value, body.encoding, (text) => text) };
  if (type.startsWith('multipart/')) return { kind: 'multipart', parts: writeParts(value, body.encoding) };
  if (value instanceof Uint8Array) return { kind: 'bytes', content: toPlain(value) as string };
  return {
    kind: 'bytes',
    content: toBytes(typeof value === 'object' ? JSON.stringify(toPlain(value)) : toText(value)),
  };
}

const toBytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/**
 * OpenAPI 3.1.1, 4.8.15.1: pairs are serialized by style if one is declared, otherwise by content type. Lists repeat
 * their name.
 */
function writeFormPairs(
  value: Value,
  encodings: ReadonlyMap<string, Encoding>,
  write: (text: string) => string,
): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array)
    throw new UndefinedSerialization('a form of a value that is no object');
  return Object.entries(value).flatMap(([name, one]): [string, string][] => {
    const encoding = encodings.get(name);
    if (hasStyle(encoding)) return writePairs(name, one, toStyle(encoding), write);
    const items = Array.isArray(one) ? one : [one];
    return items.map((item) => [write(name), write(writeByType(item, encoding?.contentType))]);
  });
}

/** Applies the default `contentType` of the Encoding Object: JSON for objects, text for other values. */
function writeByType(value: Value, contentType: string | undefined): string {
  if (value instanceof Uint8Array) throw new UndefinedSerialization('bytes in a form');
  if (typeof value === 'object' && value !== null) return JSON.stringify(toPlain(value));
  if (contentType !== undefined && isJsonType(contentType)) return JSON.stringify(value);
  return toText(value);
}

const hasStyle = (encoding: Encoding | undefined): encoding is StyledEncoding =>
  encoding !== undefined &&
  (encoding.style !== undefined || encoding.explode !== undefined || encoding.allowReserved !== undefined);

type StyledEncoding = Encoding & { isStyled?: true };

function toStyle({ style = 'form', explode = style === 'form', allowReserved = false }: Encoding): Style {
  return { style, explode, allowReserved };
}

/** OpenAPI 3.1.1, Encoding Object: a list becomes one part per item, and an object becomes a JSON part. */
function writeParts(value: Value, encodings: ReadonlyMap<string, Encoding>): Part[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array)
    throw new UndefinedSerialization('multipart of a value that is no object');
  return Object.entries(value).flatMap(([name, one]): Part[] => {
    const encoding = encodings.get(name);
    if (
      hasStyle(encoding) &&
      encoding.contentType === undefined &&
      !(Array.isArray(one) && toStyle(encoding).explode) &&
      typeof one === 'object'
    )
      return writePairs(name, one, toStyle(encoding), (text) => text).map(([key, text]) => ({
        name: key,
        hasFileName: false,
        contentType: 'text/plain',
        content: toBytes(text),
      }));
    const items = Array.isArray(one) ? one : [one];
    if (Array.isArray(one) && one.some(isNested)) throw new UndefinedSerialization('a list of objects in multipart');
    return items.map((item) => writePart(name, item, encoding?.contentType));
  });
}

/** Detects nested lists. OpenAPI 3.0 and 3.1 do not say if such a list is one part or several. */
const isNested = (value: Value) => typeof value === 'object' && value !== null && !(value instanceof Uint8Array);

function writePart(name: string, value: Value, contentType: string | undefined): Part {
  const isFile = value instanceof Uint8Array;
  const defaultType = isFile
    ? 'application/octet-stream'
    : typeof value === 'object' && value !== null
      ? 'application/json'
      : 'text/plain';
  const type = contentType ?? defaultType;
  const content = isFile
    ? (toPlain(value) as string)
    : toBytes(
        isJsonType(type) || (typeof value === 'object' && value !== null)
          ? JSON.stringify(toPlain(value))
          : toText(value),
      );
  return { name, hasFileName: isFile, contentType: type, content };
}
