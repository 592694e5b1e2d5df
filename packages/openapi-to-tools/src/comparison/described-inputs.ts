import { getField, isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import type { References } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import { toVisibleName } from '../tools/texts.ts';

/** Input of an operation, as its document describes it. */
export type InputDescription = {
  /** Location as declared; it may be an invalid one. */
  location: string;
  name: string;
  isRequired: boolean;
  schema: unknown;
  /** Values that the document declares as the default, as an example, or in the path. */
  suggested: readonly unknown[];
};

export type ContentDescription = {
  mediaType: string;
  schema: unknown;
  /** Media types of parts, by field name. */
  partTypes: ReadonlyMap<string, string>;
};

export type RequestDescription = {
  inputs: readonly InputDescription[];
  body: { isRequired: boolean; contents: readonly ContentDescription[] } | undefined;
};

/** Reads the request that a document describes for an operation. For a collection, reads the operation itself. */
export function readDescribedRequest(
  operation: ApiOperation,
  root: unknown,
  references: References,
): RequestDescription {
  const { at } = operation;
  const methodStart = at.lastIndexOf('.');
  const item = references.follow(
    getField(references.follow(getField(root, 'paths')).value, at.slice('paths.'.length, methodStart)),
  );
  const method = at.slice(methodStart + 1);
  const operationValue = getField(item.value, method) ?? getField(getField(item.value, 'additionalOperations'), method);
  const { value } = references.follow(operationValue);
  if (!at.startsWith('paths.') || !isFields(value)) return toRequest(operation);
  const parameters = readParameters([getField(item.value, 'parameters'), value.parameters], references);
  if (isFields(root) && root.swagger !== undefined && root.openapi === undefined)
    return readSwaggerRequest(parameters, toTexts(Array.isArray(value.consumes) ? value.consumes : root.consumes));
  const pathQuery = new URLSearchParams(operation.path.split('?')[1] ?? '');
  return {
    inputs: parameters.map((parameter) => addPathValues(readInput(parameter), pathQuery)),
    body: readBody(references.follow(value.requestBody).value, references),
  };
}

/** Adds the values that the path sets for a query parameter. */
function addPathValues(input: InputDescription, pathQuery: URLSearchParams): InputDescription {
  if (input.location !== 'query') return input;
  return { ...input, suggested: [...input.suggested, ...pathQuery.getAll(input.name)] };
}

function toRequest({ inputs, body }: ApiOperation): RequestDescription {
  return {
    inputs: inputs.map(({ location, name, required, schema }) => ({
      ...{ location, name, schema, isRequired: required },
      suggested: getSuggestedValues(schema),
    })),
    body: body && {
      isRequired: body.required,
      contents: body.contents.map(({ mediaType, schema, encodings }) => ({
        ...{ mediaType, schema },
        partTypes: new Map([...encodings].flatMap(([name, { mediaType: type }]) => (type ? [[name, type]] : []))),
      })),
    },
  };
}

/** Returns parameters by location and name. Operation parameters replace path parameters. */
function readParameters(lists: readonly unknown[], references: References): JsonFields[] {
  const byKey = new Map<string, JsonFields>();
  for (const item of lists.flatMap(toList)) {
    const { value } = references.follow(item);
    if (isFields(value) && toText(value.name) !== '') byKey.set(`${toText(value.in)} ${toText(value.name)}`, value);
  }
  return [...byKey.values()];
}

function readInput(parameter: JsonFields): InputDescription {
  const [content] = toEntries(parameter.content);
  const schema = content ? getField(content[1], 'schema') : (parameter.schema ?? {});
  return toInput(parameter, schema);
}

function toInput(parameter: JsonFields, schema: unknown): InputDescription {
  const { required, example } = parameter;
  return {
    location: toText(parameter.in),
    name: toVisibleName(toText(parameter.name)),
    isRequired: required === true || required === 'true' || parameter.in === 'path',
    schema,
    suggested: [...getSuggestedValues(schema), ...(example === undefined ? [] : [example])],
  };
}

function getSuggestedValues(schema: unknown): unknown[] {
  return [getField(schema, 'default'), getField(schema, 'example')].filter((value) => value !== undefined);
}

function readBody(body: unknown, references: References): RequestDescription['body'] {
  if (!isFields(body)) return undefined;
  const contents = toEntries(body.content).flatMap(([types, contentValue]) => {
    const { value: content } = references.follow(contentValue);
    const partTypes = toEntries(getField(content, 'encoding')).flatMap(([name, encoding]) => {
      const type = toText(getField(encoding, 'contentType'));
      return type === '' ? [] : [[name, type] as const];
    });
    const shared = { schema: getSchema(content), partTypes: new Map(partTypes) };
    return parseMediaTypes(types).map((mediaType) => ({ mediaType, ...shared }));
  });
  return { isRequired: body.required === true, contents };
}

/** Returns the schema of a content object. Some documents omit the keyword `schema`. */
function getSchema(content: unknown): unknown {
  const isSchema = ['type', 'properties', 'items', 'allOf', 'oneOf', 'anyOf'].some((name) => getField(content, name));
  return getField(content, 'schema') ?? (isSchema ? content : undefined);
}

/** Normalizes media types: several types in one text, and short names. */
function parseMediaTypes(text: string): string[] {
  const types = text.length > 500 || text.includes('"') ? [text] : text.split(',');
  return types.map((type) => {
    const [name = ''] = /^(?:json|xml)$/i.exec(type.trim()) ?? [];
    return name === '' ? type.trim() : `application/${name.toLowerCase()}`;
  });
}

/** Reads a Swagger 2 request, whose body and form fields are parameters. */
function readSwaggerRequest(parameters: readonly JsonFields[], consumes: readonly string[]): RequestDescription {
  const isInput = (parameter: JsonFields) => parameter.in !== 'body' && parameter.in !== 'formData';
  const inputs = parameters.filter(isInput).map((parameter) => toInput(parameter, parameter));
  const fields = parameters.filter((parameter) => parameter.in === 'formData');
  const body = parameters.find((parameter) => parameter.in === 'body');
  const types = consumes.flatMap(parseMediaTypes);
  const toContents = (schema: unknown, mediaTypes: readonly string[]) =>
    mediaTypes.map((mediaType) => ({ mediaType, schema, partTypes: new Map<string, string>() }));
  if (body) {
    const contents = toContents(body.schema, types.length > 0 ? types : ['application/json']);
    return { inputs, body: { isRequired: body.required === true, contents } };
  }
  if (fields.length === 0) return { inputs, body: undefined };
  const required = fields.filter((fieldParameter) => fieldParameter.required === true).map(({ name }) => toText(name));
  const properties = Object.fromEntries(fields.map((fieldParameter) => [toText(fieldParameter.name), fieldParameter]));
  const forms = types.filter((type) => /^multipart\/|^application\/x-www-form-urlencoded/i.test(type));
  const contents = toContents(
    { type: 'object', properties, required },
    forms.length > 0 ? forms : ['application/x-www-form-urlencoded', 'multipart/form-data'],
  );
  return { inputs, body: { isRequired: required.length > 0, contents } };
}
