import { mediaTypeOf } from '../../domain/http/headers.ts';
import { parseJson, plainNumbers } from '../../domain/json/json.ts';
import { asText, isFields, type JsonFields } from '../document/lenient.ts';
import { stripComments } from '../document/relaxed-json.ts';
import type { ApiBody, ApiContent, FieldEncoding } from '../model.ts';
import { parseMultipart, parseUrlencoded } from './form-text.ts';
import { joinSchemas } from './join-operations.ts';
import { expandVariables, findExample, isPlaceholder, normalizeVariables, type Variables } from './placeholders.ts';
import { isRevealingName, isRevealingValue } from './revealing.ts';

/** Body of a request: text with a media type, or fields, some of which are files. */
export type RequestBody =
  | { mediaType: string; text: string }
  | { mediaType: 'application/x-www-form-urlencoded' | 'multipart/form-data'; fields: readonly BodyField[] };
export type BodyField = { name: string; value: string; isFile: boolean; mediaType?: string; description?: string };

const form = 'application/x-www-form-urlencoded';

/**
 * Parses a body text according to its declared type, or a guessed type if there is none. Returns undefined for an empty
 * text.
 */
export function readBodyText(given: string | undefined, text: string): RequestBody | undefined {
  if (text.trim() === '') return undefined;
  // People write JSON without declaring its type.
  const mediaType = given?.trim() || (valueOfBody(text, new Map()) === undefined ? 'text/plain' : 'application/json');
  const type = mediaTypeOf(mediaType);
  if (type === form) return { mediaType: form, fields: parseUrlencoded(text) };
  const parts = type === 'multipart/form-data' ? parseMultipart(mediaType, text) : undefined;
  return parts ? { mediaType: 'multipart/form-data', fields: parts } : { mediaType, text };
}

/** Resolves a body whose type is a variable: uses the variable's value, or guesses the type from the text. */
export function resolveMediaType(body: RequestBody | undefined, variables: Variables): RequestBody | undefined {
  if (!body?.mediaType.includes('{{') || 'fields' in body) return body;
  const type = expandVariables(normalizeVariables(body.mediaType), variables);
  return readBodyText(isPlaceholder(type) ? undefined : type, body.text);
}

/** Builds a GraphQL body from a query and its variables, which are JSON text or missing. */
export function makeGraphqlBody(query: string, variables: string, operationName = ''): RequestBody {
  const name = operationName === '' ? '' : `"operationName":${JSON.stringify(operationName)},`;
  const given = variables.trim();
  const text = `{${name}"query":${JSON.stringify(query)},"variables":${given.startsWith('{') ? given : '{}'}}`;
  return { mediaType: 'application/json', text };
}

/** Describes the body of a request with the types of its values. A declared media type is never replaced. */
export function bodyOfRequest(body: RequestBody, variables: Variables): ApiBody {
  const { mediaType } = body;
  const encodings = new Map<string, FieldEncoding>();
  if ('fields' in body) {
    for (const { name, mediaType: type } of body.fields)
      if (type !== undefined) encodings.set(name, { style: undefined, mediaType: type });
    return bodyWith({ mediaType, schema: schemaOfFields(body.fields, variables), encodings });
  }
  // Text that is not valid JSON has placeholders outside of values, so the body may be any value.
  if (isJsonType(mediaType)) {
    return bodyWith({ mediaType, schema: schemaOfBody(body.text, variables) ?? {}, encodings });
  }
  const example = /[/+]xml\b/i.test(mediaType) ? { example: shownXml(body.text) } : {};
  return bodyWith({ mediaType, schema: { type: 'string' }, encodings, ...example });
}

/** Returns the reason why a body cannot be sent, or undefined if it can. */
export function findUnsendableBody(body: RequestBody | undefined): string | undefined {
  const type = mediaTypeOf(body?.mediaType);
  const isOther = type.startsWith('multipart/') && body !== undefined && 'text' in body;
  return isOther ? `a body of type ${JSON.stringify(type)} whose parts are not shown` : undefined;
}

function bodyWith(content: ApiContent): ApiBody {
  return { required: true, description: '', contents: [content] };
}

/**
 * Returns true for JSON types, including types with a suffix or a version such as application/x-amz-json-1.1. JSON
 * Lines formats are not JSON.
 */
function isJsonType(mediaType: string): boolean {
  return /[/+](?:x-amz-)?json\b(?!-seq|-?lines)/i.test(mediaTypeOf(mediaType));
}

function schemaOfField({ name, value, isFile, mediaType, description }: BodyField, variables: Variables): JsonFields {
  const isJson = mediaType !== undefined && isJsonType(mediaType);
  const schema = isFile
    ? { type: 'string', format: 'binary' }
    : ((isJson ? schemaOfBody(value, variables) : undefined) ?? schemaOfText(toExample(value, variables), name));
  return description === undefined || description === '' ? schema : { ...schema, description };
}

/**
 * Returns the value of a field as an example: the literal value, or the value of a known variable. Returns an empty
 * text for an unknown variable.
 */
