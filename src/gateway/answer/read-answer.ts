import { isUtf8 } from 'node:buffer';
import { mediaTypeOf } from '../../domain/http/media-type.ts';
import type { ToolResult } from '../../domain/mcp.ts';
import { ToolFailure } from '../../errors.ts';
import { STATUS_CODES } from '../../http/node-http.ts';
import type { Answer } from '../../outbound/http-client.ts';
import { blocks, isJson, readContent } from './read-content.ts';
import type { Reading } from './reading.ts';
import { redact, redactedStart, redactor } from './redact.ts';
import { locationPath, shownRedirectTarget } from './redirect-target.ts';

const maxErrorBytes = 8 * 1024;

/** How many steps the check of an answer may take on the event loop. */
const answerSteps = 200_000;

/** Longest body that is read on the event loop. JSON passed on whole is only scanned, by WebAssembly. */
const shortBytes = { whole: 1024 * 1024, other: 256 * 1024 };

/** Whether reading an answer would hold the event loop too long. */
export function isLongAnswer({ status, headers, body }: Answer, { transform, fields, fits }: Reading): boolean {
  if (body.length <= shortBytes.other || status >= 300) return false;
  const isPassedOn = transform.length === 0 && !fields && !fits;
  const isWholeJson = isPassedOn && isJson(mediaTypeOf(contentTypeOf(headers)));
  return body.length > (isWholeJson ? shortBytes.whole : shortBytes.other);
}

export function contentTypeOf(headers: Answer['headers']): string {
  return String(headers['content-type'] ?? '');
}

/**
 * Turns an upstream's answer into the tool result (behaviour: "The tool result").
 * `sensitive` are the credentials of the call, which the upstream may have echoed.
 * @throws ToolFailure upstream_status, redirect, malformed, transform
 * @throws TooMuchWork when the check of its structured content takes too long
 */
export function readAnswer(answer: Answer, reading: Reading, sensitive: readonly string[]): ToolResult {
  const { status, body } = answer;
  if (status >= 300) throw refusal(answer, sensitive);
  if (status === 204 || body.length === 0) return emptyResult(answer, reading, sensitive);
  return readContent(body, contentTypeOf(answer.headers), reading, answerSteps);
}

function refusal(answer: Answer, sensitive: readonly string[]): ToolFailure {
  const status = redact(statusText(answer), sensitive);
  if (answer.status < 400) {
    const target = shownRedirectTarget(redact(String(answer.headers.location ?? ''), sensitive)) ?? 'another URL';
    return new ToolFailure('redirect', `${status}: the upstream redirects to ${target}; redirects are not followed`);
  }
  const retry = answer.headers['retry-after'];
  const retryText = typeof retry === 'string' ? `\nRetry-After: ${redact(retry.slice(0, 100), sensitive)}` : '';
  const body = errorBody(answer.body, sensitive);
  return new ToolFailure('upstream_status', `${status}${retryText}${body && `\n${body}`}`);
}

function statusText(answer: Answer): string {
  const reason = answer.statusText || STATUS_CODES[answer.status] || '';
  return `HTTP ${answer.status}${reason ? ` ${reason.slice(0, 100)}` : ''}`;
}

/** The first 8 KiB of an error's body, if it is text. */
function errorBody(body: Buffer, sensitive: readonly string[]): string {
  if (!isUtf8(body)) return '';
  const start = redactedStart(body, maxErrorBytes, redactor(sensitive));
  return body.length > maxErrorBytes ? `${start}\n… (${body.length} bytes in all)` : start;
}

function emptyResult(answer: Answer, reading: Reading, sensitive: readonly string[]): ToolResult {
  const path = locationPath(redact(String(answer.headers.location ?? ''), sensitive));
  const more = path === undefined ? preferHint(answer, reading) : `\nLocation: ${path}`;
  if (reading.transform.length > 0) {
    throw new ToolFailure(
      'transform',
      `response_transform needs a JSON answer; ${statusText(answer)} came without a body${more}`,
    );
  }
  return blocks([
    { type: 'text', text: `${statusText(answer).slice(5)}: the upstream answered without a body${more}` },
  ]);
}

/** No hint after 202: the row was not written yet, so the upstream could not return it (RFC 9110, 15.3.3). */
function preferHint({ status }: Answer, { hintPrefer }: Reading): string {
  if (!hintPrefer || status === 202) return '';
  return ' (the header "Prefer: return=representation" asks some upstreams for the written row)';
}
