import { getImpliedEncoding } from '@toolhost/tool-config/destinations';
import { parseMediaTypeChoices } from '@toolhost/tool-config/http/headers';
import { isFields, type JsonFields, toList, toText } from '../document/lenient.ts';
import type { ApiContent } from '../model.ts';
import { type BuildContext, canBeObject, quoteShort, toWireStyle } from './input-arguments.ts';
import { joinSentences } from './texts.ts';
import type { ArgumentDraft } from './tool-candidate.ts';

/** Returns an argument as a form field with its declared encoding. */
export function toFormField(argument: ArgumentDraft, { encodings }: ApiContent): ArgumentDraft {
  const { style } = encodings.get(argument.wireName) ?? {};
  const isArray = argument.schema.type === 'array';
  const arrayStyle = style === 'deep' && isArray ? (hasObjectItems(argument) ? 'indices' : 'brackets') : style;
  const isObject = [argument.schema.type].flat().includes('object') || argument.schema.anyOf !== undefined;
  const declaredStyle = isArray ? arrayStyle : isObject ? (style ?? 'json') : style === 'deep' ? 'deep' : undefined;
  // A form must declare `repeat` for a list of objects, which are sent as JSON texts.
  const isObjectList = isArray && hasObjectItems(argument) && (declaredStyle ?? 'repeat') === 'repeat';
  const effectiveStyle = isObjectList ? 'repeat' : declaredStyle;
  const styleWire =
    isObjectList || effectiveStyle === 'indices'
      ? { style: effectiveStyle }
      : toWireStyle(effectiveStyle, argument.schema.type);
  return { ...argument, wire: { ...argument.wire, ...styleWire } };
}

function hasObjectItems({ schema }: ArgumentDraft): boolean {
  return isFields(schema.items) && schema.items.type === 'object';
}

/** Returns the arguments of a part of a multipart body. A file has a second argument for its name. */
export function createPartArguments(
  argument: ArgumentDraft,
  property: unknown,
  content: ApiContent,
  context: BuildContext,
): ArgumentDraft[] {
  const { style, mediaType: declaredType } = content.encodings.get(argument.wireName) ?? {};
  const choices = declaredType === undefined ? undefined : parseMediaTypeChoices(declaredType);
  if (declaredType !== undefined && !choices)
    context.report.skipIfRequired(
      `the type ${quoteShort(declaredType)} of the part ${quoteShort(argument.wireName)}`,
      argument.required,
    );
  const { schema } = context.builder.flat(property);
  const kind =
    findFileKind(property, context) ??
    (isUndeclaredFile(argument.wireName, schema, choices?.types[0]) ? 'file' : undefined);
  if (kind !== undefined) {
    const type = choices ? declaredType : getFileType(schema);
    return createFileArguments(argument, { mediaType: type, isArray: kind === 'files' }, context.names);
  }
  const [type] = choices?.types ?? [];
  if (style !== undefined && type === undefined) return [toFormField(argument, content)];
  return [createTypedPart(argument, type)];
}

/** Returns the argument of a part that is not a file. Objects are sent as JSON, or as text of the declared type. */
function createTypedPart(argument: ArgumentDraft, mediaType: string | undefined): ArgumentDraft {
  const isNested = canBeObject(argument.schema) || hasObjectItems(argument);
  const withWire = (wire: ArgumentDraft['wire']) => ({ ...argument, wire: { ...argument.wire, ...wire } });
  if (mediaType === undefined) return isNested ? withWire({ style: 'json', media_type: 'application/json' }) : argument;
  if (getImpliedEncoding(mediaType) === 'json') {
    if (isNested) return withWire({ style: 'json', media_type: mediaType });
    return withWire({ media_type: mediaType, ...(argument.schema.type === 'array' && { style: 'repeat' }) });
  }
  if (!isNested) return withWire({ media_type: mediaType });
  const description = joinSentences([toText(argument.schema.description), `As ${mediaType}.`]);
  return { ...withWire({ media_type: mediaType }), schema: { type: 'string', description } };
}

/** Returns true for an undeclared file: text named `file` in a multipart body, or with the type of binary data. */
function isUndeclaredFile(name: string, { type, enum: values }: JsonFields, mediaType: string | undefined): boolean {
  return type === 'string' && values === undefined && (name === 'file' || mediaType === 'application/octet-stream');
}

const maxAlternativeDepth = 3;

/** Returns 'file' or 'files' if a schema, or one of its alternatives, can be the bytes of a file or of several. */
export function findFileKind(raw: unknown, context: BuildContext, depth = 0): 'file' | 'files' | undefined {
  const { schema } = context.builder.flat(raw);
  if (isFile(schema)) return 'file';
  if (depth === maxAlternativeDepth) return undefined;
  if (isFields(schema.items)) return findFileKind(schema.items, context, depth + 1) && 'files';
  const alternatives = [schema.oneOf, schema.anyOf].flatMap(toList);
  const kinds = alternatives.map((alternative) => findFileKind(alternative, context, depth + 1));
  return kinds.find((kind) => kind === 'files') ?? kinds.find((kind) => kind !== undefined);
}

function isFile(schema: JsonFields): boolean {
  const format = toText(schema.format).toLowerCase();
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  const isString = types.every((type) => type === 'string');
  const { contentMediaType, contentEncoding } = schema;
  return (
    types.includes('file') ||
    (isString && (format === 'binary' || format === 'base64')) ||
    (isString && contentEncoding === 'binary') ||
    (isString && contentEncoding === undefined && /^(?!text\/)./.test(toText(contentMediaType)))
  );
}

/** Returns the media type that the schema of a file names, unless it stands for any type. */
function getFileType({ contentMediaType }: JsonFields): string | undefined {
  const type = toText(contentMediaType);
  return type === 'application/octet-stream' || !parseMediaTypeChoices(type) ? undefined : type;
}

/** Returns an argument for a file or a list of files, and an argument for its name. */
export function createFileArguments(
  argument: ArgumentDraft,
  { mediaType, isArray }: { mediaType: string | undefined; isArray: boolean },
  names: BuildContext['names'],
): ArgumentDraft[] {
  const nameArgument = names.assign(`${argument.name}_name`);
  const {
    type: _type,
    format: _format,
    items: _items,
    minLength: _min,
    maxLength: _max,
    ...keywords
  } = argument.schema;
  const { anyOf: _any, enum: _enum, pattern: _pattern, ...visibleKeywords } = keywords;
  const isAny = mediaType === undefined || mediaType === '*/*';
  const hint = getTypeHint(mediaType);
  const schema =
    hint === ''
      ? visibleKeywords
      : { ...visibleKeywords, description: joinSentences([toText(visibleKeywords.description), hint]) };
  const file: ArgumentDraft = {
    ...argument,
    schema: isArray ? { type: 'array', ...schema, items: { type: 'string' } } : { type: 'string', ...schema },
    wire: { content: 'base64', file_name: { argument: nameArgument }, ...(!isAny && { media_type: mediaType }) },
  };
  const description = `Name of the file in ${argument.name}, such as photo.png.`;
  const name: ArgumentDraft = {
    name: nameArgument,
    wireName: nameArgument,
    location: 'body',
    required: argument.required,
    schema: { type: 'string', description },
    wire: {},
  };
  return [file, name];
}

/** Returns a hint about the types that a file can have, or an empty text if it has only one. */
export function getTypeHint(mediaType: string | undefined): string {
  if (mediaType === undefined || parseMediaTypeChoices(mediaType)?.isSingle !== false) return '';
  return `A data URL with one of these types: ${mediaType}.`;
}
