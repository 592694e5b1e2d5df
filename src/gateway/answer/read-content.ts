import { isUtf8 } from 'node:buffer';
import { redact, redactor } from '../../domain/credentials/redactor.ts';
import { knownMediaType, mediaTypeOf } from '../../domain/http/headers.ts';
import { compactJson } from '../../domain/json/json-cursor.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { keepFields } from '../../domain/json/response-fields.ts';
import { findPart, hasPart } from '../../domain/json/response-transform.ts';
import { wellFormedJson } from '../../domain/json/well-formed-json.ts';
import type { ContentBlock, JsonText, ToolResult } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { stepsOnLoop, TooMuchWork } from '../../domain/work/steps.ts';
import { plainFailure, ToolFailure } from '../../errors.ts';
import type { OutputCheck } from '../arguments/validate-arguments.ts';
import { type AnswerHead, fileNameIn, headerLines, headersJson } from './answer-head.ts';
import { type AttachedBlock, AttachedFiles } from './attached-files.ts';
import { structuredForEarlier, structuredOfTexts } from './earlier-clients.ts';
import type { CutResult } from './fit-answer.ts';
import { JsonTextBlock, shortAsText } from './json-text-block.ts';
import { carriedOut, fieldOfJson, headersProperty, type Reading } from './reading.ts';
import { redactedStart } from './redact.ts';
import { isJson, isText, jsonInUtf8, textOfBody } from './text-body.ts';

/** With types such as application/vnd.github.raw+json an API sends a file as it is, which is seldom JSON. */
const rawSuffix = '.raw+json';
const maxDepth = 1000;

/**
 * Turns the body of a successful answer into a result. Time is proportional to the body, except for the check of
 * structured content, which may take `mostSteps`.
 * @throws ToolFailure malformed, transform
 * @throws TooMuchWork
 */
export function readContent(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): CutResult {
  try {
    return contentOf(body, head, reading, mostSteps);
  } catch (error) {
    throw error instanceof ToolFailure ? toldFailure(error, head) : error;
  }
}

/** A failure may name what the upstream wrote. The request had its effect, whatever became of the answer. */
function toldFailure({ outcome, message, problems, forRecord }: ToolFailure, { sensitive }: AnswerHead) {
  const told = message.includes(carriedOut) ? message : `${message}; ${carriedOut}`;
  return new ToolFailure(outcome, redact(told, sensitive), problems, forRecord);
}

/**
 * Where a transform, fields or a schema need JSON, the bytes decide whether an answer is JSON, and one that is not is an
 * error: nothing is passed on unfiltered. Otherwise its media type decides, and what is called JSON and is not goes out as
 * text.
 */
function contentOf(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): CutResult {
  const { contentType, fileName } = head;
  const type = mediaTypeOf(contentType);
  const isRaw = type.endsWith(rawSuffix);
  const field = fieldOfJson(reading);
  if (field !== undefined || isJson(type) || type === '') {
    const json = jsonInUtf8(body, contentType);
    const read = jsonResult(field === undefined ? json : withoutGuard(json), head, reading, mostSteps);
    if (typeof read !== 'string') return read;
    if (field !== undefined) throw notJson(field, read, contentType);
    const isCalledJson = type !== '' && !isRaw;
    if (isCalledJson || isUtf8(body))
      return asText(textOfBody(body, contentType), isCalledJson ? read : undefined, head);
  }
  if (isText(type, contentType, body)) return asText(textOfBody(body, contentType), undefined, head);
  const files = new AttachedFiles(reading.mostCharacters);
  const content = type.startsWith('multipart/')
    ? multipartBlocks(body, contentType, files)
    : [binaryBlock(type || 'application/octet-stream', body, fileName, files)];
  return files.list.length === 0 ? blocks(content, head) : { ...blocks(content, head), files: files.list };
}

/** What some APIs write before JSON, so that a page cannot run it as a script. */
const guard = /^(?:\)\]\}'?,?|while\s?\(1\);?|for\s?\(;;\);?|throw 1;[^\r\n]{0,60}|&&&START&&&|\{\}\s?&&)\s*/;

function withoutGuard(body: Buffer): Buffer {
  const bytes = withoutMark(body);
  const found = guard.exec(bytes.toString('latin1', 0, 100));
  return found ? bytes.subarray(found[0].length) : bytes;
}

/** `why` an answer cannot be read as JSON, which its media type may say already. */
function notJson(field: string, why: string, contentType: string): ToolFailure {
  const type = mediaTypeOf(contentType);
  const more = isJson(type) || type === '' ? `, and ${why}` : '';
  const sentence = (named: string) => `${field} needs a JSON answer; the upstream answered with ${named}${more}`;
  return new ToolFailure('transform', sentence(type || 'no media type'), [], sentence(knownMediaType(contentType)));
}

