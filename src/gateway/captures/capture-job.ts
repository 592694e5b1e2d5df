import { isUtf8 } from 'node:buffer';
import type { FieldUse } from '../../domain/answer-fields/field-use.ts';
import { measureFields } from '../../domain/answer-fields/measure-fields.ts';
import { Redactor, redactedStart } from '../../domain/credentials/redactor.ts';
import { type DotPath, dotPathText } from '../../domain/json/dot-path.ts';
import { isRawNumber, parseJson } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { findPart, hasPart } from '../../domain/json/response-transform.ts';
import type { ContentBlock, JsonText } from '../../domain/mcp.ts';
import type { ReadableBody, ReadableRequest } from '../../domain/request/upstream-request.ts';
import type { CapturedResponse, CapturedResult, MeasuredAnswer } from '../../store/calls/captures.ts';
import { textStart } from '../answer/json-answer.ts';
import { type CaptureDraft, fitCapture, shortField } from './fit-capture.ts';

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
  answer: { body: Uint8Array; transform: DotPath } | undefined;
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
  return { output: { document: documentOf(raw, new Redactor(raw.sensitive, 'on a thread')) } };
}

/**
 * Writes the JSON text of a `Capture` on the event loop. Returns undefined if the search for credentials would take too
 * long there.
 */
export function writeShortCapture(raw: RawCapture): string | undefined {
  const redact = new Redactor(raw.sensitive);
  const document = documentOf(raw, redact);
  return redact.isSpent ? undefined : document;
}

function documentOf(raw: RawCapture, redact: Redactor): string {
  const fields = raw.answer && measuredAnswer(raw.answer, redact);
  // Texts are redacted one by one. The numbers here are our own, and must not be mistaken for a credential.
  const capture: CaptureDraft = {
    argumentsBytes: raw.argumentsBytes,
    ...(raw.request && { request: requestOf(raw.request, redact) }),
    ...(raw.response && { response: responseOf(raw.response, redact) }),
    ...(raw.result && { result: resultOf(raw.result, redact) }),
    ...(fields && { fields }),
  };
  const args = raw.arguments === undefined ? undefined : argumentsOf(raw.arguments, redact);
  return fitCapture(capture, args);
}

/** Returns the request without credentials, with its texts cut to their final length. */
function requestOf({ origin, path, headers, body, ...request }: ReadableRequest, redact: Redactor): ReadableRequest {
  const short = (text: string) => startOf(text, maxFieldBytes, redact);
  const cutBody = (): ReadableBody | undefined => {
    if (typeof body !== 'object') return body && startOf(body, maxCapturedBytes, redact);
    return 'fields' in body ? { fields: body.fields.map((field) => shortField(field, short)) } : body;
  };
  return {
    ...request,
    origin: short(origin),
    path: startOf(path, maxCapturedBytes, redact),
    headers: headers.map(short),
    body: cutBody(),
  };
}

function responseOf({ body, ...response }: NonNullable<RawCapture['response']>, redact: Redactor): CapturedResponse {
  const short = (text: string) => startOf(text, maxFieldBytes, redact);
  return {
    ...response,
    headers: response.headers.map(([name, line]) => [short(name), short(line)]),
    ...(body && { body: redactedStart(Buffer.from(body), maxCapturedBytes, redact) }),
  };
}

function startOf(text: string, limit: number, redact: Redactor): string {
  return redactedStart(Buffer.from(text), limit, redact);
}

function resultOf({ start, ...result }: NonNullable<RawCapture['result']>, redact: Redactor): CapturedResult {
  const text = textOfStart(start, start.length === result.bytes, maxCapturedBytes + 4 * redact.longest);
  return text === undefined ? result : { ...result, text: redactedStart(Buffer.from(text), maxCapturedBytes, redact) };
}

/** Redacts arguments, including the names inside them, because the caller chooses those too. */
function argumentsOf(text: string, redact: Redactor): string {
  const change = (name: string) => redact.text(name);
  return JSON.stringify(parseJson(text), (_name, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
    return isObject ? withNames(value, change) : cleaned(value, redact);
  });
}