export function toExample(value: string, variables: Variables): string {
  return isPlaceholder(value) ? (findExample(value, variables) ?? '') : value;
}

/** Returns the schema of form fields. A field that occurs several times or is named like `ids[]` is a list. */
function schemaOfFields(fields: readonly BodyField[], variables: Variables): JsonFields {
  const properties = [...Map.groupBy(fields, ({ name }) => name)].map(([name, same]) => [
    name,
    schemaOfSame(
      name,
      same.map((field) => schemaOfField(field, variables)),
    ),
  ]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

/** Returns the schema for all values of one name in a query or form. */
export function schemaOfSame(name: string, all: readonly JsonFields[]): JsonFields {
  return all.length > 1 || name.endsWith('[]') ? { type: 'array', items: joinSchemas(all) } : (all[0] as JsonFields);
}

const stringsAndVariables = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|\{\{[^{}]*\}\}/gs;

/**
 * Parses a body as JSON, or returns undefined. Collection variables are not valid JSON, as in `{"id": {{id}}}`; they
 * are replaced by a known value or null.
 */
function valueOfBody(text: string, variables: Variables): { value: unknown } | undefined {
  const named = normalizeVariables(text);
  const isKnown = (value: string | undefined): value is string =>
    value !== undefined && /^-?\d{1,15}$|^(?:true|false)$/.test(value);
  const filledText = named.replaceAll(stringsAndVariables, (found) => {
    if (!found.startsWith('"')) {
      const value = findExample(found, variables);
      return isKnown(value) ? value : 'null';
    }
    const value = found.includes('{{') ? findExample(found.slice(1, -1), variables) : undefined;
    return value === undefined ? found : JSON.stringify(value);
  });
  for (const candidate of [filledText, stripComments(filledText)]) {
    try {
      return { value: parseJson(candidate) };
    } catch {
      // Not JSON, so the body is sent as text.
    }
  }
  return undefined;
}

function schemaOfBody(text: string, variables: Variables): JsonFields | undefined {
  const parsed = valueOfBody(text, variables);
  return parsed && schemaOfValue(parsed.value, '', 0);
}

const mostXml = 4000;
const mostShown = 1500;

/** Formats XML in one line without possible credentials. `?` replaces such values, as in SOAP examples. */
function shownXml(text: string): string {
  const shown = text
    .slice(0, mostXml)
    .replaceAll(/<!--[\s\S]*?(?:-->|$)|<\?[\s\S]*?(?:\?>|$)/g, '')
    .replaceAll(/<!\[CDATA\[[\s\S]*?(?:\]\]>|$)/g, '?')
    .replaceAll(/([\w.:-]+)\s*=\s*("[^"<>]*"|'[^'<>]*')/g, (found, name: string, quoted: string) =>
      name.startsWith('xmlns') || !isHidden(name, quoted.slice(1, -1)) ? found : `${name}="?"`,
    )
    .replaceAll(/<(\/?[\w.:-]+)([^<>]*)>([^<>]+)/g, (found, name: string, rest: string, value: string) =>
      isHidden(name, value.trim()) && value.trim() !== '' ? `<${name}${rest}>?` : found,
    )
    .replaceAll(/\s+/g, ' ')
    .replaceAll('> <', '><')
    .replaceAll('{{', '?')
    .trim();
  return shown.length > mostShown ? `${shown.slice(0, mostShown).toWellFormed()}…` : shown;
}

function isHidden(name: string, value: string): boolean {
  return isRevealingName(name) || (isRevealingValue(value) && !/^(?:https?|urn):/i.test(value)) || value.includes('{{');
}

const deepest = 6;

/** Returns the schema of a value. `name` is the name of its field; list entries use the name of the list. */
function schemaOfValue(value: unknown, name: string, depth: number): JsonFields {
  if (value === null || depth > deepest) return {};
  if (Array.isArray(value))
    return { type: 'array', items: joinSchemas(value.map((one) => schemaOfValue(one, name, depth + 1))) };
  if (isFields(value)) {
    const properties = Object.entries(value).map(([inner, one]) => [inner, schemaOfValue(one, inner, depth + 1)]);
    return { type: 'object', properties: Object.fromEntries(properties) };
  }
  const text = asText(value);
  const number = plainNumbers(value);
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: value };
  if (typeof number === 'number') return { type: Number.isInteger(number) ? 'integer' : 'number', ...example };
  if (typeof value === 'boolean') return { type: 'boolean', example: value };
  return /\{\{/.test(text) ? { type: 'string' } : { type: 'string', ...example };
}

/** Returns the schema of a named value in a URL or form. */
export function schemaOfText(text: string, name: string): JsonFields {
  if (text === '') return { type: 'string' };
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: text };
  if (/^-?\d{1,15}$/.test(text)) return { type: 'integer', ...('example' in example && { example: Number(text) }) };
  if (text === 'true' || text === 'false') return { type: 'boolean', example: text === 'true' };
  return { type: 'string', ...example };
}
