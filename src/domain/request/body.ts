import { type BodyKind, type BodyNode, type BodyTemplate, encodingOf } from '../config/destinations.ts';
import type { TextOrArgument } from '../config/input-schema.ts';
import { GivenFile } from '../files/file-names.ts';
import { mediaTypeChoices, mediaTypePattern } from '../http/headers.ts';
import type { Part } from '../http/url-template.ts';
import { type ArrayFormat, hasControlCharacter, own, percentDecoded, valueText } from '../http/values.ts';
import { addPairs, encodedPairs, type Pairs, pairsOf, refusedArgument, styledText } from './pairs.ts';
import type { Arguments, SentArgument } from './sent-argument.ts';
import type { FormPart, UpstreamBody } from './upstream-request.ts';

/** Instructions for building the body of a tool's requests. */
export type BodyPlan = {
  /** Arguments that become parts of the body, or the one that is the body. */
  arguments: readonly SentArgument[];
  kind: BodyKind | 'none';
  template: BodyTemplate | undefined;
  /** Arguments whose style converts their value to text within JSON. */
  texts: readonly SentArgument[];
  /** The tool's static Content-Type. */
  contentType: string | undefined;
  arrayFormat: ArrayFormat;
  /** True if a body is sent even if none of its arguments is present. */
  isAlwaysSent: boolean;
};

/** A body, and its Content-Type if the tool does not set it. */
export type Content = { body: UpstreamBody | undefined; contentType?: string };
const noContent: Content = { body: undefined };

/** Builds the body of a call whose tool has one. @throws ToolFailure invalid_arguments, and any error of `secret` */
export function contentOf(plan: BodyPlan, args: Arguments, secret: (name: string) => string): Content {
  const { kind } = plan;
  if (kind === 'template') {
    const values = { args: withTexts(plan.texts, args), secret };
    return jsonContent(fillBodyTemplate(plan.template as BodyTemplate, values));
  }
  if (kind === 'argument') return argumentContent(plan, args);
  if (!plan.isAlwaysSent && !plan.arguments.some(({ name }) => own(args, name) !== undefined)) return noContent;
  if (kind === 'json') return jsonContent(jsonObject(plan, args));
  return kind === 'form' ? formContent(plan, args) : { body: { fields: multipartFields(plan, args) } };
}

function jsonObject(plan: BodyPlan, args: Arguments): object {
  const values = withTexts(plan.texts, args);
  const entries: [string, unknown][] = [];
  for (const { name, wireName } of plan.arguments) {
    const value = own(values, name);
    if (value !== undefined) entries.push([wireName, value]);
  }
  return Object.fromEntries(entries);
}

/** Converts arguments to text if their style requires it. */
function withTexts(texts: BodyPlan['texts'], args: Arguments): Arguments {
  if (texts.length === 0) return args;
  const styled = texts.map((argument): [string, unknown] => {
    const value = own(args, argument.name);
    return [argument.name, value === undefined || value === null ? value : styledText(argument, value)];
  });
  return { ...args, ...Object.fromEntries(styled.filter(([, value]) => value !== undefined)) };
}

function jsonContent(value: unknown): Content {
  return value === undefined ? noContent : { body: JSON.stringify(value), contentType: 'application/json' };
}

/** Builds a body from a single argument: bytes, text, or any value as JSON. */
function argumentContent({ arguments: [argument], contentType }: BodyPlan, args: Arguments): Content {
  const value = argument && own(args, argument.name);
  if (!argument || value === undefined) return noContent;
  if (argument.isBase64) {
    const { bytes, mediaType } = fileContent(argument, value);
    return { body: bytes, contentType: mediaTypeOfFile(argument, args, mediaType) };
  }
  const given = mediaTypeOfArgument(argument, args);
  const declared = contentType ?? given;
  if (typeof value === 'string' && (declared === undefined || encodingOf(declared) !== 'json'))
    return { body: value, contentType: given ?? 'text/plain; charset=utf-8' };
  return { body: JSON.stringify(value), contentType: given ?? 'application/json' };
}

function formContent(plan: BodyPlan, args: Arguments): Content {
  const pairs = pairsOf('a form', plan.arrayFormat);
  for (const argument of plan.arguments) {
    const value = own(args, argument.name);
    if (value !== undefined) addPairs(pairs, argument, value);
  }
  return { body: encodedPairs(pairs).join('&'), contentType: 'application/x-www-form-urlencoded' };
}

