import { getField, isFields, type JsonFields, toEntries, toText, toTexts } from '../document/lenient.ts';
import type { ApiBody, ApiContent, FieldEncoding, InputStyle } from '../model.ts';
import {
  findMisplacedSchema,
  getSwaggerStyle,
  misplacedMessage,
  type Parameters,
  type ReadContext,
} from './read-parameters.ts';

/** Reads the `requestBody` of OpenAPI 3. */
export function readRequestBody(value: unknown, at: string, context: ReadContext): ApiBody | undefined {
  const { value: body, problem } = context.references.follow(value);
  if (problem !== undefined) context.addFinding({ at, message: problem });
  if (!isFields(body)) return undefined;
  const contents = toEntries(body.content ?? { 'application/json': body }).flatMap(([mediaTypes, content]) => {
    const resolved = context.references.follow(content).value;
    const misplaced = isFields(resolved) ? findMisplacedSchema(resolved) : undefined;
    const isBodySchema = body.content === undefined && getField(resolved, 'schema') !== undefined;
    if (misplaced || isBodySchema)
      context.addFinding({ at, message: `${misplacedMessage}: content.${mediaTypes}.schema` });
    else if (body.content === undefined) return [];
    const schema =
      misplaced && getField(content, '$ref') !== undefined ? content : (misplaced ?? getField(resolved, 'schema'));
    const encodings = readEncodings(getField(content, 'encoding'));
    return normalizeMediaTypes(mediaTypes).map((mediaType): ApiContent => ({ mediaType, schema, encodings }));
  });
  return { required: body.required === true, description: toText(body.description), contents };
}

function readEncodings(value: unknown): Map<string, FieldEncoding> {
  const entries = toEntries(value).map(([name, encoding]): [string, FieldEncoding] => {
    const mediaType = toText(getField(encoding, 'contentType')).trim() || undefined;
    return [name, { style: toEncodingStyle(getField(encoding, 'style'), getField(encoding, 'explode')), mediaType }];
  });
  return new Map(entries);
}

function toEncodingStyle(style: unknown, explode: unknown): InputStyle | undefined {
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
    return { required: bodyParameter.required === true, description: toText(bodyParameter.description), contents };
  }
  if (formParameters.length === 0) return undefined;
  const hasFile = formParameters.some(({ type }) => type === 'file');
  const mediaType =
    hasFile || (consumes.includes('multipart/form-data') && !consumes.includes('application/x-www-form-urlencoded'))
      ? 'multipart/form-data'
      : 'application/x-www-form-urlencoded';
  const required = formParameters.filter((parameter) => parameter.required === true).map(({ name }) => toText(name));
  const properties = Object.fromEntries(
    formParameters.map((parameter) => [toText(parameter.name), toSchema(parameter)]),
  );
  const styles = formParameters
    .filter(({ type }) => type === 'array')
    .map((parameter): [string, FieldEncoding] => [
      toText(parameter.name),
      { style: getSwaggerStyle(parameter), mediaType: undefined },
    ]);
  const schema = { type: 'object', properties, required };
  return {
    required: required.length > 0,
    description: '',
    contents: [{ mediaType, schema, encodings: new Map(styles) }],
  };
}

/** Removes the keywords of a parameter, among them `required`, which is a flag here and a list in a schema. */
function toSchema(parameter: JsonFields): JsonFields {
  const { required: _required, name: _name, in: _in, ...schema } = parameter;
  return schema;
}

const maxMediaTypeLength = 500;

/** Normalizes media types: several types in one text, and short names. */
function normalizeMediaTypes(text: string): string[] {
  if (text.length > maxMediaTypeLength) return [text.trim()];
  return text.split(/,(?=[^"]*(?:"[^"]*"[^"]*)*$)/).map((type) => {
    const trimmed = type.trim();
    if (/^json$/i.test(trimmed)) return 'application/json';
    if (/^xml$/i.test(trimmed)) return 'application/xml';
    return trimmed === '*' ? '*/*' : trimmed;
  });
}

/** Reads `consumes` or `produces` of an operation, falling back to the document. */
export function readMediaTypes(operation: JsonFields, root: JsonFields, name: 'consumes' | 'produces'): string[] {
  const operationTypes = operation[name];
  return toTexts(Array.isArray(operationTypes) ? operationTypes : root[name]).flatMap(normalizeMediaTypes);
}
