import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import {
  hasOptionalBody,
  isHeaderValue,
  parseMediaType,
  parseMediaTypeChoices,
} from '@toolhost/tool-config/http/headers';
import { getField, isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import { getDiscriminatorName, getDiscriminatorValues } from '../document/references.ts';
import type { ApiBody, ApiContent, ApiOperation } from '../model.ts';
import { createFileArguments, createPartArguments, findFileKind, getTypeHint, toFormField } from './form-arguments.ts';
import { type BuildContext, isListedCredential, quoteShort } from './input-arguments.ts';
import { joinSentences, maxFieldText, toPlainText, toVisibleName } from './texts.ts';
import type { ArgumentDraft } from './tool-candidate.ts';

/** Maximum number of JSON body fields that become separate arguments. */
const maxFlatFields = 15;

/** Arguments of a body. `body` is its encoding, or the name of the argument that is the whole body. */
export type BodyArguments = { arguments: ArgumentDraft[]; body?: string; contentType?: string };

const emptyBody: BodyArguments = { arguments: [] };

export function buildBodyArguments(operation: ApiOperation, context: BuildContext): BodyArguments {
  const contents = operation.body?.contents ?? [];
  if (operation.body && contents.length === 0)
    context.report.skipIfRequired('a body without a type', operation.body.required);
  const sendable = contents.filter(({ mediaType }) => isSendableType(mediaType));
  const content = choosePreferred(sendable);
  if (!content && contents[0])
    context.report.skipIfRequired(
      `the body of type ${quoteShort(contents[0].mediaType)}`,
      operation.body?.required === true,
    );
  if (!operation.body || !content) return emptyBody;
  const kind = getKind(content.mediaType) === 'any' ? resolveAnyKind(content, context) : getKind(content.mediaType);
  const isBodyUnexpected = hasOptionalBody(operation.method) && operation.method !== 'DELETE';
  if (isBodyUnexpected && isEmptyBody(operation.body, content, context)) {
    context.report.repairs.add(`a ${operation.method} request has no body`);
    return emptyBody;
  }
  if (operation.method === 'HEAD') {
    context.report.skipIfRequired('the body of a HEAD request', operation.body.required);
    return emptyBody;
  }
  if (kind === 'json') return createJsonBody(operation.body, content, context);
  if (kind === 'form' || kind === 'multipart') return createFormBody(operation.body, content, kind, context);
  if (kind === 'text') return createTextBody(operation.body, content, context);
  const byteContents = sendable.filter(
    ({ mediaType }) => mediaType === content.mediaType || getKind(mediaType) === 'binary',
  );
  return createBytesBody(
    operation.body,
    byteContents.map(({ mediaType }) => mediaType),
    context,
  );
}

/** Returns true if a media type can be a header value. Braces and `:name` would be replaced by arguments. */
function isSendableType(mediaType: string): boolean {
  return mediaType.length <= maxTypeLength && isHeaderValue(mediaType) && !/[{}]|(?<!\w):/.test(mediaType);
}

const maxTypeLength = 500;

type Kind = 'json' | 'form' | 'multipart' | 'text' | 'binary';

/** Returns the kind of a media type. `any` is a range that includes JSON, or no type at all. */
function getKind(mediaType: string): Kind | 'any' {
  const type = parseMediaType(mediaType);
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type.startsWith('multipart/')) return 'multipart';
  if (type === '*/*' || type === '' || type === 'application/*') return 'any';
  if (/[/+](?:x-amz-json-[\d.]+|json)$/.test(type)) return 'json';
  return /^text\/|[/+](?:xml|yaml|x-yaml|graphql|javascript|csv|sql)$|json|ndjson/.test(type) ? 'text' : 'binary';
}

/**
 * Returns the kind of a body with any type: binary if the schema allows bytes or is empty, text if it is a string, and
 * JSON otherwise.
 */
function resolveAnyKind({ mediaType, schema: raw }: ApiContent, context: BuildContext): Kind {
  const { schema } = context.builder.flat(raw);
  if (
    findFileKind(raw, context) === 'file' ||
    (parseMediaType(mediaType) === '*/*' && Object.keys(schema).length === 0)
  )
    return 'binary';
  return schema.type === 'string' && schema.format === undefined && parseMediaType(mediaType) === '*/*'
    ? 'text'
    : 'json';
}

