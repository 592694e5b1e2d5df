import { Redactor, redact, redactPrefix, truncateBytes } from '@toolhost/credentials/redactor';
import { ToolFailure } from '@toolhost/errors/errors';
import { maxEventLoopSteps, StepLimitExceeded } from '@toolhost/json-schema/step-budget';
import { type ToolResult, toTextResult } from '@toolhost/mcp-protocol/mcp';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { describeMediaType, parseMediaType } from '@toolhost/tool-config/http/headers';
import { STATUS_CODES } from '../../http/node-http.ts';
import type { TruncatedResult } from './fit-result.ts';
import {
  addHeadersBlock,
  createJsonResult,
  createStructuredFromTexts,
  estimateContentTokens,
  stripByteOrderMark,
} from './json-response.ts';
import { formatRefusalLines } from './refusal-lines.ts';
import {
  AttachmentCollector,
  createFileBlocks,
  createMultipartBlocks,
  type ResultBlock,
  type ResultFile,
} from './response-files.ts';
import {
  decodeBodyText,
  decodeHeaderText,
  formatHeaderLines,
  formatHeadersJson,
  formatRedirectTarget,
  getDisplayedHeaders,
  getLocationPath,
  getResponseContentType,
  getResponseHead,
  getSearchableText,
  isJson,
  isText,
  type ResponseHead,
  toUtf8Json,
} from './response-head.ts';
import { headersProperty, type ResponseRules, requestCarriedOut } from './response-rules.ts';

const maxErrorBytes = 8 * 1024;
/** Not a redirect: the resource has not changed (RFC 9110, 15.4.5). */
const notModified = 304;

/** Maximum size of a body that is always processed on the event loop, in bytes. */
const maxLoopBytes = 64 * 1024;

/**
 * Converts an upstream's response into the tool result. Returns undefined if that would block the event loop too long.
 * `context` contains the credentials of the call, which the upstream may have echoed.
 * @throws ToolFailure upstream_status, redirect, malformed, transform
 */
export function readResponse(
  response: UpstreamResponse,
  responseRules: ResponseRules,
  context: Pick<ResponseHead, 'sensitive' | 'generation'>,
): TruncatedResult | undefined {
  const { status, body } = response;
  if (status >= 300) throw toRefusal(response, responseRules, new Redactor(context.sensitive));
  if (body.length > maxLoopBytes && needsProcessing(response, responseRules)) return undefined;
  const responseHead = getResponseHead(response, responseRules, context);
  try {
    if (status === 204 || body.length === 0) return createEmptyResult(response, responseHead, responseRules);
    return createContent(body, responseHead, responseRules, maxEventLoopSteps);
  } catch (error) {
    if (error instanceof StepLimitExceeded) return undefined;
    throw error;
  }
}

/** Returns true if a body needs processing. The bytes of a single file are passed on unchanged. */
function needsProcessing({ headers, body }: UpstreamResponse, { jsonField }: ResponseRules): boolean {
  const contentType = getResponseContentType(headers);
  const type = parseMediaType(contentType);
  if (jsonField !== undefined || isJson(type) || type.startsWith('multipart/')) return true;
  return isText(type, contentType, body);
}

function toRefusal(response: UpstreamResponse, responseRules: ResponseRules, redactor: Redactor): ToolFailure {
  const status = formatStatus(response, redactor);
  const displayed = getDisplayedHeaders(response.headers, responseRules, redactor);
  const details = [
    ...formatRefusalLines(response, displayed, redactor),
    ...(displayed.length > 0 ? [formatHeaderLines(displayed)] : []),
  ];
  const lines = details.map((line) => `\n${line}`).join('');
  if (response.status < 400 && response.status !== notModified) {
    const target = formatRedirectTarget(decodeHeaderText(String(response.headers.location ?? '')), redactor);
    const hint =
      target !== undefined && responseRules.canFollowRedirects ? ' unless the tool has redirects: "follow"' : '';
    const sentence = `${status}: the upstream redirects to ${target ?? 'another URL'}; redirects are not followed${hint}`;
    return new ToolFailure('redirect', `${sentence}${lines}`);
  }
  const retry = response.headers['retry-after'];
  const isRetryAfterDisplayed = displayed.some(({ name }) => name.toLowerCase() === 'retry-after');
  const retryText =
    typeof retry === 'string' && !isRetryAfterDisplayed ? `\nRetry-After: ${truncateStart(retry, redactor)}` : '';
  const body = formatErrorBody(response, redactor);
  return new ToolFailure('upstream_status', `${status}${retryText}${lines}${body && `\n${body}`}`);
}

