import { isUtf8 } from 'node:buffer';
import { type Redactor, redactor } from '../../domain/credentials/redactor.ts';
import { mediaTypeOf } from '../../domain/http/headers.ts';
import { type ToolResult, textResult } from '../../domain/mcp.ts';
import { ToolFailure } from '../../errors.ts';
import { STATUS_CODES } from '../../http/node-http.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { type AnswerHead, contentTypeOf, headerLines, headersJson, headOf, shownHeaders } from './answer-head.ts';
import type { CutResult } from './fit-answer.ts';
import { readContent } from './read-content.ts';
import { carriedOut, fieldForJson, fieldOfJson, headersProperty, type Reading } from './reading.ts';
import { cut, redactedStart } from './redact.ts';
import { locationPath, shownRedirectTarget } from './redirect-target.ts';
import { isJson, isText } from './text-body.ts';

const maxErrorBytes = 8 * 1024;
/** It says that nothing has changed, and leads nowhere (RFC 9110, 15.4.5). */
const notModified = 304;

/** Longest body that is read on the event loop. */
const shortBytes = 64 * 1024;

/** Whether reading an answer would hold the event loop too long. */
export function isLongAnswer({ status, headers, body }: Answer, reading: Reading): boolean {
  if (body.length <= shortBytes || status >= 300) return false;
  if (fieldOfJson(reading) !== undefined) return true;
  const contentType = contentTypeOf(headers);
  return !isOneFile(mediaTypeOf(contentType), contentType, body);
}

/** Whether a body is one file: only its bytes are passed on, so there is nothing to read. */
function isOneFile(type: string, contentType: string, body: Buffer): boolean {
  if (isJson(type) || type.startsWith('multipart/')) return false;
  return type === '' ? !isUtf8(body) : !isText(type, contentType, body);
}

/**
 * Turns an upstream's answer into the tool result (behaviour: "The tool result").
 * `client` has the credentials of the call, which the upstream may have echoed. The check of structured content may
 * take `mostSteps`.
 * @throws ToolFailure upstream_status, redirect, malformed, transform
 * @throws TooMuchWork
 */
export function readAnswer(
  answer: Answer,
  reading: Reading,
  client: Pick<AnswerHead, 'sensitive' | 'era'>,
  mostSteps: number,
): CutResult {
  const { status, body } = answer;
  const redact = redactor(client.sensitive);
  if (status >= 300) throw refusal(answer, reading, redact);
  const head = headOf(answer, reading, client, redact);
  if (status === 204 || body.length === 0) return emptyResult(answer, head, { reading, redact, mostSteps });
  return readContent(body, head, reading, mostSteps);
}

function refusal(answer: Answer, reading: Reading, redact: Redactor): ToolFailure {
  const status = statusText(answer, redact);
  const shown = shownHeaders(answer.headers, reading, redact);
  const lines = shown.length > 0 ? `\n${headerLines(shown)}` : '';
  if (answer.status < 400 && answer.status !== notModified) {
    const target = shownRedirectTarget(String(answer.headers.location ?? ''), redact);
    const hint = target !== undefined && reading.mayFollow ? ' unless the tool has redirects: "follow"' : '';
    const sentence = `${status}: the upstream redirects to ${target ?? 'another URL'}; redirects are not followed${hint}`;
    return new ToolFailure('redirect', `${sentence}${lines}`);
  }
  const retry = answer.headers['retry-after'];
  const isShown = shown.some(({ name }) => name.toLowerCase() === 'retry-after');
  const retryText = typeof retry === 'string' && !isShown ? `\nRetry-After: ${shortStart(retry, redact)}` : '';
  const body = errorBody(answer.body, redact);
  return new ToolFailure('upstream_status', `${status}${retryText}${lines}${body && `\n${body}`}`);
}

function statusText({ status, statusText }: Answer, redact: Redactor): string {
  const reason = statusText === '' ? (STATUS_CODES[status] ?? '') : shortStart(statusText, redact);
  return `HTTP ${status}${reason ? ` ${reason}` : ''}`;
}

/** The first 100 bytes of a text that the upstream chose. It is cut last, so that no part of a credential is left. */
function shortStart(text: string, redact: Redactor): string {
  return cut(redact.text(text), 100);
}

/** The first 8 KiB of an error's body, if it is text. */
function errorBody(body: Buffer, redact: Redactor): string {
  if (!isUtf8(body)) return '';
  const start = redactedStart(body, maxErrorBytes, redact);
  return body.length > maxErrorBytes ? `${start}\n… (${body.length} bytes in all)` : start;
}

/** The result of an answer without a body: its status, and the headers that the tool asks for. */
function emptyResult(
  answer: Answer,
  head: AnswerHead,
  { reading, redact, mostSteps }: { reading: Reading; redact: Redactor; mostSteps: number },
): ToolResult {
  const status = statusText(answer, redact);
  const isLocationShown = head.shown.some(({ name }) => name.toLowerCase() === 'location');
  const path = isLocationShown ? undefined : locationPath(String(answer.headers.location ?? ''), redact);
  const hint = path === undefined && !isLocationShown ? preferHint(answer, reading) : '';
  const lines = [
    ...(path === undefined ? [] : [`Location: ${path}`]),
    ...(head.shown.length > 0 ? [headerLines(head.shown)] : []),
  ];
  const more = [hint, ...lines].join('\n');
  const structured = structuredStatus(answer, head, reading, mostSteps);
  const field = structured !== undefined && reading.transform.length === 0 ? undefined : fieldForJson(reading);
  if (field !== undefined) {
    throw new ToolFailure(
      'transform',
      `${field} needs a JSON answer; ${status} came without a body; ${carriedOut}${more}`,
      [],
      `${field} needs a JSON answer; HTTP ${answer.status} came without a body`,
    );
  }
  const { content } = textResult(`${status.slice(5)}${reading.isHead ? headHint(reading) : noBody}${more}`, false);
  return { content, structured: reading.isAnnounced ? structured : undefined, isError: false };
}

const noBody = ': the upstream answered without a body';

function headHint({ headers }: Reading): string {
  return headers.length > 0 ? '' : ': an answer to HEAD has no body, and response_headers names the headers to show';
}

/** The status and the headers as structured content, of a tool that asks for headers or sends HEAD, where its schema asks for it. */
function structuredStatus(
  { status }: Answer,
  { shown }: AnswerHead,
  reading: Reading,
  mostSteps: number,
): string | undefined {
  if (!reading.output || (!reading.isHead && reading.headers.length === 0)) return undefined;
  const json = `{"status":${status},"${headersProperty}":${headersJson(shown)}}`;
  return reading.output.fits(JSON.parse(json), mostSteps) ? json : undefined;
}

/** No hint after 202: the row was not written yet, so the upstream could not return it (RFC 9110, 15.3.3). */
function preferHint({ status }: Answer, { hintPrefer }: Reading): string {
  if (!hintPrefer || status === 202) return '';
  return ' (the header "Prefer: return=representation" asks some upstreams for the written row)';
}