function getRank(mediaType: string): number {
  const type = parseMediaType(mediaType);
  if (type === 'application/json') return 0;
  if (type === 'application/merge-patch+json') return 1;
  const kind = getKind(type);
  if (kind === 'json' || kind === 'any') return /json-patch|strategic/.test(type) ? 4 : 2;
  return { form: 3, multipart: 5, text: 6, binary: 7 }[kind];
}

/** Returns the content type that agents write best: JSON, then forms, then files. */
function choosePreferred(contents: readonly ApiContent[]): ApiContent | undefined {
  return contents.toSorted((a, b) => getRank(a.mediaType) - getRank(b.mediaType))[0];
}

/** Returns true if the body has no fields. Many descriptions declare an empty body for GET. */
function isEmptyBody(body: ApiBody, content: ApiContent, { builder }: BuildContext): boolean {
  const { schema } = builder.flat(content.schema);
  const hasFields =
    toEntries(schema.properties).length > 0 || hasAlternatives(schema) || schema.additionalProperties === true;
  return !hasFields && schema.items === undefined && !body.required;
}

/** Returns the declared type unless it is the default. Parameters such as a version are part of it. */
function toContentType(mediaType: string, defaultType: string): { contentType?: string } {
  const isDefault = mediaType.toLowerCase() === defaultType || mediaType === '' || mediaType.includes('*');
  return isDefault ? {} : { contentType: mediaType };
}

function createJsonBody(body: ApiBody, content: ApiContent, context: BuildContext): BodyArguments {
  const { builder, names } = context;
  const { schema, trail, isNamed } = builder.flat(content.schema);
  const type = toContentType(content.mediaType, 'application/json');
  const fields = toEntries(schema.properties).filter(([, property]) => builder.flat(property).schema.readOnly !== true);
  if (
    context.charactersToSave === 0 &&
    isNamed &&
    isFlat(schema, fields.length) &&
    !fields.some(([name]) => names.has(name))
  ) {
    const required = new Set(toTexts(schema.required));
    const fieldArguments = fields.map(([name, property]) =>
      createFieldArgument({ name, property, trail }, required.has(name), context),
    );
    return { arguments: fieldArguments, ...type };
  }
  if (isClosed(schema) && fields.length === 0) return body.required ? createEmptyObject(context, type) : emptyBody;
  const wholeSchema = reduceBodySchema(builder.buildInner(content.schema, []), context);
  const isRequired = body.required || toTexts(schema.required).length > 0;
  // Without a header that declares JSON, a text would be sent without quotes.
  const contentTypeField = canBeText(wholeSchema)
    ? { contentType: toConcreteType(content.mediaType, 'application/json') }
    : type;
  return { ...createWholeBody(body, wholeSchema, isRequired, context), ...contentTypeField };
}

/** Returns the body schema. If the tool is too large, large optional fields are only named. */
function reduceBodySchema(
  schema: ArgumentDraft['schema'],
  { charactersToSave }: BuildContext,
): ArgumentDraft['schema'] {
  if (charactersToSave === 0) return schema;
  const reduced = reduceSchema(schema, charactersToSave);
  return getSize(reduced) < getSize(schema) ? reduced : schema;
}

function canBeText({ type, anyOf }: ArgumentDraft['schema']): boolean {
  if (type === undefined && Array.isArray(anyOf)) return anyOf.some(canBeText);
  return type === undefined || [type].flat().includes('string');
}

/** Returns true if a schema allows only the properties that it lists. Read-only properties count as listed. */
function isClosed(schema: JsonFields): boolean {
  const { additionalProperties: additional } = schema;
  const isListed = additional === false || (!additional && toEntries(schema.properties).length > 0);
  return isListed && !hasAlternatives(schema) && !isOpen(schema);
}

/** Returns a constant argument for a required body that can only be `{}`. */
function createEmptyObject({ names }: BuildContext, type: { contentType?: string }): BodyArguments {
  const name = names.assign('body');
  const schema = { type: 'object' };
  const wire = { value: {} };
  return { arguments: [{ name, wireName: name, location: 'body', required: true, schema, wire }], body: name, ...type };
}

