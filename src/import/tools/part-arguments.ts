import { encodingOf } from '../../domain/config/destinations.ts';
import { mediaTypeChoices } from '../../domain/http/headers.ts';
import { asText, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiContent } from '../model.ts';
import { type Making, mayBeObject, short, wireStyle } from './input-arguments.ts';
import type { MadeArgument } from './made-tool.ts';
import { joined } from './texts.ts';

/** Encodings of form fields and parts of a multipart body. */

export function formField(argument: MadeArgument, { encodings }: ApiContent): MadeArgument {
  const { style } = encodings.get(argument.wireName) ?? {};
  const isArray = argument.schema.type === 'array';
  const usual = style === 'deep' && isArray ? (isOfObjects(argument) ? 'indices' : 'brackets') : style;
  const isObject = [argument.schema.type].flat().includes('object') || argument.schema.anyOf !== undefined;
  const chosen = isArray ? usual : isObject ? (style ?? 'json') : style === 'deep' ? 'deep' : undefined;
  // Each object entry is sent as JSON text, and a form must declare that.
  const ofObjects = isArray && isOfObjects(argument) && (chosen ?? 'repeat') === 'repeat' ? 'repeat' : chosen;
  const isSaid = ofObjects === 'repeat' && isArray && isOfObjects(argument);
  const made = isSaid || ofObjects === 'indices' ? { style: ofObjects } : wireStyle(ofObjects, argument.schema.type);
  return { ...argument, wire: { ...argument.wire, ...made } };
}

function isOfObjects({ schema }: MadeArgument): boolean {
  return isFields(schema.items) && schema.items.type === 'object';
}

/** Returns the arguments of a part of a multipart body. A file has its name in a second argument. */
export function partArguments(
  argument: MadeArgument,
  property: unknown,
  content: ApiContent,
  making: Making,
): MadeArgument[] {
  const { style, mediaType: written } = content.encodings.get(argument.wireName) ?? {};
  const choices = written === undefined ? undefined : mediaTypeChoices(written);
  if (written !== undefined && !choices)
    making.report.skipRequired(`the type ${short(written)} of the part ${short(argument.wireName)}`, argument.required);
  const { schema } = making.maker.flat(property);
  const kind =
    fileKind(property, making) ?? (isUnsaidFile(argument.wireName, schema, choices?.types[0]) ? 'file' : undefined);
  if (kind !== undefined) {
    const type = choices ? written : fileType(schema);
    return fileArguments(argument, { mediaType: type, isArray: kind === 'files' }, making.names);
  }
  const [type] = choices?.types ?? [];
  if (style !== undefined && type === undefined) return [formField(argument, content)];
  return [typedPart(argument, type)];
}

/** Returns the argument of a part that is not a file. Objects are sent as JSON, or as text of the declared type. */
function typedPart(argument: MadeArgument, mediaType: string | undefined): MadeArgument {
  const isNested = mayBeObject(argument.schema) || isOfObjects(argument);
  const typed = (wire: MadeArgument['wire']) => ({ ...argument, wire: { ...argument.wire, ...wire } });
  if (mediaType === undefined) return isNested ? typed({ style: 'json', media_type: 'application/json' }) : argument;
  if (encodingOf(mediaType) === 'json') {
    if (isNested) return typed({ style: 'json', media_type: mediaType });
    return typed({ media_type: mediaType, ...(argument.schema.type === 'array' && { style: 'repeat' }) });
  }
  if (!isNested) return typed({ media_type: mediaType });
  const description = joined([asText(argument.schema.description), `As ${mediaType}.`]);
  return { ...typed({ media_type: mediaType }), schema: { type: 'string', description } };
}

/** Returns true for an undeclared file: text named `file` in a multipart body, or with the type of binary data. */
function isUnsaidFile(name: string, { type, enum: values }: JsonFields, mediaType: string | undefined): boolean {
  return type === 'string' && values === undefined && (name === 'file' || mediaType === 'application/octet-stream');
}

const deepestAlternatives = 3;

/** Returns 'file' or 'files' if a schema, or one of its alternatives, can be the bytes of a file or of several. */
export function fileKind(raw: unknown, making: Making, depth = 0): 'file' | 'files' | undefined {
  const { schema } = making.maker.flat(raw);
  if (isFile(schema)) return 'file';
  if (depth === deepestAlternatives) return undefined;
  if (isFields(schema.items)) return fileKind(schema.items, making, depth + 1) && 'files';
  const alternatives = [schema.oneOf, schema.anyOf].flatMap(listOf);
  const kinds = alternatives.map((alternative) => fileKind(alternative, making, depth + 1));
  return kinds.find((kind) => kind === 'files') ?? kinds.find((kind) => kind !== undefined);
}

function isFile(schema: JsonFields): boolean {
  const format = asText(schema.format).toLowerCase();
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  const isText = types.every((type) => type === 'string');
  const { contentMediaType, contentEncoding } = schema;
  return (
    types.includes('file') ||
    (isText && (format === 'binary' || format === 'base64')) ||
    (isText && contentEncoding === 'binary') ||
    (isText && contentEncoding === undefined && /^(?!text\/)./.test(asText(contentMediaType)))
  );
}

/** Returns the media type that the schema of a file names, unless it stands for any type. */
function fileType({ contentMediaType }: JsonFields): string | undefined {
  const type = asText(contentMediaType);
  return type === 'application/octet-stream' || !mediaTypeChoices(type) ? undefined : type;
}

/** Returns an argument for a file or a list of files, and an argument for its name. */
export function fileArguments(
  argument: MadeArgument,
  { mediaType, isArray }: { mediaType: string | undefined; isArray: boolean },
  names: Making['names'],
): MadeArgument[] {
  const nameArgument = names.take(`${argument.name}_name`);
  const { type: _type, format: _format, items: _items, minLength: _min, maxLength: _max, ...rest } = argument.schema;
  const { anyOf: _any, enum: _enum, pattern: _pattern, ...shown } = rest;
  const isAny = mediaType === undefined || mediaType === '*/*';
  const hint = typeHint(mediaType);
  const schema = hint === '' ? shown : { ...shown, description: joined([asText(shown.description), hint]) };
  const file: MadeArgument = {
    ...argument,
    schema: isArray ? { type: 'array', ...schema, items: { type: 'string' } } : { type: 'string', ...schema },
    wire: { content: 'base64', file_name: { argument: nameArgument }, ...(!isAny && { media_type: mediaType }) },
  };
  const description = `Name of the file in ${argument.name}, such as photo.png.`;
  const name: MadeArgument = {
    name: nameArgument,
    wireName: nameArgument,
    location: 'body',
    required: argument.required,
    schema: { type: 'string', description },
    wire: {},
  };
  return [file, name];
}

/** Returns a description of how to declare which of several types a file has. */
export function typeHint(mediaType: string | undefined): string {
  if (mediaType === undefined || mediaTypeChoices(mediaType)?.isOne !== false) return '';
  return `A data URL with one of these types: ${mediaType}.`;
}
