import { parseJson, toPlainNumbers } from '@toolhost/json/json';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { isFields, type JsonFields, toText } from '../document/lenient.ts';
import { stripComments } from '../document/relaxed-json.ts';
import type { ApiBody, ApiContent, FieldEncoding } from '../model.ts';
import { parseMultipart, parseUrlencoded } from './form-text.ts';
import { mergeSchemas } from './join-operations.ts';
import { expandVariables, findExample, isPlaceholder, normalizeVariables, type Variables } from './placeholders.ts';
import { isRevealingName, isRevealingValue } from './revealed-credentials.ts';

/** Body of a request: text with a media type, or fields, some of which are files. */
export type RequestBody =
  | { mediaType: string; text: string }
  | { mediaType: 'application/x-www-form-urlencoded' | 'multipart/form-data'; fields: readonly BodyField[] };
export type BodyField = { name: string; value: string; isFile: boolean; mediaType?: string; description?: string };

const formType = 'application/x-www-form-urlencoded';

/**
 * Parses a body text according to its declared type, or a guessed type if there is none. Returns undefined for an empty
 * text.
 */
export function readBodyText(declaredType: string | undefined, text: string): RequestBody | undefined {
  if (text.trim() === '') return undefined;
  // People write JSON without declaring its type.
  const mediaType =
    declaredType?.trim() || (parseBody(text, new Map()) === undefined ? 'text/plain' : 'application/json');
  const type = parseMediaType(mediaType);
  if (type === formType) return { mediaType: formType, fields: parseUrlencoded(text) };
  const fields = type === 'multipart/form-data' ? parseMultipart(mediaType, text) : undefined;
  return fields ? { mediaType: 'multipart/form-data', fields } : { mediaType, text };
}

/** Resolves a body whose type is a variable: uses the variable's value, or guesses the type from the text. */
export function resolveMediaType(body: RequestBody | undefined, variables: Variables): RequestBody | undefined {
  if (!body?.mediaType.includes('{{') || 'fields' in body) return body;
  const type = expandVariables(normalizeVariables(body.mediaType), variables);
  return readBodyText(isPlaceholder(type) ? undefined : type, body.text);
}

/** Builds a GraphQL body from a query and its variables, which are JSON text or missing. */
export function createGraphqlBody(query: string, variables: string, operationName = ''): RequestBody {
  const name = operationName === '' ? '' : `"operationName":${JSON.stringify(operationName)},`;
  const variablesText = variables.trim();
  const text = `{${name}"query":${JSON.stringify(query)},"variables":${variablesText.startsWith('{') ? variablesText : '{}'}}`;
  return { mediaType: 'application/json', text };
}

/** Describes the body of a request by the types of its values. */
export function describeBody(body: RequestBody, variables: Variables): ApiBody {
  const { mediaType } = body;
  const encodings = new Map<string, FieldEncoding>();
  if ('fields' in body) {
    for (const { name, mediaType: type } of body.fields)
      if (type !== undefined) encodings.set(name, { style: undefined, mediaType: type });
    return createBody({ mediaType, schema: toFieldsSchema(body.fields, variables), encodings });
  }
  // JSON that cannot be parsed has placeholders outside of values, so the body may be any value.
  if (isJsonType(mediaType)) {
    return createBody({ mediaType, schema: toBodySchema(body.text, variables) ?? {}, encodings });
  }
  const example = /[/+]xml\b/i.test(mediaType) ? { example: formatXml(body.text) } : {};
  return createBody({ mediaType, schema: { type: 'string' }, encodings, ...example });
}

/** Returns the reason why a body cannot be sent, or undefined if it can. */
export function findUnsendableBody(body: RequestBody | undefined): string | undefined {
  const type = parseMediaType(body?.mediaType);
  const isUnsupported = type.startsWith('multipart/') && body !== undefined && 'text' in body;
  return isUnsupported ? `a body of type ${JSON.stringify(type)} whose parts are not shown` : undefined;
}

function createBody(content: ApiContent): ApiBody {
  return { required: true, description: '', contents: [content] };
}

/**
 * Returns true for JSON types, including types with a suffix or a version such as application/x-amz-json-1.1. JSON
 * Lines formats are not JSON.
 */
function isJsonType(mediaType: string): boolean {
  return /[/+](?:x-amz-)?json\b(?!-seq|-?lines)/i.test(parseMediaType(mediaType));
}

