import { mediaTypeOf } from '../../domain/http/headers.ts';
import { parseJson, plainNumbers } from '../../domain/json/json.ts';
import { asText, isFields, type JsonFields } from '../document/lenient.ts';
import { stripComments } from '../document/relaxed-json.ts';
import type { ApiBody, ApiContent, FieldEncoding } from '../model.ts';
import { parseMultipart, parseUrlencoded } from './form-text.ts';
import { joinSchemas } from './join-operations.ts';
import { expandVariables, findExample, isPlaceholder, normalizeVariables, type Variables } from './placeholders.ts';
import { isRevealingName, isRevealingValue } from './revealing.ts';

/** The body of a request: text of a media type, or fields of which some are files. */
export type RequestBody =
  | { mediaType: string; text: string }
  | { mediaType: 'application/x-www-form-urlencoded' | 'multipart/form-data'; fields: readonly BodyField[] };
export type BodyField = { name: string; value: string; isFile: boolean; mediaType?: string; description?: string };

const form = 'application/x-www-form-urlencoded';

/** A text as the body that its type says, or that it looks like where no type is given; undefined when there is none. */
export function readBodyText(given: string | undefined, text: string): RequestBody | undefined {
  if (text.trim() === '') return undefined;
  // People write JSON without saying so.
  const mediaType = given?.trim() || (valueOfBody(text, new Map()) === undefined ? 'text/plain' : 'application/json');
  const type = mediaTypeOf(mediaType);
  if (type === form) return { mediaType: form, fields: parseUrlencoded(text) };
  const parts = type === 'multipart/form-data' ? parseMultipart(mediaType, text) : undefined;
  return parts ? { mediaType: 'multipart/form-data', fields: parts } : { mediaType, text };
}

/** A body whose type is a variable, with the value of that, or with the type that it looks like. */
export function resolveMediaType(body: RequestBody | undefined, variables: Variables): RequestBody | undefined {
  if (!body?.mediaType.includes('{{') || 'fields' in body) return body;
  const type = expandVariables(normalizeVariables(body.mediaType), variables);
  return readBodyText(isPlaceholder(type) ? undefined : type, body.text);
}

/** A query of GraphQL with its variables, which are a text of JSON or are not there. */
export function makeGraphqlBody(query: string, variables: string, operationName = ''): RequestBody {
  const name = operationName === '' ? '' : `"operationName":${JSON.stringify(operationName)},`;
  const given = variables.trim();
  const text = `{${name}"query":${JSON.stringify(query)},"variables":${given.startsWith('{') ? given : '{}'}}`;
  return { mediaType: 'application/json', text };
}

/** A body like that of a request, with the types of its values. A type that is written is never replaced. */
export function bodyOfRequest(body: RequestBody, variables: Variables): ApiBody {
  const { mediaType } = body;
  const encodings = new Map<string, FieldEncoding>();
  if ('fields' in body) {
    for (const { name, mediaType: type } of body.fields)
      if (type !== undefined) encodings.set(name, { style: undefined, mediaType: type });
    return bodyWith({ mediaType, schema: schemaOfFields(body.fields, variables), encodings });
  }
  // Text that cannot be read as JSON has placeholders where no value could stand, so it may be any value.
  if (isJsonType(mediaType)) {
    return bodyWith({ mediaType, schema: schemaOfBody(body.text, variables) ?? {}, encodings });
  }
  const example = /[/+]xml\b/i.test(mediaType) ? { example: shownXml(body.text) } : {};
  return bodyWith({ mediaType, schema: { type: 'string' }, encodings, ...example });
}

/** Returns why a body cannot be sent as it is written; undefined if it can. */
export function findUnsendableBody(body: RequestBody | undefined): string | undefined {
  const type = mediaTypeOf(body?.mediaType);
  const isOther = type.startsWith('multipart/') && body !== undefined && 'text' in body;
  return isOther ? `a body of type ${JSON.stringify(type)} that does not show its parts` : undefined;
}

function bodyWith(content: ApiContent): ApiBody {
  return { required: true, description: '', contents: [content] };
}

/** Types with a suffix or a version, such as application/x-amz-json-1.1, are JSON; lists of lines are not. */
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

/** The value of a field, where it is written or that of a known variable; variables without one show nothing. */
export function toExample(value: string, variables: Variables): string {
  return isPlaceholder(value) ? (findExample(value, variables) ?? '') : value;
}

/** The schema of fields of a form. One that is there several times, or is called `ids[]`, is a list. */
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

/** The schema for all values of one name, in a query or a form. */
export function schemaOfSame(name: string, all: readonly JsonFields[]): JsonFields {
  return all.length > 1 || name.endsWith('[]') ? { type: 'array', items: joinSchemas(all) } : (all[0] as JsonFields);
}

const stringsAndVariables = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|\{\{[^{}]*\}\}/gs;

/**
 * Undefined when it is no JSON. Variables of collections are none, as in `{"id": {{id}}}`: a known value takes their
 * place, or null.
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
      // Not JSON, so it is sent as the text that it is.
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

/** XML in one line, without what may be a credential. `?` stands for the value, as in the examples of SOAP. */
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

/** `name` is that of the field; an entry of a list has the name of the list. */
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

/** The schema of a value of that name in a URL or a form. */
export function schemaOfText(text: string, name: string): JsonFields {
  if (text === '') return { type: 'string' };
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: text };
  if (/^-?\d{1,15}$/.test(text)) return { type: 'integer', ...('example' in example && { example: Number(text) }) };
  if (text === 'true' || text === 'false') return { type: 'boolean', example: text === 'true' };
  return { type: 'string', ...example };
}
