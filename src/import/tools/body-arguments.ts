import { hasNoUsualBody, isHeaderValue, mediaTypeChoices, mediaTypeOf } from '../../domain/http/headers.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { asText, asTexts, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import { discriminatorOf, kindValues } from '../document/references.ts';
import type { ApiBody, ApiContent, ApiOperation } from '../model.ts';
import { isListedCredential, type Making, short } from './input-arguments.ts';
import type { MadeArgument } from './made-tool.ts';
import { fileArguments, fileKind, formField, partArguments, typeHint } from './part-arguments.ts';
import { joined, mostFieldText, plainText, visibleName } from './texts.ts';

/** Maximum number of JSON body fields that become separate arguments. */
const mostFlat = 15;

/** Body arguments, the encoding or the name of the argument that is the body, and the static headers. */
export type BodyParts = { arguments: MadeArgument[]; body?: string; contentType?: string };

const nothing: BodyParts = { arguments: [] };

export function bodyArguments(operation: ApiOperation, making: Making): BodyParts {
  const all = operation.body?.contents ?? [];
  if (operation.body && all.length === 0) making.report.skipRequired('a body without a type', operation.body.required);
  const sendable = all.filter(({ mediaType }) => isSendable(mediaType));
  const content = preferred(sendable);
  if (!content && all[0])
    making.report.skipRequired(`the body of type ${short(all[0].mediaType)}`, operation.body?.required === true);
  if (!operation.body || !content) return nothing;
  const kind = kindOf(content.mediaType) === 'any' ? kindOfAny(content, making) : kindOf(content.mediaType);
  const isOdd = hasNoUsualBody(operation.method) && operation.method !== 'DELETE';
  if (isOdd && isEmptyBody(operation.body, content, making)) {
    making.report.repairs.add(`a ${operation.method} request has no body`);
    return nothing;
  }
  if (operation.method === 'HEAD') {
    making.report.skipRequired('the body of a HEAD request', operation.body.required);
    return nothing;
  }
  if (kind === 'json') return jsonBody(operation.body, content, making);
  if (kind === 'form' || kind === 'multipart') return formBody(operation.body, content, kind, making);
  if (kind === 'text') return textBody(operation.body, content, making);
  const ofBytes = sendable.filter(({ mediaType }) => mediaType === content.mediaType || kindOf(mediaType) === 'binary');
  return bytesBody(
    operation.body,
    ofBytes.map(({ mediaType }) => mediaType),
    making,
  );
}

/** Returns true if a media type can be a header value. Text that looks like an argument would be replaced. */
function isSendable(mediaType: string): boolean {
  return mediaType.length <= longestType && isHeaderValue(mediaType) && !/[{}]|(?<!\w):/.test(mediaType);
}

const longestType = 500;

type Kind = 'json' | 'form' | 'multipart' | 'text' | 'binary';

