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

/** A capture before anything is redacted. */
export type RawCapture = {
  /** JSON text; undefined when they are too long to be kept. */
  arguments: string | undefined;
  argumentsBytes: number;
  request: ReadableRequest | undefined;
  /** `body` is the beginning of the body, where that is text. */
  response: (Omit<CapturedResponse, 'body'> & { body: Uint8Array | undefined }) | undefined;
  /** `start` is the beginning of the content. */
  result: (Omit<CapturedResult, 'text'> & { start: Uint8Array }) | undefined;
  /** The whole answer, where its fields are to be measured, and the path of its `response_transform`. */
  answer: { body: Uint8Array; transform: DotPath } | undefined;
  /** Credentials that must not appear in it. */
  sensitive: readonly string[];
};

/** Writes the JSON text of a `Capture`. */
export type CaptureJob = { input: RawCapture; output: { document: string } };

export const maxCapturedBytes = 8 * 1024;
/** Longest line of a header, and longest text of a form's field, in bytes. */
export const maxFieldBytes = 1024;

/** Writes the JSON text of a `Capture` on a thread. */
export function writeCapture(raw: RawCapture): { output: CaptureJob['output'] } {
  return { output: { document: documentOf(raw, new Redactor(raw.sensitive, 'on a thread')) } };
}

/** Writes it on the event loop. Undefined where the search for credentials would take too long there. */
export function writeShortCapture(raw: RawCapture): string | undefined {
  const redact = new Redactor(raw.sensitive);
  const document = documentOf(raw, redact);
  return redact.isSpent ? undefined : document;
}

function documentOf(raw: RawCapture, redact: Redactor): string {
  const fields = raw.answer && measuredAnswer(raw.answer, redact);
  // Texts are redacted one by one. Numbers here are ours, and none of them may be taken for a credential.
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

/** The request without credentials, its texts cut to their final length. */
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

/** Arguments without credentials; the caller chooses names inside them, too. */
function argumentsOf(text: string, redact: Redactor): string {
  const change = (name: string) => redact.text(name);
  return JSON.stringify(parseJson(text), (_name, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
    return isObject ? withNames(value, change) : cleaned(value, redact);
  });
}

/** A value of an argument without the credentials of its call. It may be a credential, even as a number. */
function cleaned(value: unknown, redact: Redactor): unknown {
  if (typeof value === 'string') return redact.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const clean = redact.text(digits);
  return clean === digits ? value : clean;
}

/** The same object, or a copy whose names are changed. */
function withNames(object: object, change: (name: string) => string): object {
  const entries = Object.entries(object);
  const isChanged = entries.some(([name]) => change(name) !== name);
  return isChanged ? Object.fromEntries(entries.map(([name, value]) => [change(name), value])) : object;
}

const deepest = 1000;

/** The fields of an answer, without credentials in their names and values; undefined where it is no JSON. */
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
/** Longest content that is parsed for its texts. */
const mostParsed = 64 * 1024;

/** The first bytes of the content of a result, as a copy that may go to a thread. */
export function startOfContent(content: JsonText, most: number): Uint8Array {
  const start = typeof content === 'string' ? Buffer.from(content.slice(0, most)) : content.subarray(0, most);
  return new Uint8Array(start);
}

/**
 * The text of a result, from the first bytes of its content; a file is a line that says its type. Of longer content the
 * texts that it begins with, or undefined when it begins with something else.
 */
function textOfStart(start: Uint8Array, isWhole: boolean, most: number): string | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  if (isWhole && bytes.length <= mostParsed)
    return (JSON.parse(bytes.toString('utf8')) as ContentBlock[]).map(textOfBlock).join('\n');
  const texts = textsAtStart(bytes, most);
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Between two texts of content. */
const betweenTexts = `"},${textStart.slice(1)}`;

/** The texts that content begins with, of which at least the first `most` characters; nothing else of it is read. */
export function textsAtStart(content: Buffer, most: number): string[] {
  const texts: string[] = [];
  let at = textStart.length;
  let isText = content.toString('latin1', 0, at) === textStart;
  // An escaped character takes six bytes at most, and an unfinished one at the end is left out.
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

/** Index of the end of a text: its closing quote, or behind its last whole character. */
function endOfText(escaped: Buffer): number {
  let end = 0;
  while (end < escaped.length && escaped[end] !== quote) {
    const length = lengthAt(escaped, end);
    if (end + length > escaped.length) break;
    end += length;
  }
  return end;
}

/** Number of bytes of the character or the escape that begins here (RFC 8259, 7; RFC 3629). */
function lengthAt(escaped: Buffer, at: number): number {
  const byte = escaped[at] as number;
  if (byte === backslash) return escaped[at + 1] === 0x75 ? 6 : 2;
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
