import { cut, Redactor, redact, redactedStart } from '../../domain/credentials/redactor.ts';
import { knownMediaType, mediaTypeOf } from '../../domain/http/headers.ts';
import { type ToolResult, textResult } from '../../domain/mcp.ts';
import { stepsOnLoop, TooMuchWork } from '../../domain/work/steps.ts';
import { ToolFailure } from '../../errors.ts';
import { STATUS_CODES } from '../../http/node-http.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { type AnswerBlock, type AnswerFile, AttachedFiles, fileBlocks, multipartBlocks } from './answer-files.ts';
import {
  type AnswerHead,
  contentTypeOf,
  headerLines,
  headersJson,
  headerText,
  headOf,
  isJson,
  isText,
  jsonInUtf8,
  locationPath,
  searchableText,
  shownHeaders,
  shownRedirectTarget,
  textOfBody,
} from './answer-head.ts';
import type { CutResult } from './fit-answer.ts';
import { resultOfJson, structuredOfTexts, tokensOfContent, withHeaders, withoutMark } from './json-answer.ts';
import { carriedOut, headersProperty, type Reading } from './reading.ts';
import { refusalLines } from './refusal-lines.ts';

const maxErrorBytes = 8 * 1024;
/** Not a redirect: the resource has not changed (RFC 9110, 15.4.5). */
const notModified = 304;

/** Maximum size of a body that is always processed on the event loop, in bytes. */
const shortBytes = 64 * 1024;

/**
 * Converts an upstream's response into the tool result (behaviour: "The tool result"). Returns undefined if that would
 * block the event loop too long. `client` contains the credentials of the call, which the upstream may have echoed.
 * @throws ToolFailure upstream_status, redirect, malformed, transform
 */
export function readAnswer(
  answer: Answer,
  reading: Reading,
  client: Pick<AnswerHead, 'sensitive' | 'era'>,
): CutResult | undefined {
  const { status, body } = answer;
  if (status >= 300) throw refusal(answer, reading, new Redactor(client.sensitive));
  if (body.length > shortBytes && isLong(answer, reading)) return undefined;
  const head = headOf(answer, reading, client);
  try {
    if (status === 204 || body.length === 0) return emptyResult(answer, head, reading);
    return readContent(body, head, reading, stepsOnLoop);
  } catch (error) {
    if (error instanceof TooMuchWork) return undefined;
    throw error;
  }
}

/** Returns true if a long body needs processing. The bytes of a single file are passed on without it. */
function isLong({ headers, body }: Answer, { jsonField }: Reading): boolean {
  const contentType = contentTypeOf(headers);
  const type = mediaTypeOf(contentType);
  if (jsonField !== undefined || isJson(type) || type.startsWith('multipart/')) return true;
  return isText(type, contentType, body);
}

function refusal(answer: Answer, reading: Reading, redact: Redactor): ToolFailure {
  const status = statusText(answer, redact);
  const shown = shownHeaders(answer.headers, reading, redact);
  const more = [...refusalLines(answer, shown, redact), ...(shown.length > 0 ? [headerLines(shown)] : [])];
  const lines = more.map((line) => `\n${line}`).join('');
  if (answer.status < 400 && answer.status !== notModified) {
    const target = shownRedirectTarget(headerText(String(answer.headers.location ?? '')), redact);
    const hint = target !== undefined && reading.mayFollow ? ' unless the tool has redirects: "follow"' : '';
    const sentence = `${status}: the upstream redirects to ${target ?? 'another URL'}; redirects are not followed${hint}`;
    return new ToolFailure('redirect', `${sentence}${lines}`);
  }
  const retry = answer.headers['retry-after'];
  const isShown = shown.some(({ name }) => name.toLowerCase() === 'retry-after');
  const retryText = typeof retry === 'string' && !isShown ? `\nRetry-After: ${shortStart(retry, redact)}` : '';
  const body = errorBody(answer, redact);
  return new ToolFailure('upstream_status', `${status}${retryText}${lines}${body && `\n${body}`}`);
}

