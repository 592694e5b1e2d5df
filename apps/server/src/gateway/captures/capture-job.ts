import { isUtf8 } from 'node:buffer';
import { Redactor, redactPrefix } from '@toolhost/credentials/redactor';
import { type DotPath, formatDotPath } from '@toolhost/errors/dot-path';
import type { FieldStats } from '@toolhost/json/field-selection/field-statistics';
import { measureFields } from '@toolhost/json/field-selection/measure-fields';
import { isRawNumber, parseJson } from '@toolhost/json/json';
import { scanJson } from '@toolhost/json/json-scan';
import { findValueRange, hasPath } from '@toolhost/json/response-transform';
import type { ContentBlock, JsonText } from '@toolhost/mcp-protocol/mcp';
import type { ReadableBody, ReadableRequest } from '@toolhost/tool-config/request/upstream-request';
import type { CapturedResponse, CapturedResult, MeasuredResponse } from '../../store/calls/captures.ts';
import { textStart } from '../response/json-response.ts';
import { type CaptureDraft, formatWithinLimit, shortenField } from './fit-capture.ts';

/** A capture before redaction. */
export type RawCapture = {
  /** JSON text of the arguments. Undefined if it is too long to be stored. */
  arguments: string | undefined;
  argumentsBytes: number;
  request: ReadableRequest | undefined;
  /** `body` is the start of the body, if that is text. */
  response: (Omit<CapturedResponse, 'body'> & { body: Uint8Array | undefined }) | undefined;
  /** `start` is the start of the content. */
  result: (Omit<CapturedResult, 'text'> & { start: Uint8Array }) | undefined;
  /** The complete response, if its fields are measured, and the path of its `response_transform`. */
  measurable: { body: Uint8Array; transform: DotPath } | undefined;
  /** Credentials that must not appear in the capture. */
  sensitive: readonly string[];
};

/** Writes the JSON text of a `Capture`. */
export type CaptureJob = { input: RawCapture; output: { document: string } };

export const maxCapturedBytes = 8 * 1024;
/** Maximum length of a header line, and of a form field's text, in bytes. */
export const maxFieldBytes = 1024;

/** Writes the JSON text of a `Capture` on a thread. */
export function writeCapture(raw: RawCapture): { output: CaptureJob['output'] } {
  return { output: { document: formatDocument(raw, new Redactor(raw.sensitive, 'on a thread')) } };
}

/**
 * Writes the JSON text of a `Capture` on the event loop. Returns undefined if the search for credentials would take too
 * long there.
 */
export function writeShortCapture(raw: RawCapture): string | undefined {
  const redactor = new Redactor(raw.sensitive);
  const document = formatDocument(raw, redactor);
  return redactor.isBudgetExceeded ? undefined : document;
}

function formatDocument(raw: RawCapture, redactor: Redactor): string {
  const fields = raw.measurable && measureResponse(raw.measurable, redactor);
  // Texts are redacted one by one. The numbers here are our own, and must not be mistaken for a credential.
  const capture: CaptureDraft = {
    argumentsBytes: raw.argumentsBytes,
    ...(raw.request && { request: redactRequest(raw.request, redactor) }),
    ...(raw.response && { response: redactResponse(raw.response, redactor) }),
    ...(raw.result && { result: redactResult(raw.result, redactor) }),
    ...(fields && { fields }),
  };
  const args = raw.arguments === undefined ? undefined : redactArguments(raw.arguments, redactor);
  return formatWithinLimit(capture, args);
}

/** Returns the request without credentials, with its texts cut to their final length. */
function redactRequest(
  { origin, path, headers, body, ...request }: ReadableRequest,
  redactor: Redactor,
): ReadableRequest {
  const truncate = (text: string) => redactStart(text, maxFieldBytes, redactor);
  const redactBody = (): ReadableBody | undefined => {
    if (typeof body !== 'object') return body && redactStart(body, maxCapturedBytes, redactor);
    return 'fields' in body ? { fields: body.fields.map((field) => shortenField(field, truncate)) } : body;
  };
  return {
    ...request,
    origin: truncate(origin),
    path: redactStart(path, maxCapturedBytes, redactor),
    headers: headers.map(truncate),
    body: redactBody(),
  };
}

function redactResponse(
  { body, ...response }: NonNullable<RawCapture['response']>,
  redactor: Redactor,
): CapturedResponse {
  const truncate = (text: string) => redactStart(text, maxFieldBytes, redactor);
  return {
    ...response,
    headers: response.headers.map(([name, line]) => [truncate(name), truncate(line)]),
    ...(body && { body: redactPrefix(Buffer.from(body), maxCapturedBytes, redactor) }),
  };
}

function redactStart(text: string, limit: number, redactor: Redactor): string {
  return redactPrefix(Buffer.from(text), limit, redactor);
}

