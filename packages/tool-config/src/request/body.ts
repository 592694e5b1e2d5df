import { type BodyKind, type BodyNode, type BodyTemplate, getImpliedEncoding } from '../destinations.ts';
import { UploadedFile } from '../file-names.ts';
import { mediaTypePattern, parseMediaTypeChoices } from '../http/headers.ts';
import type { TemplatePart } from '../http/url-template.ts';
import { type ArrayFormat, formatValue, getArgument, hasControlCharacter, percentDecode } from '../http/values.ts';
import type { TextOrArgument } from '../input-schema.ts';
import {
  addParameters,
  createArgumentFailure,
  createParameterList,
  encodeParameters,
  type ParameterList,
  toStyledText,
} from './parameter-list.ts';
import type { FormPart, UpstreamBody } from './upstream-request.ts';
import type { Arguments, WireArgument } from './wire-argument.ts';

/** Instructions for building the body of a tool's requests. */
export type BodyPlan = {
  /** Arguments that become parts of the body, or the one that is the body. */
  arguments: readonly WireArgument[];
  kind: BodyKind | 'none';
  template: BodyTemplate | undefined;
  /** Arguments whose style converts their value to text within JSON. */
  textArguments: readonly WireArgument[];
  /** The tool's static Content-Type. */
  contentType: string | undefined;
  arrayFormat: ArrayFormat;
  /** True if a body is sent even if none of its arguments is present. */
  isAlwaysSent: boolean;
};

/** A body, and its Content-Type if the tool does not set it. */
export type RequestContent = { body: UpstreamBody | undefined; contentType?: string };
const noContent: RequestContent = { body: undefined };

/** Builds the body of a call whose tool has one. @throws ToolFailure invalid_arguments, and any error of `secret` */
export function buildContent(plan: BodyPlan, args: Arguments, secret: (name: string) => string): RequestContent {
  const { kind } = plan;
  if (kind === 'template') {
    const values = { args: applyTextStyles(plan.textArguments, args), secret };
    return toJsonContent(renderBodyTemplate(plan.template as BodyTemplate, values));
  }
  if (kind === 'argument') return buildArgumentContent(plan, args);
  if (!plan.isAlwaysSent && !plan.arguments.some(({ name }) => getArgument(args, name) !== undefined)) return noContent;
  if (kind === 'json') return toJsonContent(buildJsonObject(plan, args));
  return kind === 'form' ? buildFormContent(plan, args) : { body: { fields: buildMultipartFields(plan, args) } };
}

function buildJsonObject(plan: BodyPlan, args: Arguments): object {
  const values = applyTextStyles(plan.textArguments, args);
  const entries: [string, unknown][] = [];
  for (const { name, wireName } of plan.arguments) {
    const value = getArgument(values, name);
    if (value !== undefined) entries.push([wireName, value]);
  }
  return Object.fromEntries(entries);
}

/** Converts arguments to text if their style requires it. */
function applyTextStyles(textArguments: BodyPlan['textArguments'], args: Arguments): Arguments {
  if (textArguments.length === 0) return args;
  const styled = textArguments.map((argument): [string, unknown] => {
    const value = getArgument(args, argument.name);
    return [argument.name, value === undefined || value === null ? value : toStyledText(argument, value)];
  });
  return { ...args, ...Object.fromEntries(styled.filter(([, value]) => value !== undefined)) };
}

function toJsonContent(value: unknown): RequestContent {
  return value === undefined ? noContent : { body: JSON.stringify(value), contentType: 'application/json' };
}

/** Builds a body from a single argument: bytes, text, or any value as JSON. */
function buildArgumentContent({ arguments: [argument], contentType }: BodyPlan, args: Arguments): RequestContent {
  const value = argument && getArgument(args, argument.name);
  if (!argument || value === undefined) return noContent;
  if (argument.isBase64) {
    const { bytes, mediaType } = readFileContent(argument, value);
    return { body: bytes, contentType: getFileMediaType(argument, args, mediaType) };
  }
  const declaredByArgument = getArgumentMediaType(argument, args);
  const declared = contentType ?? declaredByArgument;
  if (typeof value === 'string' && (declared === undefined || getImpliedEncoding(declared) !== 'json'))
    return { body: value, contentType: declaredByArgument ?? 'text/plain; charset=utf-8' };
  return { body: JSON.stringify(value), contentType: declaredByArgument ?? 'application/json' };
}

function buildFormContent(plan: BodyPlan, args: Arguments): RequestContent {
  const pairs = createParameterList('a form', plan.arrayFormat);
  for (const argument of plan.arguments) {
    const value = getArgument(args, argument.name);
    if (value !== undefined) addParameters(pairs, argument, value);
  }
  return { body: encodeParameters(pairs).join('&'), contentType: 'application/x-www-form-urlencoded' };
}

