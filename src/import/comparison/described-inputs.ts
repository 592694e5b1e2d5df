import { asText, asTexts, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { References } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import { visibleName } from '../tools/texts.ts';

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
export function describedRequest(operation: ApiOperation, root: unknown, references: References): RequestDescription {
  const { at } = operation;
  const end = at.lastIndexOf('.');
  const item = references.follow(field(references.follow(field(root, 'paths')).value, at.slice('paths.'.length, end)));
  const method = at.slice(end + 1);
  const given = field(item.value, method) ?? field(field(item.value, 'additionalOperations'), method);
  const { value } = references.follow(given);
  if (!at.startsWith('paths.') || !isFields(value)) return requestOf(operation);
  const parameters = readParameters([field(item.value, 'parameters'), value.parameters], references);
  if (isFields(root) && root.swagger !== undefined && root.openapi === undefined)
    return swaggerRequest(parameters, asTexts(Array.isArray(value.consumes) ? value.consumes : root.consumes));
  const written = new URLSearchParams(operation.path.split('?')[1] ?? '');
  return {
    inputs: parameters.map((parameter) => withWritten(readInput(parameter), written)),
    body: readBody(references.follow(value.requestBody).value, references),
  };
}

/** Adds the values that the path sets for a query parameter. */
function withWritten(input: InputDescription, written: URLSearchParams): InputDescription {
  if (input.location !== 'query') return input;
  return { ...input, suggested: [...input.suggested, ...written.getAll(input.name)] };
}

function requestOf({ inputs, body }: ApiOperation): RequestDescription {
  return {
    inputs: inputs.map(({ location, name, required, schema }) => ({
      ...{ location, name, schema, isRequired: required },
      suggested: suggestedValues(schema),
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
  const found = new Map<string, JsonFields>();
  for (const item of lists.flatMap(listOf)) {
    const { value } = references.follow(item);
    if (isFields(value) && asText(value.name) !== '') found.set(`${asText(value.in)} ${asText(value.name)}`, value);
  }
  return [...found.values()];
}

function readInput(parameter: JsonFields): InputDescription {
  const [content] = entriesOf(parameter.content);
  const schema = content ? field(content[1], 'schema') : (parameter.schema ?? {});
  return inputOf(parameter, schema);
}

function inputOf(parameter: JsonFields, schema: unknown): InputDescription {
  const { required, example } = parameter;
  return {
    location: asText(parameter.in),
    name: visibleName(asText(parameter.name)),
    isRequired: required === true || required === 'true' || parameter.in === 'path',
    schema,
    suggested: [...suggestedValues(schema), ...(example === undefined ? [] : [example])],
  };
}

function suggestedValues(schema: unknown): unknown[] {
  return [field(schema, 'default'), field(schema, 'example')].filter((value) => value !== undefined);
}

function readBody(body: unknown, references: References): RequestDescription['body'] {
  if (!isFields(body)) return undefined;
  const contents = entriesOf(body.content).flatMap(([types, given]) => {
    const { value: content } = references.follow(given);
    const partTypes = entriesOf(field(content, 'encoding')).flatMap(([name, encoding]) => {
      const type = asText(field(encoding, 'contentType'));
      return type === '' ? [] : [[name, type] as const];
    });
    const shared = { schema: schemaOf(content), partTypes: new Map(partTypes) };
    return mediaTypesIn(types).map((mediaType) => ({ mediaType, ...shared }));
  });
  return { isRequired: body.required === true, contents };
}

/** Returns the schema of a content object. Some documents omit the keyword `schema`. */
function schemaOf(content: unknown): unknown {
  const isSchema = ['type', 'properties', 'items', 'allOf', 'oneOf', 'anyOf'].some((name) => field(content, name));
  return field(content, 'schema') ?? (isSchema ? content : undefined);
}

/** Normalizes media types: several types in one text, and short names. */
function mediaTypesIn(text: string): string[] {
  const types = text.length > 500 || text.includes('"') ? [text] : text.split(',');
  return types.map((type) => {
    const [name = ''] = /^(?:json|xml)$/i.exec(type.trim()) ?? [];
    return name === '' ? type.trim() : `application/${name.toLowerCase()}`;
  });
}

/** Reads a Swagger 2 request, whose body and form fields are parameters. */
function swaggerRequest(parameters: readonly JsonFields[], consumes: readonly string[]): RequestDescription {
  const isInput = (parameter: JsonFields) => parameter.in !== 'body' && parameter.in !== 'formData';
  const inputs = parameters.filter(isInput).map((parameter) => inputOf(parameter, parameter));
  const fields = parameters.filter((parameter) => parameter.in === 'formData');
  const body = parameters.find((parameter) => parameter.in === 'body');
  const types = consumes.flatMap(mediaTypesIn);
  const contentsOf = (schema: unknown, usual: readonly string[]) =>
    usual.map((mediaType) => ({ mediaType, schema, partTypes: new Map<string, string>() }));
  if (body) {
    const contents = contentsOf(body.schema, types.length > 0 ? types : ['application/json']);
    return { inputs, body: { isRequired: body.required === true, contents } };
  }
  if (fields.length === 0) return { inputs, body: undefined };
  const required = fields.filter((one) => one.required === true).map(({ name }) => asText(name));
  const properties = Object.fromEntries(fields.map((one) => [asText(one.name), one]));
  const forms = types.filter((type) => /^multipart\/|^application\/x-www-form-urlencoded/i.test(type));
  const contents = contentsOf(
    { type: 'object', properties, required },
    forms.length > 0 ? forms : ['application/x-www-form-urlencoded', 'multipart/form-data'],
  );
  return { inputs, body: { isRequired: required.length > 0, contents } };
}