function isFlat(schema: JsonFields, count: number): boolean {
  return count > 0 && count <= maxFlatFields && !isOpen(schema) && !hasAlternatives(schema) && schema.nullable !== true;
}

/** Returns true if a schema allows properties other than those that it lists. */
function isOpen({ additionalProperties: additional, patternProperties }: JsonFields): boolean {
  return additional === true || [additional, patternProperties].some((rules) => toEntries(rules).length > 0);
}

function hasAlternatives(schema: JsonFields): boolean {
  return [schema.oneOf, schema.anyOf].some((list) => toList(list).length > 0);
}

type FieldSource = { name: string; property: unknown; trail: readonly string[] };

function createFieldArgument(
  { name, property, trail }: FieldSource,
  required: boolean,
  { builder, names }: BuildContext,
): ArgumentDraft {
  const schema = builder.buildInner(property, trail);
  const wire = required ? getConstant(schema.enum) : {};
  const wireName = toVisibleName(name).slice(0, 200) || '_';
  return { name: names.assign(name), wireName, location: 'body', required, schema, wire };
}

/** Returns the constant of a required field that allows only one value. */
function getConstant(values: unknown): { value?: unknown } {
  return Array.isArray(values) && values.length === 1 && values[0] !== null ? { value: values[0] } : {};
}

/** Returns a single argument that is the whole body. */
function createWholeBody(
  body: ApiBody,
  schema: ArgumentDraft['schema'],
  required: boolean,
  { names }: BuildContext,
): BodyArguments {
  const name = names.assign('body');
  const bodyDescription =
    toPlainText(body.description, maxFieldText) ||
    (schema.description as string | undefined) ||
    'The body of the request.';
  const { type, description: _, ...otherKeywords } = schema;
  const described = { ...(type !== undefined && { type }), description: bodyDescription, ...otherKeywords };
  const bodyArgument: ArgumentDraft = { name, wireName: name, location: 'body', required, schema: described, wire: {} };
  return { arguments: [bodyArgument], body: name };
}

/** Maximum number of form arguments; a tool has at most 100 arguments. */
const maxFormArguments = 70;

function createFormBody(
  body: ApiBody,
  content: ApiContent,
  kind: 'form' | 'multipart',
  context: BuildContext,
): BodyArguments {
  const { builder, report, names } = context;
  const { schema, trail, isNamed } = builder.flat(content.schema);
  const defaultType = kind === 'form' ? 'application/x-www-form-urlencoded' : 'multipart/form-data';
  const type = toContentType(content.mediaType.replace(/\s*;\s*boundary=[^;]*/i, ''), defaultType);
  const wholeKind = kind === 'multipart' ? findFileKind(content.schema, context) : undefined;
  if (wholeKind !== undefined) {
    report.repairs.add('a file without a field name is sent as "file"');
    const file = createFieldArgument({ name: 'file', property: content.schema, trail }, body.required, context);
    const fileFields = createFileArguments(file, { mediaType: undefined, isArray: wholeKind === 'files' }, names);
    return { arguments: fileFields, body: kind, ...type };
  }
  const fields = collectFormFields(schema, context);
  if (kind === 'multipart' && type.contentType !== undefined && fields.size === 0) {
    report.skipIfRequired(
      `the body of type ${quoteShort(content.mediaType)}, whose parts have no names`,
      body.required,
    );
    return emptyBody;
  }
  const required = new Set(toTexts(schema.required));
  const sentFields = [...fields].filter(([name, property]) => {
    if (!isListedCredential(name, context.credential)) return builder.flat(property).schema.readOnly !== true;
    report.repairs.add(`the credential ${quoteShort(name)} is listed as a parameter`);
    return false;
  });
  const formArguments = sentFields.flatMap(([name, property]) => {
    const argument = createFieldArgument({ name, property, trail }, required.has(name), context);
    return kind === 'multipart'
      ? createPartArguments(argument, property, content, context)
      : [toFormField(argument, content)];
  });
  const remaining = removeSurplusArguments(formArguments, context);
  const omittedNames = formArguments
    .filter((argument) => !remaining.includes(argument))
    .map(({ wireName }) => wireName);
  const isUndescribed = fields.size === 0 || (!isNamed && !hasAlternatives(schema));
  if (omittedNames.length > 0 || isOpen(schema) || (isUndescribed && schema.additionalProperties !== false))
    remaining.push(
      createOtherFields(
        omittedNames,
        { location: 'body', required: body.required && formArguments.length === 0 },
        context,
      ),
    );
  if (remaining.length === 0) return emptyBody;
  // The first part is the root of the others (RFC 2387, 3.2). It describes the files and is not one of them.
  const isRelated = parseMediaType(type.contentType) === 'multipart/related';
  const ordered = isRelated
    ? remaining.toSorted((first, second) => getRootRank(first) - getRootRank(second))
    : remaining;
  return { arguments: ordered, body: kind, ...type };
}