function buildMultipartFields(plan: BodyPlan, args: Arguments): FormPart[] {
  const fields: FormPart[] = [];
  const pairs = createParameterList('a form', plan.arrayFormat, false);
  for (const argument of plan.arguments) {
    const value = getArgument(args, argument.name);
    if (value === undefined || value === null) continue;
    if (isPlain(argument)) addPlainFields(fields, pairs, argument, value);
    else if (argument.isBase64) fields.push(...buildFileFields(plan, argument, value, args));
    else fields.push(...buildTextFields(argument, value, args));
  }
  return fields;
}

/**
 * Builds parts with a media type or a file name. A list becomes one part of JSON, or one part per entry in any other
 * type.
 */
function buildTextFields(argument: WireArgument, value: unknown, args: Arguments): FormPart[] {
  const mediaType = getArgumentMediaType(argument, args);
  const isJson = mediaType !== undefined && getImpliedEncoding(mediaType) === 'json';
  const isNonJsonType = mediaType !== undefined && !isJson && argument.style !== 'json';
  const hasPartPerEntry = Array.isArray(value) && (isNonJsonType || argument.style === 'repeat');
  return (hasPartPerEntry ? value : [value]).map((entry: unknown) => {
    const isSentAsText =
      typeof entry === 'string' && argument.style !== 'json' && (!isJson || isJsonContainerOrString(entry));
    const text = isSentAsText ? entry : JSON.stringify(entry);
    return [argument.wireName, text, toFileInfo(getFileName(argument, args), mediaType)];
  });
}

