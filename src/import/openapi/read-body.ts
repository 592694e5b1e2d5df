import { asText, asTexts, entriesOf, field, isFields, type JsonFields } from '../document/lenient.ts';
import type { ApiBody, ApiContent, FieldEncoding, InputStyle } from '../model.ts';
import {
  atWrongPlace,
  type DocumentReading,
  misplacedSchema,
  type Parameters,
  swaggerStyle,
} from './read-parameters.ts';

/** Reads the `requestBody` of OpenAPI 3. */
export function readRequestBody(value: unknown, at: string, reading: DocumentReading): ApiBody | undefined {
  const { value: body, problem } = reading.references.follow(value);
  if (problem !== undefined) reading.add({ at, message: problem });
  if (!isFields(body)) return undefined;
  const contents = entriesOf(body.content ?? { 'application/json': body }).flatMap(([mediaTypes, content]) => {
    const found = reading.references.follow(content).value;
    const misplaced = isFields(found) ? misplacedSchema(found) : undefined;
    const isOfBody = body.content === undefined && field(found, 'schema') !== undefined;
    if (misplaced || isOfBody) reading.add({ at, message: `${atWrongPlace}: content.${mediaTypes}.schema` });
    else if (body.content === undefined) return [];
    const schema = misplaced && field(content, '$ref') !== undefined ? content : (misplaced ?? field(found, 'schema'));
    const encodings = readEncodings(field(content, 'encoding'));
    return writtenTypes(mediaTypes).map((mediaType): ApiContent => ({ mediaType, schema, encodings }));
  });
  return { required: body.required === true, description: asText(body.description), contents };
}

function readEncodings(value: unknown): Map<string, FieldEncoding> {
  const read = entriesOf(value).map(([name, encoding]): [string, FieldEncoding] => {
    const mediaType = asText(field(encoding, 'contentType')).trim() || undefined;
    return [name, { style: encodingStyle(field(encoding, 'style'), field(encoding, 'explode')), mediaType }];
  });
  return new Map(read);
}

function encodingStyle(style: unknown, explode: unknown): InputStyle | undefined {
  if (style === 'deepObject') return 'deep';
  if (style === 'spaceDelimited') return 'space';
  if (style === 'pipeDelimited') return 'pipe';
  if (explode === false) return 'comma';
  return explode === true || style === 'form' ? 'repeat' : undefined;
}

/** Reads the body of Swagger 2: one parameter `in: body`, or form fields. */
export function readSwaggerBody(
  { bodyParameter, formParameters }: Parameters,
  consumes: readonly string[],
): ApiBody | undefined {
  if (bodyParameter) {
    const types = consumes.length > 0 ? consumes : ['application/json'];
    const contents = types.map((mediaType) => ({ mediaType, schema: bodyParameter.schema, encodings: new Map() }));
    return { required: bodyParameter.required === true, description: asText(bodyParameter.description), contents };
  }
  if (formParameters.length === 0) return undefined;
  const hasFile = formParameters.some(({ type }) => type === 'file');
  const mediaType =
    hasFile || (consumes.includes('multipart/form-data') && !consumes.includes('application/x-www-form-urlencoded'))
      ? 'multipart/form-data'
      : 'application/x-www-form-urlencoded';
  const required = formParameters.filter((parameter) => parameter.required === true).map(({ name }) => asText(name));
  const properties = Object.fromEntries(
    formParameters.map((parameter) => [asText(parameter.name), asSchema(parameter)]),
  );
  const styles = formParameters
    .filter(({ type }) => type === 'array')
    .map((parameter): [string, FieldEncoding] => [
      asText(parameter.name),
      { style: swaggerStyle(parameter), mediaType: undefined },
    ]);
  const schema = { type: 'object', properties, required };
  return {
    required: required.length > 0,
    description: '',
    contents: [{ mediaType, schema, encodings: new Map(styles) }],
  };
}

/** Removes parameter keywords. `required` is a flag on a parameter and a list in a schema. */
function asSchema(parameter: JsonFields): JsonFields {
  const { required: _required, name: _name, in: _in, ...schema } = parameter;
  return schema;
}

const longestTypes = 500;

/** Normalizes media types: several types in one text, and short names. */
function writtenTypes(text: string): string[] {
  if (text.length > longestTypes) return [text.trim()];
  return text.split(/,(?=[^"]*(?:"[^"]*"[^"]*)*$)/).map((type) => {
    const written = type.trim();
    if (/^json$/i.test(written)) return 'application/json';
    if (/^xml$/i.test(written)) return 'application/xml';
    return written === '*' ? '*/*' : written;
  });
}

/** Reads `consumes` or `produces` of an operation, falling back to the document. */
export function mediaTypesOf(operation: JsonFields, root: JsonFields, name: 'consumes' | 'produces'): string[] {
  const own = operation[name];
  return asTexts(Array.isArray(own) ? own : root[name]).flatMap(writtenTypes);
}