function statusText({ status, statusText }: Answer, redact: Redactor): string {
  const reason = statusText === '' ? (STATUS_CODES[status] ?? '') : shortStart(headerText(statusText), redact);
  return `HTTP ${status}${reason ? ` ${reason}` : ''}`;
}

/** Returns the first 100 bytes of a text from the upstream. Truncated last, so that no part of a credential remains. */
function shortStart(text: string, redact: Redactor): string {
  return cut(redact.text(text), 100);
}

/** Returns the first 8 KiB of an error body, if it is text. */
function errorBody(answer: Answer, redact: Redactor): string {
  const text = searchableText(answer, 4 * (maxErrorBytes + redact.longest));
  if (text === undefined) return '';
  const start = redactedStart(Buffer.from(text), maxErrorBytes, redact);
  const { length } = answer.body;
  return length > maxErrorBytes ? `${start}\n… (${length} bytes in all)` : start;
}

/** Creates the result of a response without a body: its status, and the headers that the tool requests. */
function emptyResult(answer: Answer, head: AnswerHead, reading: Reading): ToolResult {
  const redact = new Redactor(head.sensitive);
  const status = statusText(answer, redact);
  const isLocationShown = head.shown.some(({ name }) => name.toLowerCase() === 'location');
  const path = isLocationShown ? undefined : locationPath(headerText(String(answer.headers.location ?? '')), redact);
  const hint = path === undefined && !isLocationShown ? preferHint(answer, reading) : '';
  const lines = [
    ...(path === undefined ? [] : [`Location: ${path}`]),
    ...(head.shown.length > 0 ? [headerLines(head.shown)] : []),
  ];
  const more = [hint, ...lines].join('\n');
  const structured = structuredStatus(answer, head, reading);
  const field = structured !== undefined && reading.transform.length === 0 ? undefined : reading.wholeField;
  if (field !== undefined) {
    throw new ToolFailure(
      'transform',
      `${field} requires a JSON response, but ${status} has no body; ${carriedOut}${more}`,
      [],
      `${field} requires a JSON response, but HTTP ${answer.status} has no body`,
    );
  }
  const { content } = textResult(`${status.slice(5)}${reading.isHead ? headHint(reading) : noBody}${more}`, false);
  return { content, structured: reading.isAnnounced ? structured : undefined, isError: false };
}

const noBody = ': the response has no body';

function headHint({ headers }: Reading): string {
  return headers.length > 0 ? '' : ': a response to HEAD has no body; set response_headers to show its headers';
}

/**
 * Returns the status and the headers as structured content, if the tool requests headers or sends HEAD and its schema
 * allows that.
 */
function structuredStatus({ status }: Answer, { shown }: AnswerHead, reading: Reading): string | undefined {
  if (!reading.output || (!reading.isHead && reading.headers.length === 0)) return undefined;
  const json = `{"status":${status},"${headersProperty}":${headersJson(shown)}}`;
  return reading.output.fits(JSON.parse(json), stepsOnLoop) ? json : undefined;
}

/**
 * Returns a hint about `Prefer`. After a 202 there is none, because the row was not written yet and could not be
 * returned (RFC 9110, 15.3.3).
 */
function preferHint({ status }: Answer, { hintPrefer }: Reading): string {
  if (!hintPrefer || status === 202) return '';
  return ' (with the header "Prefer: return=representation", some upstreams return the written row)';
}

/**
 * Suffix of types such as application/vnd.github.raw+json, with which an API sends a file unchanged. The file is rarely
 * JSON.
 */
const rawSuffix = '.raw+json';

/**
 * Converts the body of a successful response into a result. Takes time proportional to the body, except for the check
 * of structured content, which may take `mostSteps`.
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

/**
 * Redacts a failure, which may quote the upstream, and adds that the request was carried out even though its response
 * could not be processed.
 */
