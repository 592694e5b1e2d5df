import { isUtf8 } from 'node:buffer';
import { Redactor, truncateBytes } from '@toolhost/credentials/redactor';
import { JobError } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import type { ToolResult } from '@toolhost/mcp-protocol/mcp';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import {
  type ReadableBody,
  type ReadableRequest,
  toReadableBody,
  type UpstreamRequest,
} from '@toolhost/tool-config/request/upstream-request';
import {
  copyStart,
  maxCapturedBytes,
  maxFieldBytes,
  type RawCapture,
  writeShortCapture,
} from '../captures/capture-job.ts';
import { shortenField } from '../captures/fit-capture.ts';
import { getResponseContentType, getSearchableText, isJson, isText } from '../response/response-head.ts';
import { type Call, isCapturing } from './call.ts';
import { findPreview } from './preview-call.ts';
import type { ThreadWork } from './thread-work.ts';

const maxArgumentsBytes = 32 * 1024;
/** Maximum number of headers, and of form fields. */
const maxFields = 100;
/**
 * Maximum size of a body that is searched for credentials, in bytes. It is enough for `redactPrefix` with a credential
 * of maximum header length.
 */
const maxSearchedBytes = maxCapturedBytes + 4 * 3 * 16_384 + 1;
/** Maximum work on the event loop: searched characters times credentials, and characters of all credentials. */
const maxOnLoop = { work: 100_000, sensitive: 20_000 };

export type CaptureDeps = { threads: ThreadWork; onUnexpected: (error: unknown, requestId: string) => void };

/**
 * Returns the JSON text of a `Capture`, or undefined if it could not be created or if too many jobs wait for a thread.
 * A capture must not make its call fail.
 */
export async function createCapture(
  call: Call,
  result: ToolResult | undefined,
  deps: CaptureDeps,
): Promise<string | undefined> {
  try {
    return await writeCaptureText(call, result, deps.threads);
  } catch (error) {
    if (!(error instanceof JobError) || error.reason === 'failed') deps.onUnexpected(error, call.toolCall.requestId);
    return undefined;
  }
}

/**
 * Returns the text of a capture. The request is rebuilt with masked credentials, so it contains none. All other texts
 * are searched for the credentials of the call and the server's secrets, which are redacted.
 */
async function writeCaptureText(call: Call, result: ToolResult | undefined, threads: ThreadWork): Promise<string> {
  const { server, tool, toolCall, response } = call;
  const text = JSON.stringify(toolCall.args);
  if (text.length > maxArgumentsBytes) await yieldToEventLoop();
  const request = findPreview(tool, call.args);
  const argumentsBytes = Buffer.byteLength(text);
  const secrets = [...server.secrets.values()].map((secret) => secret.value);
  const sensitive = [...new Set([...call.sensitive, ...secrets])];
  // Credentials are removed before texts are cut to their final length, because a cut could leave part of one.
  const margin = 2 * new Redactor(sensitive).maxFormLength + 4;
  const raw: RawCapture = {
    arguments: argumentsBytes <= maxArgumentsBytes ? text : undefined,
    argumentsBytes,
    request: request && truncateRequest(request, margin),
    response: response && toRawResponse(response, margin),
    result: result && {
      isError: result.isError,
      start: copyStart(result.content, maxSearchedBytes),
      bytes: Buffer.byteLength(result.content),
    },
    measurable: getMeasurable(call, result),
    sensitive,
  };
  const document = isLarge(raw) ? undefined : writeShortCapture(raw);
  if (document !== undefined) return document;
  return (await threads.writeCapture(raw, { ownerId: server.workspaceId, registerCancel: undefined })).document;
}

function isLarge({ arguments: args, request, response, result, measurable, sensitive }: RawCapture): boolean {
  if (measurable && measurable.body.length > maxMeasured.onLoop) return true;
  const getTotalLength = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);
  const length =
    (args?.length ?? 0) +
    (request ? request.path.length + getTotalLength(request.headers) : 0) +
    (request ? getTotalLength(getTexts(request.body)) : 0) +
    (response ? getTotalLength(response.headers.flat()) + maxCapturedBytes : 0) +
    (result ? maxCapturedBytes : 0);
  return length * sensitive.length > maxOnLoop.work || getTotalLength(sensitive) > maxOnLoop.sensitive;
}

function getTexts(body: ReadableBody | undefined): string[] {
  if (typeof body !== 'object') return [body ?? ''];
  return 'fields' in body ? body.fields.map(([name, text]) => name + text) : [];
}

function truncateRequest(request: UpstreamRequest, margin: number): ReadableRequest {
  const { path, headers } = request;
  return {
    ...request,
    path: truncateBytes(path, maxCapturedBytes + margin),
    headers: headers.slice(0, 2 * maxFields).map((line) => truncateBytes(line, maxFieldBytes + margin)),
    body: truncateBody(toReadableBody(request.body), margin),
  };
}

function truncateBody(body: ReadableBody | undefined, margin: number): ReadableBody | undefined {
  if (typeof body !== 'object') return body && truncateBytes(body, maxCapturedBytes + margin);
  if (!('fields' in body)) return body;
  const maxBytes = maxFieldBytes + margin;
  return {
    fields: body.fields
      .slice(0, maxFields)
      .map((field) => shortenField(field, (text) => truncateBytes(text, maxBytes))),
  };
}

/** Maximum size of a response whose fields are measured on a thread, or on the event loop, in bytes. */
const maxMeasured = { onThread: 4 * 1024 * 1024, onLoop: 16 * 1024 };

/**
 * Returns a response whose fields are measured for suggestions. Undefined for failed calls and try-outs, and if it is
 * too large.
 */
function getMeasurable(
  { server, startedAt, response, tool }: Call,
  result: ToolResult | undefined,
): RawCapture['measurable'] {
  if (!response || !result || result.isError || !isCapturing(server, startedAt)) return undefined;
  const { body } = response;
  if (body.length === 0 || body.length > maxMeasured.onThread) return undefined;
  // A copy, because a transfer to the thread would take the whole buffer that contains the bytes.
  return {
    body: body.length > maxMeasured.onLoop ? new Uint8Array(body) : body,
    transform: tool.responseRules.transform,
  };
}

/** Returns true if a body is UTF-8. If it contains NUL, as binary files do, its media type must also be a text type. */
function isReadable({ headers, body }: UpstreamResponse): boolean {
  const contentType = getResponseContentType(headers);
  const type = parseMediaType(contentType);
  return isUtf8(body) && (!body.includes(0) || isJson(type) || isText(type, contentType, body));
}

function toRawResponse(response: UpstreamResponse, margin: number): NonNullable<RawCapture['response']> {
  const headers = Object.entries(response.headers)
    .filter(([name]) => name !== 'set-cookie')
    .flatMap(([name, value]) =>
      [value ?? []].flat().map((line): [string, string] => [name, truncateBytes(line, maxFieldBytes + margin)]),
    );
  return {
    status: response.status,
    headers: headers.slice(0, maxFields),
    // Copied, because the memory of the whole body may have been transferred.
    body: isReadable(response) ? new TextEncoder().encode(getSearchableText(response, maxSearchedBytes)) : undefined,
    bodyBytes: response.body.length,
  };
}