/** `whyNot`: why an answer that is called JSON could not be read as such. */
function asText(text: string, whyNot: string | undefined, head: AnswerHead): ToolResult {
  const note = `The request was carried out. Its answer is passed on as text, because ${whyNot}.`;
  return blocks(
    [{ type: 'text', text }, ...(whyNot === undefined ? [] : [{ type: 'text' as const, text: note }])],
    head,
  );
}

function blocks(content: AnswerBlock[], head: AnswerHead): ToolResult {
  const structured = head.shown.length === 0 ? structuredOfTexts(content, head.era) : undefined;
  return withHeaders({ content: JSON.stringify(content), structured, isError: false }, head);
}

/**
 * JSON is checked and cut, but never parsed and written again, so it is passed on unchanged, except for what parsers of
 * clients refuse. A text: why it cannot be read.
 */
function jsonResult(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): ToolResult | string {
  if (!isUtf8(body)) return 'it is not valid UTF-8';
  const bytes = wellFormedJson(withoutMark(body));
  const isWhole = reading.transform.length === 0 && !reading.fields;
  const block = isWhole ? new JsonTextBlock(bytes) : undefined;
  const scan = scanJson(bytes, maxDepth, block);
  if (!scan) return 'it is not strict JSON';
  if (scan.depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
  const chosen = isWhole && scan.isCompact ? bytes : chosenPart(bytes, reading);
  const whole = withHeaderSlot(chosen, head, reading);
  if (reading.output) checkOutput(whole, head, reading.output, mostSteps);
  const result = block && scan.isCompact ? block.result() : resultOf(chosen);
  if (reading.isAnnounced) return withHeaders({ ...result, structured: shortAsText(whole) }, head);
  if (head.shown.length > 0) return withHeaders(result, head);
  return { ...result, structured: structuredForEarlier(chosen, head.era) };
}

/** Compact JSON: the part named by `response_transform`, with only the fields to keep. */
function chosenPart(bytes: Buffer, { transform, fields }: Reading): Buffer {
  const { from, end } = transform.length === 0 ? { from: 0, end: bytes.length } : findPart(bytes, transform);
  const part = bytes.subarray(from, end);
  return fields ? keepFields(part, fields) : compactJson(part);
}

/** Bytes of an answer that a failure shows. */
const shownBytes = 1000;

function checkOutput(json: Buffer, { sensitive }: AnswerHead, output: OutputCheck, mostSteps: number): void {
  const value: unknown = JSON.parse(json.toString('utf8'));
  if (output.fits(value, mostSteps)) return;
  const start = redactedStart(json, shownBytes, redactor(sensitive));
  const sentence = 'the answer does not fit output_schema';
  throw new ToolFailure(
    'transform',
    `${sentence}; ${carriedOut}: ${start}`,
    [],
    `${sentence}${misfitOf(value, output, mostSteps)}`,
  );
}

/** Finding the fault may take part of the steps that the verdict may take. @throws TooMuchWork when a thread does that again */
function misfitOf(value: unknown, output: OutputCheck, mostSteps: number): string {
  try {
    return `: ${output.misfit(value, mostSteps / 4)}`;
  } catch (error) {
    if (error instanceof TooMuchWork && mostSteps > stepsOnLoop) return '';
    throw error;
  }
}

/** A result of JSON that is compact. */
function resultOf(json: Buffer): ToolResult {
  const block = new JsonTextBlock(json);
  scanJson(json, maxDepth, block);
  return block.result();
}

function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

const openObject = 0x7b;
const closeObject = 0x7d;

/**
 * Structured content with the headers of the answer as the property `response_headers`, where that fits its shape: an
 * object without such a property. Otherwise the same JSON.
 */
function withHeaderSlot(json: Buffer, { shown }: AnswerHead, { hasHeaderSlot }: Reading): Buffer {
  if (shown.length === 0 || !hasHeaderSlot || json[0] !== openObject || hasPart(json, [headersProperty])) return json;
  const rest = json[1] === closeObject ? '' : ',';
  return Buffer.concat([Buffer.from(`{"${headersProperty}":${headersJson(shown)}${rest}`), json.subarray(1)]);
}

/** A result with the headers of the answer as a text block before its others. */
function withHeaders(result: ToolResult, { shown }: AnswerHead): ToolResult {
  if (shown.length === 0) return result;
  const text = headerLines(shown);
  const tokens = result.tokens !== undefined && { tokens: result.tokens + tokensOfLength(text.length) };
  return { ...result, ...tokens, content: withFirst({ type: 'text', text }, result.content) };
}

function withFirst(block: object, content: JsonText): JsonText {
  const start = `[${JSON.stringify(block)},`;
  return typeof content === 'string'
    ? start + content.slice(1)
    : Buffer.concat([Buffer.from(start), content.subarray(1)]);
}

/** A block of the content of an answer, before its large files have addresses. */
type AnswerBlock = ContentBlock | AttachedBlock;

/**
 * An image, a sound, or an embedded resource for everything else that is not text. The name of a file ends the URI of
 * its resource, and is in its metadata. A large file is attached to the result instead.
 * @throws ToolFailure malformed when what is called an image is a text: models refuse a whole conversation for that
 */
function binaryBlock(
  mimeType: string,
  body: Buffer,
  fileName: string | undefined,
  attached: AttachedFiles,
): AnswerBlock {
  const kind = /^(image|audio)\//.exec(mimeType)?.[1] as 'image' | 'audio' | undefined;
  if (kind && isUtf8(body) && !body.includes(0)) {
    const said = (type: string) => `the upstream declared ${type} and answered with text`;
    throw new ToolFailure('malformed', said(mimeType.slice(0, 100)), [], said(knownMediaType(mimeType)));
  }
  const large = attached.take({ name: fileName, mediaType: mimeType, bytes: body });
  if (large) return large;
  const data = body.toString('base64');
  if (kind) return { type: kind, data, mimeType, ...metaOf(fileName) };
  return { type: 'resource', resource: { uri: uriOf(fileName), mimeType, blob: data, ...metaOf(fileName) } };
}

const answerUri = 'urn:toolhost:answer';

function uriOf(fileName: string | undefined): string {
  return fileName === undefined ? answerUri : `${answerUri}/${encodeURIComponent(fileName)}`;
}

function metaOf(fileName: string | undefined): { _meta?: { 'toolhost/file_name': string } } {
  return fileName === undefined ? {} : { _meta: { 'toolhost/file_name': fileName } };
}

const maxParts = 50;

/**
 * The parts of a multipart answer (RFC 2046, 5.1), each as the block of its own media type.
 * @throws ToolFailure malformed
 */
function multipartBlocks(body: Buffer, contentType: string, attached: AttachedFiles): AnswerBlock[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (!name) throw plainFailure('malformed', 'the upstream answered with a multipart body without a boundary');
  const parts = split(body, `--${name}`);
  if (parts.length === 0 || parts.length > maxParts) {
    const found = parts.length === 0 ? 'no parts' : `more than ${maxParts} parts`;
    throw plainFailure(
      'malformed',
      `the upstream answered with a multipart body of ${found}; allowed: 1 to ${maxParts}`,
    );
  }
  return parts.map((part) => partBlock(part, attached));
}

/** The parts of a body; one more than allowed when there are too many. */
function split(body: Buffer, delimiter: string): Buffer[] {
  const parts: Buffer[] = [];
  let start = body.indexOf(delimiter);
  while (start >= 0 && parts.length <= maxParts) {
    const from = start + delimiter.length;
    if (body.subarray(from, from + 2).toString() === '--') break;
    const end = body.indexOf(`\r\n${delimiter}`, from);
    if (end < 0) break;
    parts.push(body.subarray(from + 2, end));
    start = end + 2;
  }
  return parts;
}

function partBlock(part: Buffer, attached: AttachedFiles): AnswerBlock {
  const hasNoHead = part.subarray(0, 2).toString() === '\r\n';
  const headEnd = hasNoHead ? -2 : part.indexOf('\r\n\r\n');
  const head = part.subarray(0, Math.max(0, headEnd)).toString('latin1', 0, longestHead);
  const content = headEnd === -1 ? part : part.subarray(headEnd + 4);
  const contentType = /^content-type:\s*([^\r\n]+)/im.exec(head)?.[1] ?? 'text/plain';
  const mimeType = mediaTypeOf(contentType);
  const fileName = fileNameIn(/^content-disposition:\s*([^\r\n]{1,4096})/im.exec(head)?.[1] ?? '');
  const isBase64 = /^content-transfer-encoding:\s*base64/im.test(head);
  const bytes = isBase64 ? Buffer.from(content.toString('latin1'), 'base64') : content;
  if (mimeType === 'text/plain') return { type: 'text', text: textOfBody(bytes, contentType) };
  if (isJson(mimeType) || isText(mimeType, contentType, bytes)) {
    const text = textOfBody(bytes, contentType);
    return { type: 'resource', resource: { uri: uriOf(fileName), mimeType, text, ...metaOf(fileName) } };
  }
  return binaryBlock(mimeType, bytes, fileName, attached);
}

/** Longest head of a part that is read, in bytes. */
const longestHead = 16_384;