function getRootRank({ wire }: ArgumentDraft): number {
  return wire.media_type !== undefined && wire.content === undefined ? 0 : wire.content === undefined ? 1 : 2;
}

/** Returns the fields of a form and of its alternatives. A discriminator gets the values of all alternatives. */
function collectFormFields(schema: JsonFields, { builder }: BuildContext): Map<string, unknown> {
  const alternatives = [schema.oneOf, schema.anyOf].flatMap(toList);
  const schemas = [schema, ...alternatives.map((alternative) => builder.flat(alternative, schema.properties).schema)];
  const fields = new Map<string, unknown>();
  for (const [name, properties] of Map.groupBy(
    schemas.flatMap(({ properties }) => toEntries(properties)),
    ([key]) => key,
  )) {
    const distinct = new Map(properties.map(([, property]) => [JSON.stringify(property), property]));
    const [firstProperty, ...otherProperties] = distinct.values();
    const areEnums = [firstProperty, ...otherProperties].every(
      (property) => builder.flat(property).schema.enum !== undefined,
    );
    fields.set(
      name,
      otherProperties.length > 0 && areEnums
        ? { anyOf: [firstProperty, ...otherProperties] }
        : (otherProperties.at(-1) ?? firstProperty),
    );
  }
  const name = getDiscriminatorName(schema);
  const values = [...new Set(alternatives.flatMap((alternative) => getDiscriminatorValues(schema, alternative)))];
  if (name !== '' && values.length > 0) {
    const { enum: _enum, ...keywords } = builder.flat(
      toEntries(schema.properties).find(([key]) => key === name)?.[1],
    ).schema;
    fields.set(name, { type: 'string', ...keywords, enum: values });
  }
  return fields;
}

/** Removes form fields that are too many or too large, starting with the largest optional ones. */
function removeSurplusArguments(
  formArguments: readonly ArgumentDraft[],
  { charactersToSave }: BuildContext,
): ArgumentDraft[] {
  let remaining = charactersToSave;
  const removed = new Set<ArgumentDraft>();
  const fileNameArguments = new Set(formArguments.map(({ wire }) => getField(wire.file_name, 'argument')));
  for (const argument of formArguments.toSorted((a, b) => getSize(b.schema) - getSize(a.schema))) {
    const isWithinLimit = formArguments.length - removed.size <= maxFormArguments;
    if (isWithinLimit && remaining <= 0) break;
    if (argument.required || argument.wire.content !== undefined || fileNameArguments.has(argument.name)) continue;
    removed.add(argument);
    // `charactersToSave` was measured on the tool without the surplus fields.
    if (isWithinLimit) remaining -= getSize(argument.schema);
  }
  return formArguments.filter((argument) => !removed.has(argument));
}

/**
 * Returns an argument for form or query fields that the description does not name, or that are too many or too large
 * for separate arguments.
 */
export function createOtherFields(
  omittedNames: readonly string[],
  { location, required }: Pick<ArgumentDraft, 'location' | 'required'>,
  { names }: BuildContext,
): ArgumentDraft {
  const name = names.assign('fields');
  const nestingHint = omittedNames.length > 0 ? ' A field inside another is written field[inner].' : '';
  const omittedText = omittedNames.length > 0 ? ` ${listOmittedFields(omittedNames)}` : '';
  const schema = {
    type: 'object',
    description: `Other fields of the ${location === 'body' ? 'form' : 'query'} by their names.${omittedText}${nestingHint}`,
  };
  return { name, wireName: name, location, required, schema, wire: { style: 'repeat' } };
}