function multipartFields(plan: BodyPlan, args: Arguments): FormPart[] {
  const fields: FormPart[] = [];
  const pairs = pairsOf('a form', plan.arrayFormat, false);
  for (const argument of plan.arguments) {
    const value = own(args, argument.name);
    if (value === undefined || value === null) continue;
    if (isPlain(argument)) addPlainFields(fields, pairs, argument, value);
    else if (argument.isBase64) fields.push(...fileFields(plan, argument, value, args));
    else fields.push(...textFields(argument, value, args));
  }
  return fields;
}

/**
 * Builds parts with a media type or a file name. A list becomes one part of JSON, or one part per entry in any other
 * type.
 */
function textFields(argument: SentArgument, value: unknown, args: Arguments): FormPart[] {
  const mediaType = mediaTypeOfArgument(argument, args);
  const isJson = mediaType !== undefined && encodingOf(mediaType) === 'json';
  const isOther = mediaType !== undefined && !isJson && argument.style !== 'json';
  const isSplit = Array.isArray(value) && (isOther || argument.style === 'repeat');
  return (isSplit ? value : [value]).map((one: unknown) => {
    const isText = typeof one === 'string' && argument.style !== 'json' && (!isJson || isJsonText(one));
    const text = isText ? one : JSON.stringify(one);
    return [argument.wireName, text, partOf(fileNameOf(argument, args), mediaType)];
  });
}