function toldFailure({ outcome, message, problems, forRecord }: ToolFailure, { sensitive }: AnswerHead) {
  const told = message.includes(carriedOut) ? message : `${message}; ${carriedOut}`;
  return new ToolFailure(outcome, redact(told, sensitive), problems, forRecord);
}

/**
 * Creates the content of a result. If a transform, fields, or a schema require JSON, the bytes decide if a response is
 * JSON, and any other response is an error, so that nothing is passed on unfiltered. Otherwise the media type decides,
 * and invalid JSON is passed on as text.
 */
function contentOf(body: Buffer, head: AnswerHead, reading: Reading, mostSteps: number): CutResult {
  const { contentType, fileName } = head;
  const type = mediaTypeOf(contentType);
  const isRaw = type.endsWith(rawSuffix);
  const field = reading.jsonField;
  if (field !== undefined || isJson(type) || type === '') {
    const json = jsonInUtf8(body, contentType, field !== undefined);
    const read = resultOfJson(field === undefined ? json : withoutGuard(json), head, reading, mostSteps);
    if (typeof read !== 'string') return read;
    if (field !== undefined) throw notJson(field, read, contentType);
    if (type !== '' && !isRaw) return asText(textOfBody(body, contentType), read, head);
  }
  if (isText(type, contentType, body)) return asText(textOfBody(body, contentType), undefined, head);
  const files = new AttachedFiles(reading.mostCharacters);
  const content = type.startsWith('multipart/')
    ? multipartBlocks(body, contentType, files)
    : fileBlocks(type, body, fileName, files);
  return filesResult(content, files.list, head);
}

/** Prefix that some APIs write before JSON, so that a page cannot run it as a script. */
const guard = /^(?:\)\]\}'?,?|while\s?\(1\);?|for\s?\(;;\);?|throw 1;[^\r\n]{0,60}|&&&START&&&|\{\}\s?&&)\s*/;

function withoutGuard(body: Buffer): Buffer {
  const bytes = withoutMark(body);
  const found = guard.exec(bytes.toString('latin1', 0, 100));
  return found ? bytes.subarray(found[0].length) : bytes;
}

/** Creates the failure for a response that is not JSON. `why` is the reason, which the media type may state already. */
function notJson(field: string, why: string, contentType: string): ToolFailure {
  const type = mediaTypeOf(contentType);
  const more = isJson(type) || type === '' ? `, and ${why}` : '';
  const sentence = (named: string) => `${field} requires a JSON response, but the upstream returned ${named}${more}`;
  return new ToolFailure('transform', sentence(type || 'no media type'), [], sentence(knownMediaType(contentType)));
}

/** Describes a blank text, because an empty block would look like a client error. */
function blankText({ length }: string): string {
  return `The response contains only ${length} whitespace characters.`;
}

/** Creates a text result. `whyNot` is the reason why a response with a JSON media type is not valid JSON. */
function asText(text: string, whyNot: string | undefined, head: AnswerHead): ToolResult {
  if (!/\S/.test(text)) return blocks([{ type: 'text', text: blankText(text) }], head);
  const note = `The request was carried out. Its response is passed on as text, because ${whyNot}.`;
  return blocks(
    [{ type: 'text', text }, ...(whyNot === undefined ? [] : [{ type: 'text' as const, text: note }])],
    head,
  );
}

function filesResult(content: AnswerBlock[], files: readonly AnswerFile[], head: AnswerHead): CutResult {
  const tokens = tokensOfContent(content.filter((block) => block.type !== 'attached_file'));
  const result = blocks(content, head, tokens);
  return files.length === 0 ? result : { ...result, files };
}

function blocks(content: AnswerBlock[], head: AnswerHead, tokens?: number): ToolResult {
  const structured = head.shown.length === 0 ? structuredOfTexts(content, head.era) : undefined;
  const result = { content: JSON.stringify(content), structured, isError: false };
  return withHeaders(tokens === undefined ? result : { ...result, tokens }, head);
}
