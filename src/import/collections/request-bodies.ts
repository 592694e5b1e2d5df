import { parseJson, plainNumbers } from '../../domain/json/json.ts';
import { asText, isFields } from '../document/lenient.ts';
import type { ApiBody } from '../model.ts';
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
  return { required: true, description: '', contents: [{ mediaType, schema, encodings: new Map() }] };
}

function schemaOfFields(fields: readonly BodyField[]): object {
  const properties = fields.map(({ name, value, isFile }) => [
    name,
    isFile ? { type: 'string', format: 'binary' } : schemaOfText(value, name),
  ]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

/** Undefined when it is no JSON. Variables of collections are none: `{"id": {{id}}}`. */
function schemaOfBody(text: string): object | undefined {
  for (const candidate of [text, text.replaceAll(/(?<!")\{\{[\w.-]+\}\}(?!")/g, 'null')]) {
    try {
      return schemaOfValue(parseJson(candidate), '', 0);
    } catch {
      // Not JSON, so it is sent as the text that it is.
    }
  }
  return undefined;
}

const deepest = 6;

/** `name` is that of the field; an entry of a list has the name of the list. */
function schemaOfValue(value: unknown, name: string, depth: number): object {
  if (value === null || depth > deepest) return {};
  if (Array.isArray(value))
    return { type: 'array', items: value.length > 0 ? schemaOfValue(value[0], name, depth + 1) : {} };
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
export function schemaOfText(text: string, name: string): object {
  if (text === '') return { type: 'string' };
  const example = isRevealingName(name) || isRevealingValue(text) ? {} : { example: text };
  if (/^-?\d{1,15}$/.test(text)) return { type: 'integer', ...('example' in example && { example: Number(text) }) };
  if (text === 'true' || text === 'false') return { type: 'boolean', example: text === 'true' };
  return { type: 'string', ...example };
}