/** Returns the kind of a media type. `any` is a range that includes JSON, or no type at all. */
function kindOf(mediaType: string): Kind | 'any' {
  const type = mediaTypeOf(mediaType);
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
function kindOfAny({ mediaType, schema: raw }: ApiContent, making: Making): Kind {
  const { schema } = making.maker.flat(raw);
  if (fileKind(raw, making) === 'file' || (mediaTypeOf(mediaType) === '*/*' && Object.keys(schema).length === 0))
    return 'binary';
  return schema.type === 'string' && schema.format === undefined && mediaTypeOf(mediaType) === '*/*' ? 'text' : 'json';
}

function rankOf(mediaType: string): number {
  const type = mediaTypeOf(mediaType);
  if (type === 'application/json') return 0;
  if (type === 'application/merge-patch+json') return 1;
  const kind = kindOf(type);
  if (kind === 'json' || kind === 'any') return /json-patch|strategic/.test(type) ? 4 : 2;
  return { form: 3, multipart: 5, text: 6, binary: 7 }[kind];
}

/** Returns the content type that agents write best: JSON, then forms, then files. */
function preferred(contents: readonly ApiContent[]): ApiContent | undefined {
  return contents.toSorted((a, b) => rankOf(a.mediaType) - rankOf(b.mediaType))[0];
}

/** Returns true if the body has no fields. Many descriptions declare an empty body for GET. */
function isEmptyBody(body: ApiBody, content: ApiContent, { maker }: Making): boolean {
  const { schema } = maker.flat(content.schema);
  const hasFields =
    entriesOf(schema.properties).length > 0 || hasAlternatives(schema) || schema.additionalProperties === true;
  return !hasFields && schema.items === undefined && !body.required;
}

/** Returns the declared type unless it is the default. Parameters such as a version are part of it. */
function contentTypeOf(mediaType: string, usual: string): { contentType?: string } {
  const isUsual = mediaType.toLowerCase() === usual || mediaType === '' || mediaType.includes('*');
  return isUsual ? {} : { contentType: mediaType };
}

function jsonBody(body: ApiBody, content: ApiContent, making: Making): BodyParts {
  const { maker, names } = making;
  const { schema, trail, isNamed } = maker.flat(content.schema);
  const type = contentTypeOf(content.mediaType, 'application/json');
  const fields = entriesOf(schema.properties).filter(([, property]) => maker.flat(property).schema.readOnly !== true);
  if (making.save === 0 && isNamed && isFlat(schema, fields.length) && !fields.some(([name]) => names.has(name))) {
    const required = new Set(asTexts(schema.required));
    const made = fields.map(([name, property]) => fieldArgument({ name, property, trail }, required.has(name), making));
    return { arguments: made, ...type };
  }
  if (isClosed(schema) && fields.length === 0) return body.required ? emptyObject(making, type) : nothing;
  const whole = fewerFields(maker.inner(content.schema, []), making);
  const isRequired = body.required || asTexts(schema.required).length > 0;
  // Without a header that declares JSON, a text would be sent without quotes.
  const said = mayBeText(whole) ? { contentType: concrete(content.mediaType, 'application/json') } : type;
  return { ...wholeBody(body, whole, isRequired, making), ...said };
}

/** Returns the body schema. If the tool is too large, large optional fields are only named. */
function fewerFields(schema: MadeArgument['schema'], { save }: Making): MadeArgument['schema'] {
  if (save === 0) return schema;
  const fewer = withFewerFields(schema, save);
  return sizeOf(fewer) < sizeOf(schema) ? fewer : schema;
}

function mayBeText({ type, anyOf }: MadeArgument['schema']): boolean {
  if (type === undefined && Array.isArray(anyOf)) return anyOf.some(mayBeText);
  return type === undefined || [type].flat().includes('string');
}

/** Returns true if a schema allows only the properties that it lists. Read-only properties count as listed. */
function isClosed(schema: JsonFields): boolean {
  const { additionalProperties: other } = schema;
  const isSaid = other === false || (!other && entriesOf(schema.properties).length > 0);
  return isSaid && !hasAlternatives(schema) && !isOpen(schema);
}

/** Returns a constant for a required body that can only be `{}`. */
function emptyObject({ names }: Making, type: { contentType?: string }): BodyParts {
  const name = names.take('body');
  const schema = { type: 'object' };
  const wire = { value: {} };
  return { arguments: [{ name, wireName: name, location: 'body', required: true, schema, wire }], body: name, ...type };
}

function isFlat(schema: JsonFields, count: number): boolean {
  return count > 0 && count <= mostFlat && !isOpen(schema) && !hasAlternatives(schema) && schema.nullable !== true;
}

/** Returns true if a schema allows properties other than those that it lists. */
function isOpen({ additionalProperties: other, patternProperties }: JsonFields): boolean {
  return other === true || [other, patternProperties].some((one) => entriesOf(one).length > 0);
}

function hasAlternatives(schema: JsonFields): boolean {
  return [schema.oneOf, schema.anyOf].some((list) => listOf(list).length > 0);
}

type FoundField = { name: string; property: unknown; trail: readonly string[] };

function fieldArgument(
  { name, property, trail }: FoundField,
  required: boolean,
  { maker, names }: Making,
): MadeArgument {
  const schema = maker.inner(property, trail);
  const wire = required ? constantOf(schema.enum) : {};
  const wireName = visibleName(name).slice(0, 200) || '_';
  return { name: names.take(name), wireName, location: 'body', required, schema, wire };
}

/** Returns the constant of a required field that allows only one value. */
function constantOf(values: unknown): { value?: unknown } {
  return Array.isArray(values) && values.length === 1 && values[0] !== null ? { value: values[0] } : {};
}

/** Returns a single argument that is the whole body. */
function wholeBody(body: ApiBody, schema: MadeArgument['schema'], required: boolean, { names }: Making): BodyParts {
  const name = names.take('body');
  const text =
    plainText(body.description, mostFieldText) ||
    (schema.description as string | undefined) ||
    'The body of the request.';
  const { type, description: _, ...rest } = schema;
  const described = { ...(type !== undefined && { type }), description: text, ...rest };
  const made: MadeArgument = { name, wireName: name, location: 'body', required, schema: described, wire: {} };
  return { arguments: [made], body: name };
}

/** Maximum number of form arguments; a tool has at most 100 arguments. */
const mostFormArguments = 70;

function formBody(body: ApiBody, content: ApiContent, kind: 'form' | 'multipart', making: Making): BodyParts {
  const { maker, report, names } = making;
  const { schema, trail, isNamed } = maker.flat(content.schema);
  const usual = kind === 'form' ? 'application/x-www-form-urlencoded' : 'multipart/form-data';
  const type = contentTypeOf(content.mediaType.replace(/\s*;\s*boundary=[^;]*/i, ''), usual);
  const ofWhole = kind === 'multipart' ? fileKind(content.schema, making) : undefined;
  if (ofWhole !== undefined) {
    report.repairs.add('a file without a field name is sent as "file"');
    const file = fieldArgument({ name: 'file', property: content.schema, trail }, body.required, making);
    const made = fileArguments(file, { mediaType: undefined, isArray: ofWhole === 'files' }, names);
    return { arguments: made, body: kind, ...type };
  }
  const fields = formFields(schema, making);
  if (kind === 'multipart' && type.contentType !== undefined && fields.size === 0) {
    report.skipRequired(`the body of type ${short(content.mediaType)}, whose parts have no names`, body.required);
    return nothing;
  }
  const required = new Set(asTexts(schema.required));
  const all = [...fields].filter(([name, property]) => {
    if (!isListedCredential(name, making.credential)) return maker.flat(property).schema.readOnly !== true;
    report.repairs.add(`the credential ${short(name)} is listed as a parameter`);
    return false;
  });
  const made = all.flatMap(([name, property]) => {
    const argument = fieldArgument({ name, property, trail }, required.has(name), making);
    return kind === 'multipart' ? partArguments(argument, property, content, making) : [formField(argument, content)];
  });
  const left = fewerArguments(made, making);
  const gone = made.filter((argument) => !left.includes(argument)).map(({ wireName }) => wireName);
  const isUndescribed = fields.size === 0 || (!isNamed && !hasAlternatives(schema));
  if (gone.length > 0 || isOpen(schema) || (isUndescribed && schema.additionalProperties !== false))
    left.push(otherFields(gone, { location: 'body', required: body.required && made.length === 0 }, making));
  if (left.length === 0) return nothing;
  // The first part is the root of the others (RFC 2387, 3.2). It describes the files and is not one of them.
  const isRelated = mediaTypeOf(type.contentType) === 'multipart/related';
  const ordered = isRelated ? left.toSorted((one, other) => rootRank(one) - rootRank(other)) : left;
  return { arguments: ordered, body: kind, ...type };
}

function rootRank({ wire }: MadeArgument): number {
  return wire.media_type !== undefined && wire.content === undefined ? 0 : wire.content === undefined ? 1 : 2;
}

/** Returns the fields of a form and of its alternatives. A discriminator gets the values of all alternatives. */
function formFields(schema: JsonFields, { maker }: Making): Map<string, unknown> {
  const alternatives = [schema.oneOf, schema.anyOf].flatMap(listOf);
  const all = [schema, ...alternatives.map((alternative) => maker.flat(alternative, schema.properties).schema)];
  const fields = new Map<string, unknown>();
  for (const [name, properties] of Map.groupBy(
    all.flatMap(({ properties }) => entriesOf(properties)),
    ([one]) => one,
  )) {
    const distinct = new Map(properties.map(([, property]) => [JSON.stringify(property), property]));
    const [first, ...others] = distinct.values();
    const isOfValues = [first, ...others].every((one) => maker.flat(one).schema.enum !== undefined);
    fields.set(name, others.length > 0 && isOfValues ? { anyOf: [first, ...others] } : (others.at(-1) ?? first));
  }
  const name = discriminatorOf(schema);
  const values = [...new Set(alternatives.flatMap((alternative) => kindValues(schema, alternative)))];
  if (name !== '' && values.length > 0) {
    const { enum: _enum, ...plain } = maker.flat(
      entriesOf(schema.properties).find(([one]) => one === name)?.[1],
    ).schema;
    fields.set(name, { type: 'string', ...plain, enum: values });
  }
  return fields;
}

/** Removes form fields that are too many or too large, starting with the largest optional ones. */
function fewerArguments(made: readonly MadeArgument[], { save }: Making): MadeArgument[] {
  let left = save;
  const gone = new Set<MadeArgument>();
  const namesOfFiles = new Set(made.map(({ wire }) => field(wire.file_name, 'argument')));
  for (const argument of made.toSorted((a, b) => sizeOf(b.schema) - sizeOf(a.schema))) {
    const areFew = made.length - gone.size <= mostFormArguments;
    if (areFew && left <= 0) break;
    if (argument.required || argument.wire.content !== undefined || namesOfFiles.has(argument.name)) continue;
    gone.add(argument);
    // `charactersToSave` was measured on the tool without the surplus fields.
    if (areFew) left -= sizeOf(argument.schema);
  }
  return made.filter((argument) => !gone.has(argument));
}

/**
 * Returns an argument for form or query fields that the description does not name, or that are too many or too large
 * for separate arguments.
 */
export function otherFields(
  gone: readonly string[],
  { location, required }: Pick<MadeArgument, 'location' | 'required'>,
  { names }: Making,
): MadeArgument {
  const name = names.take('fields');
  const inner = gone.length > 0 ? ' A field inside another is written field[inner].' : '';
  const more = gone.length > 0 ? ` ${moreFields(gone)}` : '';
  const schema = {
    type: 'object',
    description: `Other fields of the ${location === 'body' ? 'form' : 'query'} by their names.${more}${inner}`,
  };
  return { name, wireName: name, location, required, schema, wire: { style: 'repeat' } };
}

function textBody(body: ApiBody, content: ApiContent, making: Making): BodyParts {
  const { maker } = making;
  const isText = maker.flat(content.schema).schema.type === 'string';
  const { format: _format, description, ...own } = isText ? maker.inner(content.schema, []) : {};
  const shown = asText(content.example);
  const like = shown === '' ? '.' : ` like ${shown}`;
  const schema = {
    ...own,
    type: 'string',
    description:
      plainText(body.description, mostFieldText) ||
      asText(description) ||
      `The body, as ${mediaTypeOf(content.mediaType)}${like}`,
  };
  return {
    ...wholeBody(body, schema, body.required, making),
    contentType: concrete(content.mediaType, 'text/plain'),
  };
}

/** Maximum length of a file's list of media types, in characters. */
const longestTypes = 200;

/** Returns a binary body. If several types are allowed, the type of the file is sent. */
function bytesBody(body: ApiBody, mediaTypes: readonly string[], { names }: Making): BodyParts {
  const [first = ''] = mediaTypes;
  const listed = mediaTypes.join(', ');
  const allowed = listed.length <= longestTypes && mediaTypeChoices(listed) ? listed : first;
  const isOne = mediaTypeChoices(allowed)?.isOne !== false;
  const name = names.take('file');
  const text = plainText(body.description, mostFieldText) || 'The bytes of the body, as Base64 or a data URL.';
  const made: MadeArgument = {
    name,
    wireName: name,
    location: 'body',
    required: body.required,
    schema: { type: 'string', description: joined([text, typeHint(allowed)]) },
    wire: { content: 'base64', ...(!isOne && { media_type: allowed }) },
  };
  const type = isOne ? { contentType: concrete(allowed, 'application/octet-stream') } : {};
  return { arguments: [made], body: name, ...type };
}

function concrete(mediaType: string, otherwise: string): string {
  return mediaType.includes('*') || !/^[\w.+-]+\/[\w.+-]+/.test(mediaType) ? otherwise : mediaType;
}

/** Maximum number of omitted fields that a description names. */
const mostNamed = 20;

/** Returns the number of characters that a value takes in tools/list. */
function sizeOf(schema: unknown): number {
  return JSON.stringify(schema)?.length ?? 0;
}

/** Returns a sentence with the names of fields that no longer have their own schema. */
function moreFields(names: readonly string[]): string {
  const rest = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return `Also takes ${names.slice(0, mostNamed).join(', ')}${rest}.`;
}

/**
 * Removes about `charactersToSave` characters from an object schema, starting with the largest optional fields. A field that makes
 * up most of the object is reduced instead of removed, so a body with a single field keeps it.
 */
function withFewerFields(schema: JsonSchema, save: number): JsonSchema {
  if (isFields(schema.items)) return { ...schema, items: withFewerFields(schema.items, save) };
  const required = new Set(asTexts(schema.required));
  const sizes = entriesOf(schema.properties).map(([name, inner]) => ({ name, inner, size: sizeOf(inner) }));
  const whole = sizes.reduce((sum, { size }) => sum + size, 0);
  const kept = new Map(sizes.map(({ name, inner }) => [name, inner]));
  let left = save;
  const gone = new Set<string>();
  for (const { name, inner, size } of sizes.toSorted((a, b) => b.size - a.size)) {
    if (left <= 0) break;
    if (size > whole / 2 && isFields(inner)) {
      const smaller = withFewerFields(inner, left);
      kept.set(name, smaller);
      left -= size - sizeOf(smaller);
    } else if (!required.has(name)) {
      kept.delete(name);
      gone.add(name);
      left -= size;
    }
  }
  if (gone.size === 0) return { ...schema, ...(kept.size > 0 && { properties: Object.fromEntries(kept) }) };
  // Omitted fields may still be sent, so the object is open.
  const { additionalProperties: _closed, description = '', ...open } = schema;
  const names = sizes.map(({ name }) => name).filter((name) => gone.has(name));
  return {
    ...open,
    description: joined([String(description), moreFields(names)]),
    properties: Object.fromEntries(kept),
  };
}
