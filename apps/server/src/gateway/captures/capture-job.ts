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
import { type CaptureDraft, formatWithinLimit, shortField } from './fit-capture.ts';

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
  const redact = new Redactor(raw.sensitive);
  const document = formatDocument(raw, redact);
  return redact.isBudgetExceeded ? undefined : document;
}

function formatDocument(raw: RawCapture, redact: Redactor): string {
  const fields = raw.measurable && measureResponse(raw.measurable, redact);
  // Texts are redacted one by one. The numbers here are our own, and must not be mistaken for a credential.
  const capture: CaptureDraft = {
    argumentsBytes: raw.argumentsBytes,
    ...(raw.request && { request: redactRequest(raw.request, redact) }),
    ...(raw.response && { response: redactResponse(raw.response, redact) }),
    ...(raw.result && { result: redactResult(raw.result, redact) }),
    ...(fields && { fields }),
  };
  const args = raw.arguments === undefined ? undefined : redactArguments(raw.arguments, redact);
  return formatWithinLimit(capture, args);
}

/** Returns the request without credentials, with its texts cut to their final length. */
function redactRequest(
  { origin, path, headers, body, ...request }: ReadableRequest,
  redact: Redactor,
): ReadableRequest {
  const truncate = (text: string) => redactStart(text, maxFieldBytes, redact);
  const redactBody = (): ReadableBody | undefined => {
    if (typeof body !== 'object') return body && redactStart(body, maxCapturedBytes, redact);
    return 'fields' in body ? { fields: body.fields.map((field) => shortField(field, truncate)) } : body;
  };
  return {
    ...request,
    origin: truncate(origin),
    path: redactStart(path, maxCapturedBytes, redact),
    headers: headers.map(truncate),
    body: redactBody(),
  };
}

function redactResponse(
  { body, ...response }: NonNullable<RawCapture['response']>,
  redact: Redactor,
): CapturedResponse {
  const truncate = (text: string) => redactStart(text, maxFieldBytes, redact);
  return {
    ...response,
    headers: response.headers.map(([name, line]) => [truncate(name), truncate(line)]),
    ...(body && { body: redactPrefix(Buffer.from(body), maxCapturedBytes, redact) }),
  };
}

function redactStart(text: string, limit: number, redact: Redactor): string {
  return redactPrefix(Buffer.from(text), limit, redact);
}

function redactResult({ start, ...result }: NonNullable<RawCapture['result']>, redact: Redactor): CapturedResult {
  const text = getTextOfStart(start, start.length === result.bytes, maxCapturedBytes + 4 * redact.maxFormLength);
  return text === undefined ? result : { ...result, text: redactPrefix(Buffer.from(text), maxCapturedBytes, redact) };
}

/** Redacts arguments, including the names inside them, because the caller chooses those too. */
function redactArguments(text: string, redact: Redactor): string {
  const renameProperty = (name: string) => redact.text(name);
  return JSON.stringify(parseJson(text), (_name, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
    return isObject ? renameProperties(value, renameProperty) : redactValue(value, redact);
  });
}

/** Redacts an argument value. Even a number may be a credential. */
function redactValue(value: unknown, redact: Redactor): unknown {
  if (typeof value === 'string') return redact.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const redacted = redact.text(digits);
  return redacted === digits ? value : redacted;
}

/** Renames the properties of an object. Returns the same object if no name changes. */
function renameProperties(object: object, renameProperty: (name: string) => string): object {
  const entries = Object.entries(object);
  const isChanged = entries.some(([name]) => renameProperty(name) !== name);
  return isChanged ? Object.fromEntries(entries.map(([name, value]) => [renameProperty(name), value])) : object;
}

const maxDepth = 1000;

/** Measures the fields of a response, and redacts their names and values. Returns undefined if the body is not JSON. */
function measureResponse(
  { body, transform }: { body: Uint8Array; transform: DotPath },
  redact: Redactor,
): MeasuredResponse | undefined {
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const scan = isUtf8(json) ? scanJson(json, maxDepth) : undefined;
  if (!scan || scan.depth > maxDepth || !hasPath(json, transform)) return undefined;
  const { from: start, end } = findValueRange(json, transform);
  return {
    transform: formatDotPath(transform),
    answer: redactFields(measureFields(parseJson(json.toString('utf8', start, end))), redact),
  };
}

function redactFields(fieldUse: FieldStats, redact: Redactor): FieldStats {
  return {
    ...fieldUse,
    name: redact.text(fieldUse.name),
    ...(fieldUse.always !== undefined && { always: redact.text(fieldUse.always) }),
    fields: fieldUse.fields.map((field) => redactFields(field, redact)),
  };
}

const quote = 0x22;
const backslash = 0x5c;
/** Maximum length of content that is parsed completely. */
const maxParsedLength = 64 * 1024;

/** Copies the first bytes of a result's content, so that the copy can be transferred to a thread. */
export function copyStart(content: JsonText, maxBytes: number): Uint8Array {
  const start = typeof content === 'string' ? Buffer.from(content.slice(0, maxBytes)) : content.subarray(0, maxBytes);
  return new Uint8Array(start);
}

/**
 * Returns the text of a result, from the first bytes of its content. A file becomes a line with its type. For longer
 * content, returns the texts at its start, or undefined if it starts with something else.
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

/** Returns the texts at the start of content, at least their first `maxCharacters` characters. Nothing else is parsed. */
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

/** Returns the index of the end of a text: of its closing quote, or after its last complete character. */
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
  if (byte === backslash) return escaped[offset + 1] === 0x75 ? 6 : 2;
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