function formatStatus({ status, statusText }: UpstreamResponse, redactor: Redactor): string {
  const reason =
    statusText === '' ? (STATUS_CODES[status] ?? '') : truncateStart(decodeHeaderText(statusText), redactor);
  return `HTTP ${status}${reason ? ` ${reason}` : ''}`;
}

/** Returns the first 100 bytes of a text from the upstream. Truncated last, so that no part of a credential remains. */
function truncateStart(text: string, redactor: Redactor): string {
  return truncateBytes(redactor.text(text), 100);
}

/** Returns the first 8 KiB of an error body, if it is text. */
function formatErrorBody(response: UpstreamResponse, redactor: Redactor): string {
  const text = getSearchableText(response, 4 * (maxErrorBytes + redactor.maxFormLength));
  if (text === undefined) return '';
  const start = redactPrefix(Buffer.from(text), maxErrorBytes, redactor);
  const { length } = response.body;
  return length > maxErrorBytes ? `${start}\n… (${length} bytes in all)` : start;
}

/** Creates the result of a response without a body: its status, and the headers that the tool requests. */
function createEmptyResult(
  response: UpstreamResponse,
  responseHead: ResponseHead,
  responseRules: ResponseRules,
): ToolResult {
  const redactor = new Redactor(responseHead.sensitive);
  const status = formatStatus(response, redactor);
  const isLocationDisplayed = responseHead.displayedHeaders.some(({ name }) => name.toLowerCase() === 'location');
  const path = isLocationDisplayed
    ? undefined
    : getLocationPath(decodeHeaderText(String(response.headers.location ?? '')), redactor);
  const hint = path === undefined && !isLocationDisplayed ? formatPreferHint(response, responseRules) : '';
  const lines = [
    ...(path === undefined ? [] : [`Location: ${path}`]),
    ...(responseHead.displayedHeaders.length > 0 ? [formatHeaderLines(responseHead.displayedHeaders)] : []),
  ];
  const details = [hint, ...lines].join('\n');
  const structured = createStructuredStatus(response, responseHead, responseRules);
  const isSchemaMet = structured !== undefined && responseRules.transform.length === 0;
  const unmetField = isSchemaMet ? undefined : responseRules.bodyField;
  if (unmetField !== undefined)
    throw new ToolFailure(
      'transform',
      `${unmetField} requires a JSON response, but ${status} has no body; ${requestCarriedOut}${details}`,
      [],
      `${unmetField} requires a JSON response, but HTTP ${response.status} has no body`,
    );
  const { content } = toTextResult(
    `${status.slice('HTTP '.length)}${responseRules.isHead ? formatHeadHint(responseRules) : noBodyNote}${details}`,
    false,
  );
  return { content, structured: responseRules.isSchemaListed ? structured : undefined, isError: false };
}

const noBodyNote = ': the response has no body';

function formatHeadHint({ headers }: ResponseRules): string {
  return headers.length > 0 ? '' : ': a response to HEAD has no body; set response_headers to show its headers';
}

/**
 * Returns the status and the headers as structured content, if the tool requests headers or sends HEAD and its schema
 * allows that.
 */
function createStructuredStatus(
  { status }: UpstreamResponse,
  { displayedHeaders: displayed }: ResponseHead,
  responseRules: ResponseRules,
): string | undefined {
  if (!responseRules.outputCheck || (!responseRules.isHead && responseRules.headers.length === 0)) return undefined;
  const json = `{"status":${status},"${headersProperty}":${formatHeadersJson(displayed)}}`;
  return responseRules.outputCheck.isValid(JSON.parse(json), maxEventLoopSteps) ? json : undefined;
}

/**
 * Returns a hint about `Prefer`. After a 202 there is none, because the row was not written yet and could not be
 * returned (RFC 9110, 15.3.3).
 */
function formatPreferHint({ status }: UpstreamResponse, { shouldHintPrefer }: ResponseRules): string {
  if (!shouldHintPrefer || status === 202) return '';
  return ' (with the header "Prefer: return=representation", some upstreams return the written row)';
}

/**
 * Suffix of types such as application/vnd.github.raw+json, with which an API sends a file unchanged. The file is rarely
 * JSON.
 */
const rawJsonSuffix = '.raw+json';

/**
 * Converts the body of a successful response into a result. Takes time proportional to the body, except for the check
 * of structured content, which may take `maxSteps`.
 * @throws ToolFailure malformed, transform
 * @throws StepLimitExceeded
 */
export function createContent(
  body: Buffer,
  responseHead: ResponseHead,
  responseRules: ResponseRules,
  maxSteps: number,
): TruncatedResult {
  try {
    return createContentUnredacted(body, responseHead, responseRules, maxSteps);
  } catch (error) {
    throw error instanceof ToolFailure ? toReportedFailure(error, responseHead) : error;
  }
}

