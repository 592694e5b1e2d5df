import { parseJson, plainNumbers } from '../../domain/json/json.ts';
import { asText, isFields, type JsonFields } from '../document/lenient.ts';
import type { ApiBody } from '../model.ts';
import { joinSchemas } from './join-operations.ts';
import { isRevealingName, isRevealingValue } from './revealing.ts';

/** The body of a request: text of a media type, or fields of which some are files. */
export type RequestBody =
  | { mediaType: string; text: string }
  | { mediaType: 'application/x-www-form-urlencoded' | 'multipart/form-data'; fields: readonly BodyField[] };
export type BodyField = { name: string; value: string; isFile: boolean };

/** A body like that of a request, with the types of its values. */
export function bodyOfRequest(body: RequestBody): ApiBody {
  const read = 'fields' in body ? schemaOfFields(body.fields) : schemaOfBody(body.text);
  const isJson = /json/i.test(body.mediaType);
  const isText = read === undefined || (!isJson && isFields(read) && read.type === 'string');
  const given = 'fields' in body || isText === !isJson;
  const mediaType = given ? body.mediaType : isText ? 'text/plain' : 'application/json';
  const schema = read ?? { type: 'string' };
  const example = 'text' in body && /[/+]xml\b/i.test(mediaType) ? { example: shownXml(body.text) } : {};
  return { required: true, description: '', contents: [{ mediaType, schema, encodings: new Map(), ...example }] };
}

function schemaOfField({ name, value, isFile }: BodyField): JsonFields {
  return isFile ? { type: 'string', format: 'binary' } : schemaOfText(value, name);
}

/** The schema of fields of a form. One that is there several times, or is called `ids[]`, is a list. */
function schemaOfFields(fields: readonly BodyField[]): JsonFields {
  const properties = [...Map.groupBy(fields, ({ name }) => name)].map(([name, same]) => [
    name,
    schemaOfSame(name, same.map(schemaOfField)),
  ]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

/** The schema for all values of one name, in a query or a form. */
export function schemaOfSame(name: string, all: readonly JsonFields[]): JsonFields {
  return all.length > 1 || name.endsWith('[]') ? { type: 'array', items: joinSchemas(all) } : (all[0] as JsonFields);
}

/** Undefined when it is no JSON. Variables of collections are none: `{"id": {{id}}}`. */
function schemaOfBody(text: string): object | undefined {
  const filled = text.replaceAll(/"(?:[^"\\]|\\.)*"|\{\{[\w.-]+\}\}/gs, (found) =>
    found.startsWith('"') ? found : 'null',
  );
  for (const candidate of [text, filled]) {
    try {
      return schemaOfValue(parseJson(candidate), '', 0);
    } catch {
      // Not JSON, so it is sent as the text that it is.
    }
  }
  return undefined;
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
function schemaOfValue(value: unknown, name: string, depth: number): object {
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