/** Returns true if a text is a JSON object, list, or string. Any other text is encoded as a JSON string. */
function isJsonText(text: string): boolean {
  if (!/^\s*["[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isPlain({ isBase64, fileName, mediaType }: SentArgument): boolean {
  return !isBase64 && fileName === undefined && mediaType === undefined;
}

/**
 * Adds parts without a media type or file name. `pairs` holds those of all arguments, because its limits apply to the
 * whole form.
 */
function addPlainFields(fields: FormPart[], pairs: Pairs, argument: SentArgument, value: unknown): void {
  const before = pairs.list.length;
  addPairs(pairs, argument, value);
  for (const [name, text] of pairs.list.slice(before)) fields.push([name, text]);
}

const mostFiles = 100;

/** Builds the part of a file, or one part for each file of an array. */
function fileFields(plan: BodyPlan, argument: SentArgument, value: unknown, args: Arguments): FormPart[] {
  const files = Array.isArray(value) ? value : [value];
  if (files.length > mostFiles)
    throw refusedArgument(argument, `found ${files.length} files; allowed: at most ${mostFiles}`);
  const format = argument.style ?? plan.arrayFormat;
  return files.map((file, index) => {
    const { bytes, mediaType, name = 'file' } = fileContent(argument, file);
    const mark = !Array.isArray(value) ? '' : format === 'indices' ? `[${index}]` : format === 'brackets' ? '[]' : '';
    const type = mediaTypeOfFile(argument, args, mediaType);
    return [`${argument.wireName}${mark}`, bytes, partOf(fileNameOf(argument, args) ?? name, type)];
  });
}

function partOf(fileName: string | undefined, mediaType: string | undefined): NonNullable<FormPart[2]> {
  return { ...(fileName !== undefined && { fileName }), ...(mediaType !== undefined && { mediaType }) };
}

/** Bytes of a file, its media type if a data URL names it, and its name if another tool supplied it. */
type FileContent = { bytes: Buffer; mediaType: string | undefined; name?: string };

const notBase64 =
  'is not Base64; allowed: Base64 of the bytes, a data URL such as data:image/png;base64,…, or the URL of a file from a tool result';
const longestDataHead = 300;

/**
 * Decodes Base64 (RFC 4648, 4 and 5; white space is skipped) or a data URL (RFC 2397), or returns a file unchanged.
 * @throws ToolFailure invalid_arguments
 */
function fileContent(argument: SentArgument, value: unknown): FileContent {
  if (value instanceof GivenFile) return { bytes: value.bytes, ...value.head };
  if (typeof value !== 'string') throw refusedArgument(argument, notBase64);
  if (!/^data:/i.test(value)) return { bytes: base64Bytes(argument, value), mediaType: undefined };
  const comma = value.indexOf(',');
  if (comma < 0 || comma > longestDataHead) throw refusedArgument(argument, notBase64);
  const head = value.slice('data:'.length, comma);
  const text = value.slice(comma + 1);
  const isBase64 = /;\s*base64\s*$/i.test(head);
  const given = (isBase64 ? head.slice(0, head.lastIndexOf(';')) : head).trim();
  const mediaType = mediaTypePattern.test(given) ? given : undefined;
  const raw = percentDecoded(text);
  return { bytes: isBase64 ? base64Bytes(argument, raw.toString('latin1')) : raw, mediaType };
}

function base64Bytes(argument: SentArgument, given: string): Buffer {
  const text = given.replaceAll(/[ \t\r\n\f]/g, '');
  const padding = text.length - text.replace(/={1,2}$/, '').length;
  const isWhole = (text.length - padding) % 4 !== 1 && (padding === 0 || text.length % 4 === 0);
  if (!isWhole || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw refusedArgument(argument, notBase64);
  return Buffer.from(text, 'base64');
}

/**
 * Returns the file name of an argument, from a constant or from another argument.
 * @throws ToolFailure invalid_arguments
 */
function fileNameOf({ fileName }: SentArgument, args: Arguments): string | undefined {
  const text = resolved(fileName, args);
  if (text === undefined || !hasControlCharacter(text)) return text;
  throw refusedArgument({ name: sourceOf(fileName) }, 'a file name must not contain control characters');
}

/**
 * Returns the media type of an argument, from a constant or from another argument; the first one of several.
 * @throws ToolFailure invalid_arguments
 */
function mediaTypeOfArgument({ mediaType }: SentArgument, args: Arguments): string | undefined {
  const text = typeof mediaType === 'string' ? mediaTypeChoices(mediaType)?.types[0] : resolved(mediaType, args);
  if (text === undefined || mediaTypePattern.test(text)) return text;
  throw refusedArgument({ name: sourceOf(mediaType) }, 'is not a media type; example: image/png');
}

/**
 * Returns the configured media type, or that of the file if several are configured.
 * @throws ToolFailure invalid_arguments
 */
function mediaTypeOfFile(argument: SentArgument, args: Arguments, ofFile: string | undefined): string {
  const written = typeof argument.mediaType === 'string' ? mediaTypeChoices(argument.mediaType) : undefined;
  const only = written?.isOne === false ? ofFile : mediaTypeOfArgument(argument, args);
  return only ?? written?.types[0] ?? ofFile ?? 'application/octet-stream';
}

function resolved(text: TextOrArgument | undefined, args: Arguments): string | undefined {
  if (typeof text !== 'object') return text;
  const given = valueText(text.argument, own(args, text.argument));
  return given === '' ? undefined : given;
}

function sourceOf(text: TextOrArgument | undefined): string {
  return typeof text === 'object' ? text.argument : '';
}

/** Maximum number of characters of all copies of arguments together. */
const mostOfCopies = 4 * 1024 * 1024;

/** Arguments and secrets for a template. */
type BodyValues = { args: Arguments; secret: (name: string) => string };

/**
 * Renders the body of a call as a value. Undefined if the whole body is one argument that is absent.
 * @throws ToolFailure invalid_arguments if a text lacks one of its arguments, or copies of an argument are too long
 */
function fillBodyTemplate({ root, repeats }: BodyTemplate, values: BodyValues): unknown {
  const { args } = values;
  let copied = 0;
  for (const [name, count] of repeats) {
    const value = own(args, name);
    const length = value === undefined ? 0 : JSON.stringify(value).length;
    copied += length * count;
    if (copied > mostOfCopies)
      throw refusedArgument(
        { name },
        `is sent ${count} times in one body, which is then too long; send a shorter value`,
      );
  }
  return filled(root, values);
}

function filled(node: BodyNode, values: BodyValues): unknown {
  switch (node.kind) {
    case 'literal':
      return node.value;
    case 'argument':
      return own(values.args, node.name);
    case 'text':
      return filledText(node.parts, values);
    case 'array':
      return node.items.map((item) => filled(item, values)).filter((item) => item !== undefined);
    case 'object': {
      const entries = node.entries.map(([name, value]): [string, unknown] => [name, filled(value, values)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
  }
}

/** Renders a text. It is absent if none of its arguments is present. */
function filledText(parts: readonly Part[], { args, secret }: BodyValues): string | undefined {
  const absent: string[] = [];
  let present = 0;
  let text = '';
  for (const part of parts) {
    if (!('argument' in part)) {
      text += 'text' in part ? part.text : secret(part.secret);
      continue;
    }
    const piece = valueText(part.argument, own(args, part.argument));
    if (piece === undefined) absent.push(part.argument);
    else present++;
    text += piece ?? '';
  }
  if (absent.length === 0) return text;
  if (present === 0) return undefined;
  throw refusedArgument({ name: [...new Set(absent)].join(', ') }, 'is missing; a text in the body needs it');
}