/** Returns true if a text is a JSON object, list, or string. Any other text is encoded as a JSON string. */
function isJsonContainerOrString(text: string): boolean {
  if (!/^\s*["[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isPlain({ isBase64, fileName, mediaType }: WireArgument): boolean {
  return !isBase64 && fileName === undefined && mediaType === undefined;
}

/**
 * Adds parts without a media type or file name. `pairs` holds such parts of all arguments, because its limits apply to
 * the whole form.
 */
function addPlainFields(fields: FormPart[], pairs: ParameterList, argument: WireArgument, value: unknown): void {
  const before = pairs.list.length;
  addParameters(pairs, argument, value);
  for (const [name, text] of pairs.list.slice(before)) fields.push([name, text]);
}

const maxFiles = 100;

/** Builds the part of a file, or one part for each file of an array. */
function buildFileFields(plan: BodyPlan, argument: WireArgument, value: unknown, args: Arguments): FormPart[] {
  const files = Array.isArray(value) ? value : [value];
  if (files.length > maxFiles)
    throw createArgumentFailure(argument, `found ${files.length} files; allowed: at most ${maxFiles}`);
  const format = argument.style ?? plan.arrayFormat;
  const formatSuffix = (index: number) => {
    if (!Array.isArray(value)) return '';
    if (format === 'indices') return `[${index}]`;
    return format === 'brackets' ? '[]' : '';
  };
  return files.map((file, index) => {
    const { bytes, mediaType, name = 'file' } = readFileContent(argument, file);
    const type = getFileMediaType(argument, args, mediaType);
    return [`${argument.wireName}${formatSuffix(index)}`, bytes, toFileInfo(getFileName(argument, args) ?? name, type)];
  });
}

function toFileInfo(fileName: string | undefined, mediaType: string | undefined): NonNullable<FormPart[2]> {
  return { ...(fileName !== undefined && { fileName }), ...(mediaType !== undefined && { mediaType }) };
}

/** Bytes of a file, its media type if a data URL names it, and its name if another tool supplied it. */
type FileContent = { bytes: Buffer; mediaType: string | undefined; name?: string };

const notBase64 =
  'is not Base64; allowed: Base64 of the bytes, a data URL such as data:image/png;base64,…, or the URL of a file from a tool result';
const maxDataUrlHeadLength = 300;

/**
 * Decodes Base64 (RFC 4648, 4 and 5; white space is skipped) or a data URL (RFC 2397), or returns a file unchanged.
 * @throws ToolFailure invalid_arguments
 */
function readFileContent(argument: WireArgument, value: unknown): FileContent {
  if (value instanceof UploadedFile) return { bytes: value.bytes, ...value.head };
  if (typeof value !== 'string') throw createArgumentFailure(argument, notBase64);
  if (!/^data:/i.test(value)) return { bytes: decodeBase64(argument, value), mediaType: undefined };
  const comma = value.indexOf(',');
  if (comma < 0 || comma > maxDataUrlHeadLength) throw createArgumentFailure(argument, notBase64);
  const head = value.slice('data:'.length, comma);
  const text = value.slice(comma + 1);
  const isBase64 = /;\s*base64\s*$/i.test(head);
  const declaredType = (isBase64 ? head.slice(0, head.lastIndexOf(';')) : head).trim();
  const mediaType = mediaTypePattern.test(declaredType) ? declaredType : undefined;
  const raw = percentDecode(text);
  return { bytes: isBase64 ? decodeBase64(argument, raw.toString('latin1')) : raw, mediaType };
}

function decodeBase64(argument: WireArgument, encodedText: string): Buffer {
  const text = encodedText.replaceAll(/[ \t\r\n\f]/g, '');
  const padding = text.length - text.replace(/={1,2}$/, '').length;
  const hasValidLength = (text.length - padding) % 4 !== 1 && (padding === 0 || text.length % 4 === 0);
  if (!hasValidLength || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw createArgumentFailure(argument, notBase64);
  return Buffer.from(text, 'base64');
}

/**
 * Returns the file name of an argument, from a constant or from another argument.
 * @throws ToolFailure invalid_arguments
 */
function getFileName({ fileName }: WireArgument, args: Arguments): string | undefined {
  const text = resolveText(fileName, args);
  if (text === undefined || !hasControlCharacter(text)) return text;
  throw createArgumentFailure({ name: getSourceArgument(fileName) }, 'a file name must not contain control characters');
}

/**
 * Returns the media type of an argument, from a constant or from another argument; the first one of several.
 * @throws ToolFailure invalid_arguments
 */
function getArgumentMediaType({ mediaType }: WireArgument, args: Arguments): string | undefined {
  const text =
    typeof mediaType === 'string' ? parseMediaTypeChoices(mediaType)?.types[0] : resolveText(mediaType, args);
  if (text === undefined || mediaTypePattern.test(text)) return text;
  throw createArgumentFailure({ name: getSourceArgument(mediaType) }, 'is not a media type; example: image/png');
}

/**
 * Returns the configured media type, or that of the file if several are configured.
 * @throws ToolFailure invalid_arguments
 */
function getFileMediaType(argument: WireArgument, args: Arguments, fileType: string | undefined): string {
  const configured = typeof argument.mediaType === 'string' ? parseMediaTypeChoices(argument.mediaType) : undefined;
  const singleType = configured?.isSingle === false ? fileType : getArgumentMediaType(argument, args);
  return singleType ?? configured?.types[0] ?? fileType ?? 'application/octet-stream';
}

function resolveText(text: TextOrArgument | undefined, args: Arguments): string | undefined {
  if (typeof text !== 'object') return text;
  const value = formatValue(text.argument, getArgument(args, text.argument));
  return value === '' ? undefined : value;
}

function getSourceArgument(text: TextOrArgument | undefined): string {
  return typeof text === 'object' ? text.argument : '';
}

/** Maximum number of characters of all copies of arguments together. */
const maxCopiedCharacters = 4 * 1024 * 1024;

/** Arguments and secrets for a template. */
type BodyValues = { args: Arguments; secret: (name: string) => string };

/**
 * Renders the body of a call as a value. Undefined if the whole body is one argument that is absent.
 * @throws ToolFailure invalid_arguments if a text lacks one of its arguments, or copies of an argument are too long
 */
function renderBodyTemplate({ root, repeats }: BodyTemplate, values: BodyValues): unknown {
  const { args } = values;
  let copiedCharacters = 0;
  for (const [name, count] of repeats) {
    const value = getArgument(args, name);
    const length = value === undefined ? 0 : JSON.stringify(value).length;
    copiedCharacters += length * count;
    if (copiedCharacters > maxCopiedCharacters)
      throw createArgumentFailure(
        { name },
        `is sent ${count} times in one body, which is then too long; send a shorter value`,
      );
  }
  return renderNode(root, values);
}

function renderNode(node: BodyNode, values: BodyValues): unknown {
  switch (node.kind) {
    case 'literal':
      return node.value;
    case 'argument':
      return getArgument(values.args, node.name);
    case 'text':
      return renderText(node.parts, values);
    case 'array':
      return node.items.map((item) => renderNode(item, values)).filter((item) => item !== undefined);
    case 'object': {
      const entries = node.entries.map(([name, value]): [string, unknown] => [name, renderNode(value, values)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
  }
}

/** Renders a text. It is absent if none of its arguments is present. */
function renderText(parts: readonly TemplatePart[], { args, secret }: BodyValues): string | undefined {
  const absent: string[] = [];
  let presentCount = 0;
  let text = '';
  for (const part of parts) {
    if (!('argument' in part)) {
      text += 'text' in part ? part.text : secret(part.secret);
      continue;
    }
    const argumentText = formatValue(part.argument, getArgument(args, part.argument));
    if (argumentText === undefined) absent.push(part.argument);
    else presentCount++;
    text += argumentText ?? '';
  }
  if (absent.length === 0) return text;
  if (presentCount === 0) return undefined;
  throw createArgumentFailure({ name: [...new Set(absent)].join(', ') }, 'is missing; a text in the body needs it');
}