/** Redacts an argument value. Even a number may be a credential. */
function cleaned(value: unknown, redact: Redactor): unknown {
  if (typeof value === 'string') return redact.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const clean = redact.text(digits);
  return clean === digits ? value : clean;
}

/** Renames the properties of an object. Returns the same object if no name changes. */
function withNames(object: object, change: (name: string) => string): object {
  const entries = Object.entries(object);
  const isChanged = entries.some(([name]) => change(name) !== name);
  return isChanged ? Object.fromEntries(entries.map(([name, value]) => [change(name), value])) : object;
}

const deepest = 1000;

/** Measures the fields of a response, and redacts their names and values. Returns undefined if the body is not JSON. */
function measuredAnswer(
  { body, transform }: { body: Uint8Array; transform: DotPath },
  redact: Redactor,
): MeasuredAnswer | undefined {
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const scan = isUtf8(json) ? scanJson(json, deepest) : undefined;
  if (!scan || scan.depth > deepest || !hasPart(json, transform)) return undefined;
  const { from, end } = findPart(json, transform);
  return {
    transform: dotPathText(transform),
    answer: redacted(measureFields(parseJson(json.toString('utf8', from, end))), redact),
  };
}

function redacted(use: FieldUse, redact: Redactor): FieldUse {
  return {
    ...use,
    name: redact.text(use.name),
    ...(use.always !== undefined && { always: redact.text(use.always) }),
    fields: use.fields.map((field) => redacted(field, redact)),
  };
}

const quote = 0x22;
const backslash = 0x5c;
/** Maximum length of content that is parsed completely. */
const mostParsed = 64 * 1024;

/** Copies the first bytes of a result's content, so that the copy can be transferred to a thread. */
export function startOfContent(content: JsonText, most: number): Uint8Array {
  const start = typeof content === 'string' ? Buffer.from(content.slice(0, most)) : content.subarray(0, most);
  return new Uint8Array(start);
}

/**
 * Returns the text of a result, from the first bytes of its content. A file becomes a line with its type. For longer
 * content, returns the texts at its start, or undefined if it starts with something else.
 */
function textOfStart(start: Uint8Array, isWhole: boolean, most: number): string | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  if (isWhole && bytes.length <= mostParsed)
    return (JSON.parse(bytes.toString('utf8')) as ContentBlock[]).map(textOfBlock).join('\n');
  const texts = textsAtStart(bytes, most);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Separator between two texts of content. */
const betweenTexts = `"},${textStart.slice(1)}`;

/** Returns the texts at the start of content, at least their first `most` characters. Nothing else is parsed. */
export function textsAtStart(content: Buffer, most: number): string[] {
  const texts: string[] = [];
  let at = textStart.length;
  let isText = content.toString('latin1', 0, at) === textStart;
  // An escaped character takes at most six bytes. An incomplete one at the end is dropped.
  for (let left = 6 * most; isText && left > 0; ) {
    const escaped = content.subarray(at, at + left);
    const end = endOfText(escaped);
    texts.push(JSON.parse(`"${escaped.toString('utf8', 0, end)}"`) as string);
    left -= end;
    at += end + betweenTexts.length;
    isText = content.toString('latin1', at - betweenTexts.length, at) === betweenTexts;
  }
  return texts;
}

function textOfBlock(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  const { mimeType } = block.type === 'resource' ? block.resource : block;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : `(a file, ${mimeType})`;
}

/** Returns the index of the end of a text: of its closing quote, or after its last complete character. */
function endOfText(escaped: Buffer): number {
  let end = 0;
  while (end < escaped.length && escaped[end] !== quote) {
    const length = lengthAt(escaped, end);
    if (end + length > escaped.length) break;
    end += length;
  }
  return end;
}

/** Returns the number of bytes of the character or escape at `at` (RFC 8259, 7; RFC 3629). */
function lengthAt(escaped: Buffer, at: number): number {
  const byte = escaped[at] as number;
  if (byte === backslash) return escaped[at + 1] === 0x75 ? 6 : 2;
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