function toFieldSchema({ name, value, isFile, mediaType, description }: BodyField, variables: Variables): JsonFields {
  const isJson = mediaType !== undefined && isJsonType(mediaType);
  const schema = isFile
    ? { type: 'string', format: 'binary' }
    : ((isJson ? toBodySchema(value, variables) : undefined) ?? toTextSchema(toExample(value, variables), name));
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
function toFieldsSchema(fields: readonly BodyField[], variables: Variables): JsonFields {
  const properties = [...Map.groupBy(fields, ({ name }) => name)].map(([name, fieldsOfName]) => [
    name,
    toRepeatedSchema(
      name,
      fieldsOfName.map((field) => toFieldSchema(field, variables)),
    ),
  ]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

/** Returns the schema for all values of one name in a query or form. */
export function toRepeatedSchema(name: string, schemas: readonly JsonFields[]): JsonFields {
  return schemas.length > 1 || name.endsWith('[]')
    ? { type: 'array', items: mergeSchemas(schemas) }
    : (schemas[0] as JsonFields);
}

/** Matches JSON strings and, outside of them, collection variables. */
const stringsAndVariables = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|\{\{[^{}]*\}\}/gs;

/**
 * Parses a body as JSON, or returns undefined. Collection variables are not valid JSON, as in `{"id": {{id}}}`; they
 * are replaced by a known value or null.
 */
function parseBody(text: string, variables: Variables): { value: unknown } | undefined {
  const normalized = normalizeVariables(text);
  const isLiteral = (value: string | undefined): value is string =>
    value !== undefined && /^-?\d{1,15}$|^(?:true|false)$/.test(value);
  const expandedText = normalized.replaceAll(stringsAndVariables, (token) => {
    if (!token.startsWith('"')) {
      const value = findExample(token, variables);
      return isLiteral(value) ? value : 'null';
    }
    const value = token.includes('{{') ? findExample(token.slice(1, -1), variables) : undefined;
    return value === undefined ? token : JSON.stringify(value);
  });
  for (const candidate of [expandedText, stripComments(expandedText)]) {
    try {
      return { value: parseJson(candidate) };
    } catch {
      // Not JSON, so the body is sent as text.
    }
  }
  return undefined;
}

function toBodySchema(text: string, variables: Variables): JsonFields | undefined {
  const parsed = parseBody(text, variables);
  return parsed && toValueSchema(parsed.value, '', 0);
}

/** Maximum number of characters of an XML body that are read, and of the example made from it. */
const maxXmlLength = 4000;
const maxShownLength = 1500;

/** Formats XML in one line without possible credentials. `?` replaces such values, as in SOAP examples. */
function formatXml(text: string): string {
  const formatted = text
    .slice(0, maxXmlLength)
    .replaceAll(/<!--[\s\S]*?(?:-->|$)|<\?[\s\S]*?(?:\?>|$)/g, '')
    .replaceAll(/<!\[CDATA\[[\s\S]*?(?:\]\]>|$)/g, '?')
    .replaceAll(/([\w.:-]+)\s*=\s*("[^"<>]*"|'[^'<>]*')/g, (attribute, name: string, quoted: string) =>
      name.startsWith('xmlns') || !isHidden(name, quoted.slice(1, -1)) ? attribute : `${name}="?"`,
    )
    .replaceAll(/<(\/?[\w.:-]+)([^<>]*)>([^<>]+)/g, (element, name: string, attributes: string, value: string) =>
      isHidden(name, value.trim()) && value.trim() !== '' ? `<${name}${attributes}>?` : element,
    )
    .replaceAll(/\s+/g, ' ')
    .replaceAll('> <', '><')
    .replaceAll('{{', '?')
    .trim();
  return formatted.length > maxShownLength ? `${formatted.slice(0, maxShownLength).toWellFormed()}…` : formatted;
}

function isHidden(name: string, value: string): boolean {
  return isRevealingName(name) || (isRevealingValue(value) && !/^(?:https?|urn):/i.test(value)) || value.includes('{{');
}

const maxDepth = 6;

/** Returns the schema of a value. `name` is the name of its field; list entries use the name of the list. */
function toValueSchema(value: unknown, name: string, depth: number): JsonFields {
  if (value === null || depth > maxDepth) return {};
  if (Array.isArray(value))
    return { type: 'array', items: mergeSchemas(value.map((entry) => toValueSchema(entry, name, depth + 1))) };
  if (isFields(value)) {
    const properties = Object.entries(value).map(([propertyName, property]) => [
      propertyName,
      toValueSchema(property, propertyName, depth + 1),
    ]);
    return { type: 'object', properties: Object.fromEntries(properties) };
  }
  const text = toText(value);
  const number = toPlainNumbers(value);
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: value };
  if (typeof number === 'number') return { type: Number.isInteger(number) ? 'integer' : 'number', ...example };
  if (typeof value === 'boolean') return { type: 'boolean', example: value };
  return /\{\{/.test(text) ? { type: 'string' } : { type: 'string', ...example };
}

/** Returns the schema of a named value in a URL or form. */
export function toTextSchema(text: string, name: string): JsonFields {
  if (text === '') return { type: 'string' };
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: text };
  if (/^-?\d{1,15}$/.test(text)) return { type: 'integer', ...('example' in example && { example: Number(text) }) };
  if (text === 'true' || text === 'false') return { type: 'boolean', example: text === 'true' };
  return { type: 'string', ...example };
}
