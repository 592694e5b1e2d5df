import { isUtf8 } from 'node:buffer';
import { cut, Redactor } from '../../domain/credentials/redactor.ts';
import { mediaTypeOf } from '../../domain/http/headers.ts';
import type { ToolResult } from '../../domain/mcp.ts';
import {
  type ReadableBody,
  type ReadableRequest,
  readableBody,
  type UpstreamRequest,
} from '../../domain/request/upstream-request.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { JobError } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { contentTypeOf, isJson, isText, searchableText } from '../answer/answer-head.ts';
import {
  maxCapturedBytes,
  maxFieldBytes,
  type RawCapture,
  startOfContent,
  writeShortCapture,
} from '../captures/capture-job.ts';
import { shortField } from '../captures/fit-capture.ts';
import { type Call, isCapturing } from './call.ts';
import { findPreview } from './preview-call.ts';
import type { ThreadWork } from './thread-work.ts';

const maxArgumentsBytes = 32 * 1024;
/** Maximum number of headers, and of form fields. */
const maxFields = 100;
/**
 * Maximum size of a body that is searched for credentials, in bytes. It is enough for `redactedStart` with a credential
 * of maximum header length.
 */
const lookedBytes = maxCapturedBytes + 4 * 3 * 16_384 + 1;
/** Limits for work on the event loop: characters times credentials, and characters of credentials. */
const most = { work: 100_000, sensitive: 20_000 };

export type CaptureParts = { threads: ThreadWork; onUnexpected: (error: unknown, requestId: string) => void };

/**
 * Returns the JSON text of a `Capture`, or undefined if it could not be created or if too many jobs wait for a thread.
 * A capture must not make its call fail.
 */
export async function captureOf(
  call: Call,
  result: ToolResult | undefined,
  parts: CaptureParts,
): Promise<string | undefined> {
  try {
    return await captureText(call, result, parts.threads);
  } catch (error) {
    if (!(error instanceof JobError) || error.reason === 'failed') parts.onUnexpected(error, call.asked.requestId);
    return undefined;
  }
}

/**
 * Returns the text of a capture. The request is rebuilt with masked credentials, so it contains none. All other texts
 * are searched for the credentials of the call and the server's secrets, which are redacted.
 */
async function captureText(call: Call, result: ToolResult | undefined, threads: ThreadWork): Promise<string> {
  const { server, tool, asked, answer } = call;
  const text = JSON.stringify(asked.args);
  if (text.length > maxArgumentsBytes) await nextTurn();
  const request = findPreview(tool, call.args);
  const argumentsBytes = Buffer.byteLength(text);
  const secrets = [...server.secrets.values()].map((secret) => secret.value);
  const sensitive = [...new Set([...call.sensitive, ...secrets])];
  // Credentials are removed before texts are cut to their final length, because a cut could leave part of one.
  const margin = 2 * new Redactor(sensitive).longest + 4;
  const raw: RawCapture = {
    arguments: argumentsBytes <= maxArgumentsBytes ? text : undefined,
    argumentsBytes,
    request: request && shortened(request, margin),
    response: answer && captured(answer, margin),
    result: result && {
      isError: result.isError,
      start: startOfContent(result.content, lookedBytes),
      bytes: Buffer.byteLength(result.content),
    },
    answer: measurable(call, result),
    sensitive,
  };
  const short = isLarge(raw) ? undefined : writeShortCapture(raw);
  if (short !== undefined) return short;
  return (
    await threads.writeCapture(raw, {
      workspaceId: server.workspaceId,
      onGone: undefined,
    })
  ).document;
}

function isLarge({ arguments: args, request, response, result, answer, sensitive }: RawCapture): boolean {
  if (answer && answer.body.length > mostMeasured.here) return true;
  const lengthOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);
  const length =
    (args?.length ?? 0) +
    (request ? request.path.length + lengthOf(request.headers) : 0) +
    (request ? lengthOf(textsOf(request.body)) : 0) +
    (response ? lengthOf(response.headers.flat()) + maxCapturedBytes : 0) +
    (result ? maxCapturedBytes : 0);
  return length * sensitive.length > most.work || lengthOf(sensitive) > most.sensitive;
}

function textsOf(body: ReadableBody | undefined): string[] {
  if (typeof body !== 'object') return [body ?? ''];
  return 'fields' in body ? body.fields.map(([name, text]) => name + text) : [];
}

function shortened(request: UpstreamRequest, margin: number): ReadableRequest {
  const { path, headers } = request;
  return {
    ...request,
    path: cut(path, maxCapturedBytes + margin),
    headers: headers.slice(0, 2 * maxFields).map((line) => cut(line, maxFieldBytes + margin)),
    body: shortenedBody(readableBody(request.body), margin),
  };
}

function shortenedBody(body: ReadableBody | undefined, margin: number): ReadableBody | undefined {
  if (typeof body !== 'object') return body && cut(body, maxCapturedBytes + margin);
  if (!('fields' in body)) return body;
  const most = maxFieldBytes + margin;
  return { fields: body.fields.slice(0, maxFields).map((field) => shortField(field, (text) => cut(text, most))) };
}

/** Maximum size of a response whose fields are measured, and of one that is measured on the event loop, in bytes. */
const mostMeasured = { ofAll: 4 * 1024 * 1024, here: 16 * 1024 };

/**
 * Returns a response whose fields are measured for suggestions. Undefined for failed calls and try-outs, and if it is
 * too large.
 */
function measurable({ server, startedAt, answer, tool }: Call, result: ToolResult | undefined): RawCapture['answer'] {
  if (!answer || !result || result.isError || !isCapturing(server, startedAt)) return undefined;
  const { body } = answer;
  if (body.length === 0 || body.length > mostMeasured.ofAll) return undefined;
  // The thread gets a copy of the bytes only, not of the larger memory that contains them.
  return { body: body.length > mostMeasured.here ? new Uint8Array(body) : body, transform: tool.reading.transform };
}

/**
 * Returns true if a body is text. Its bytes decide, and so does its media type if it contains NUL, as binary files do.
 */
function isReadable({ headers, body }: Answer): boolean {
  const contentType = contentTypeOf(headers);
  const type = mediaTypeOf(contentType);
  return isUtf8(body) && (!body.includes(0) || isJson(type) || isText(type, contentType, body));
}

function captured(answer: Answer, margin: number): NonNullable<RawCapture['response']> {
  const headers = Object.entries(answer.headers)
    .filter(([name]) => name !== 'set-cookie')
    .flatMap(([name, value]) =>
      [value ?? []].flat().map((line): [string, string] => [name, cut(line, maxFieldBytes + margin)]),
    );
  return {
    status: answer.status,
    headers: headers.slice(0, maxFields),
    // Copied, because the memory of the whole body may have been transferred.
    body: isReadable(answer) ? new TextEncoder().encode(searchableText(answer, lookedBytes)) : undefined,
    bodyBytes: answer.body.length,
  };
}