/**
 * Redacts a failure, which may quote the upstream, and adds that the request was carried out even though its response
 * could not be processed.
 */
function toReportedFailure({ outcome, message, problems, recordMessage }: ToolFailure, { sensitive }: ResponseHead) {
  const reported = message.includes(requestCarriedOut) ? message : `${message}; ${requestCarriedOut}`;
  return new ToolFailure(outcome, redact(reported, sensitive), problems, recordMessage);
}

/**
 * Creates the content of a result. If a transform, fields, or a schema require JSON, the bytes decide if a response is
 * JSON, and any other response is an error, so that nothing is passed on unfiltered. Otherwise the media type decides,
 * and invalid JSON is passed on as text.
 */
function createContentUnredacted(
  body: Buffer,
  responseHead: ResponseHead,
  responseRules: ResponseRules,
  maxSteps: number,
): TruncatedResult {
  const { contentType, fileName } = responseHead;
  const type = parseMediaType(contentType);
  const isRaw = type.endsWith(rawJsonSuffix);
  const jsonField = responseRules.jsonField;
  if (jsonField !== undefined || isJson(type) || type === '') {
    const json = toUtf8Json(body, contentType, jsonField !== undefined);
    const resultOrReason = createJsonResult(
      jsonField === undefined ? json : stripJsonGuard(json),
      responseHead,
      responseRules,
      maxSteps,
    );
    if (typeof resultOrReason !== 'string') return resultOrReason;
    if (jsonField !== undefined) throw toNotJsonFailure(jsonField, resultOrReason, contentType);
    if (type !== '' && !isRaw) return createTextResult(decodeBodyText(body, contentType), resultOrReason, responseHead);
  }
  if (isText(type, contentType, body))
    return createTextResult(decodeBodyText(body, contentType), undefined, responseHead);
  const files = new AttachmentCollector(responseRules.maxCharacters);
  const content = type.startsWith('multipart/')
    ? createMultipartBlocks(body, contentType, files)
    : createFileBlocks(type, body, fileName, files);
  return createFilesResult(content, files.attached, responseHead);
}

/** Prefix that some APIs write before JSON, so that a page cannot run it as a script. */
const jsonGuard = /^(?:\)\]\}'?,?|while\s?\(1\);?|for\s?\(;;\);?|throw 1;[^\r\n]{0,60}|&&&START&&&|\{\}\s?&&)\s*/;

function stripJsonGuard(body: Buffer): Buffer {
  const bytes = stripByteOrderMark(body);
  const match = jsonGuard.exec(bytes.toString('latin1', 0, 100));
  return match ? bytes.subarray(match[0].length) : bytes;
}

/** Creates the failure for a response that is not JSON. `reason` is omitted if the media type already explains it. */
function toNotJsonFailure(jsonField: string, reason: string, contentType: string): ToolFailure {
  const type = parseMediaType(contentType);
  const suffix = isJson(type) || type === '' ? `, and ${reason}` : '';
  const formatSentence = (typeText: string) =>
    `${jsonField} requires a JSON response, but the upstream returned ${typeText}${suffix}`;
  return new ToolFailure(
    'transform',
    formatSentence(type || 'no media type'),
    [],
    formatSentence(describeMediaType(contentType)),
  );
}

/** Describes a blank text, because an empty block would look like a client error. */
function formatBlankText({ length }: string): string {
  return `The response contains only ${length} whitespace characters.`;
}

/** Creates a text result. `notJsonReason` is the reason why a response with a JSON media type is not valid JSON. */
function createTextResult(text: string, notJsonReason: string | undefined, responseHead: ResponseHead): ToolResult {
  if (!/\S/.test(text)) return createBlocksResult([{ type: 'text', text: formatBlankText(text) }], responseHead);
  const note = `The request was carried out. Its response is passed on as text, because ${notJsonReason}.`;
  return createBlocksResult(
    [{ type: 'text', text }, ...(notJsonReason === undefined ? [] : [{ type: 'text' as const, text: note }])],
    responseHead,
  );
}

function createFilesResult(
  content: ResultBlock[],
  files: readonly ResultFile[],
  responseHead: ResponseHead,
): TruncatedResult {
  const tokens = estimateContentTokens(content.filter((block) => block.type !== 'attached_file'));
  const result = createBlocksResult(content, responseHead, tokens);
  return files.length === 0 ? result : { ...result, files };
}

function createBlocksResult(content: ResultBlock[], responseHead: ResponseHead, tokens?: number): ToolResult {
  const structured =
    responseHead.displayedHeaders.length === 0
      ? createStructuredFromTexts(content, responseHead.generation)
      : undefined;
  const result = { content: JSON.stringify(content), structured, isError: false };
  return addHeadersBlock(tokens === undefined ? result : { ...result, tokens }, responseHead);
}