function redactResult({ start, ...result }: NonNullable<RawCapture['result']>, redactor: Redactor): CapturedResult {
  const text = getTextOfStart(start, start.length === result.bytes, maxCapturedBytes + 4 * redactor.maxFormLength);
  return text === undefined ? result : { ...result, text: redactPrefix(Buffer.from(text), maxCapturedBytes, redactor) };
}

/** Redacts arguments, including the names inside them, because the caller chooses those too. */
function redactArguments(text: string, redactor: Redactor): string {
  const renameProperty = (name: string) => redactor.text(name);
  return JSON.stringify(parseJson(text), (_name, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
    return isObject ? renameProperties(value, renameProperty) : redactValue(value, redactor);
  });
}

/** Redacts an argument value. Even a number may be a credential. */
function redactValue(value: unknown, redactor: Redactor): unknown {
  if (typeof value === 'string') return redactor.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const redacted = redactor.text(digits);
  return redacted === digits ? value : redacted;
}

/** Renames the properties of an object. Returns the same object if no name changes. */
function renameProperties(object: object, renameProperty: (name: string) => string): object {
  const entries = Object.entries(object);
  const isChanged = entries.some(([name]) => renameProperty(name) !== name);
  return isChanged ? Object.fromEntries(entries.map(([name, value]) => [renameProperty(name), value])) : object;
}

/** Maximum nesting of a measured response. */
const maxDepth = 1000;

/** Measures the fields of a response, and redacts their names and values. Returns undefined if the body is not JSON. */
function measureResponse(
  { body, transform }: { body: Uint8Array; transform: DotPath },
  redactor: Redactor,
): MeasuredResponse | undefined {
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const scan = isUtf8(json) ? scanJson(json, maxDepth) : undefined;
  if (!scan || scan.depth > maxDepth || !hasPath(json, transform)) return undefined;
  const { from: start, end } = findValueRange(json, transform);
  return {
    transform: formatDotPath(transform),
    answer: redactFields(measureFields(parseJson(json.toString('utf8', start, end))), redactor),
  };
}

function redactFields(fieldUse: FieldStats, redactor: Redactor): FieldStats {
  return {
    ...fieldUse,
    name: redactor.text(fieldUse.name),
    ...(fieldUse.always !== undefined && { always: redactor.text(fieldUse.always) }),
    fields: fieldUse.fields.map((field) => redactFields(field, redactor)),
  };
}

const quote = 0x22;
const backslash = 0x5c;
const letterU = 0x75;
/** Maximum length of content that is parsed completely. */
const maxParsedLength = 64 * 1024;

/** Copies the first bytes of a result's content, so that the copy can be transferred to a thread. */
export function copyStart(content: JsonText, maxBytes: number): Uint8Array {
  const start = typeof content === 'string' ? Buffer.from(content.slice(0, maxBytes)) : content.subarray(0, maxBytes);
  return new Uint8Array(start);
}

/**
 * Returns the text of a result, from the first bytes of its content. A file becomes a line with its type. Of incomplete
 * content, returns only the texts at its start, or undefined if it starts with a file.
 */
function getTextOfStart(start: Uint8Array, isComplete: boolean, maxCharacters: number): string | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  if (isComplete && bytes.length <= maxParsedLength)
    return (JSON.parse(bytes.toString('utf8')) as ContentBlock[]).map(getBlockText).join('\n');
  const texts = getTextsAtStart(bytes, maxCharacters);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Separator between two texts of content. */
const textSeparator = `"},${textStart.slice(1)}`;

/** Returns the texts at the start of content, or at least `maxCharacters` characters of them. Parses nothing else. */
export function getTextsAtStart(content: Buffer, maxCharacters: number): string[] {
  const texts: string[] = [];
  let offset = textStart.length;
  let isText = content.toString('latin1', 0, offset) === textStart;
  // An escaped character takes at most six bytes. An incomplete one at the end is dropped.
  for (let remaining = 6 * maxCharacters; isText && remaining > 0; ) {
    const escaped = content.subarray(offset, offset + remaining);
    const end = findTextEnd(escaped);
    texts.push(JSON.parse(`"${escaped.toString('utf8', 0, end)}"`) as string);
    remaining -= end;
    offset += end + textSeparator.length;
    isText = content.toString('latin1', offset - textSeparator.length, offset) === textSeparator;
  }
  return texts;
}

function getBlockText(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  const { mimeType } = block.type === 'resource' ? block.resource : block;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : `(a file, ${mimeType})`;
}

/** Returns the index of the closing quote of a text, or without one, the index after the last complete character. */
function findTextEnd(escaped: Buffer): number {
  let end = 0;
  while (end < escaped.length && escaped[end] !== quote) {
    const length = getEncodedLength(escaped, end);
    if (end + length > escaped.length) break;
    end += length;
  }
  return end;
}

/** Returns the number of bytes of the character or escape at `offset` (RFC 8259, 7; RFC 3629). */
function getEncodedLength(escaped: Buffer, offset: number): number {
  const byte = escaped[offset] as number;
  if (byte === backslash) return escaped[offset + 1] === letterU ? 6 : 2;
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