function createTextBody(body: ApiBody, content: ApiContent, context: BuildContext): BodyArguments {
  const { builder } = context;
  const isString = builder.flat(content.schema).schema.type === 'string';
  const { format: _format, description, ...keywords } = isString ? builder.buildInner(content.schema, []) : {};
  const example = toText(content.example);
  const exampleSuffix = example === '' ? '.' : ` like ${example}`;
  const schema = {
    ...keywords,
    type: 'string',
    description:
      toPlainText(body.description, maxFieldText) ||
      toText(description) ||
      `The body, as ${parseMediaType(content.mediaType)}${exampleSuffix}`,
  };
  return {
    ...createWholeBody(body, schema, body.required, context),
    contentType: toConcreteType(content.mediaType, 'text/plain'),
  };
}

/** Maximum length of a file's list of media types, in characters. */
const maxTypesLength = 200;

/** Returns a binary body. If several types are allowed, the type of the file is sent. */
function createBytesBody(body: ApiBody, mediaTypes: readonly string[], { names }: BuildContext): BodyArguments {
  const [firstType = ''] = mediaTypes;
  const listed = mediaTypes.join(', ');
  const allowed = listed.length <= maxTypesLength && parseMediaTypeChoices(listed) ? listed : firstType;
  const isSingleType = parseMediaTypeChoices(allowed)?.isSingle !== false;
  const name = names.assign('file');
  const text = toPlainText(body.description, maxFieldText) || 'The bytes of the body, as Base64 or a data URL.';
  const fileArgument: ArgumentDraft = {
    name,
    wireName: name,
    location: 'body',
    required: body.required,
    schema: { type: 'string', description: joinSentences([text, getTypeHint(allowed)]) },
    wire: { content: 'base64', ...(!isSingleType && { media_type: allowed }) },
  };
  const type = isSingleType ? { contentType: toConcreteType(allowed, 'application/octet-stream') } : {};
  return { arguments: [fileArgument], body: name, ...type };
}

function toConcreteType(mediaType: string, defaultType: string): string {
  return mediaType.includes('*') || !/^[\w.+-]+\/[\w.+-]+/.test(mediaType) ? defaultType : mediaType;
}

/** Maximum number of omitted fields that a description names. */
const maxNamed = 20;

/** Returns the number of characters that a value takes in tools/list. */
function getSize(schema: unknown): number {
  return JSON.stringify(schema)?.length ?? 0;
}

/** Returns a sentence with the names of fields that no longer have their own schema. */
function listOmittedFields(names: readonly string[]): string {
  const moreText = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : '';
  return `Also takes ${names.slice(0, maxNamed).join(', ')}${moreText}.`;
}

/**
 * Removes about `charactersToSave` characters from an object schema, starting with the largest optional fields. A field
 * that makes up most of the object is reduced instead of removed, so that a body does not lose its only field.
 */
function reduceSchema(schema: JsonSchema, charactersToSave: number): JsonSchema {
  if (isFields(schema.items)) return { ...schema, items: reduceSchema(schema.items, charactersToSave) };
  const required = new Set(toTexts(schema.required));
  const sizes = toEntries(schema.properties).map(([name, inner]) => ({ name, inner, size: getSize(inner) }));
  const totalSize = sizes.reduce((sum, { size }) => sum + size, 0);
  const remainingFields = new Map(sizes.map(({ name, inner }) => [name, inner]));
  let remaining = charactersToSave;
  const removedNames = new Set<string>();
  for (const { name, inner, size } of sizes.toSorted((a, b) => b.size - a.size)) {
    if (remaining <= 0) break;
    if (size > totalSize / 2 && isFields(inner)) {
      const reduced = reduceSchema(inner, remaining);
      remainingFields.set(name, reduced);
      remaining -= size - getSize(reduced);
    } else if (!required.has(name)) {
      remainingFields.delete(name);
      removedNames.add(name);
      remaining -= size;
    }
  }
  if (removedNames.size === 0)
    return { ...schema, ...(remainingFields.size > 0 && { properties: Object.fromEntries(remainingFields) }) };
  // Omitted fields may still be sent, so the object is open.
  const { additionalProperties: _closed, description = '', ...openSchema } = schema;
  const names = sizes.map(({ name }) => name).filter((name) => removedNames.has(name));
  return {
    ...openSchema,
    description: joinSentences([String(description), listOmittedFields(names)]),
    properties: Object.fromEntries(remainingFields),
  };
}
