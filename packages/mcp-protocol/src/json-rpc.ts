import { isUtf8 } from 'node:buffer';
import type { RequestHeaders } from '@toolhost/credentials/client-request';
import { getHeaderValue } from '@toolhost/credentials/credential';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { eventLoopLimits } from '@toolhost/json/body-limits';
import { isRawNumber, parseJson, parseScannedBody } from '@toolhost/json/json';
import { type BodyLimits, exceedsLimits, getBodyProblem, scanJson } from '@toolhost/json/json-scan';
import { coerceObject } from '@toolhost/json-schema/coerce-value';
import type { AuthorizationSnapshot, JsonText, McpServer, ProtocolGeneration, ToolCall, ToolResult } from './mcp.ts';

/** Error codes of JSON-RPC 2.0, and two that MCP 2026-07-28 adds. */
export const errorCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** The id of a request. An integer beyond 2^53 keeps its digits, because the client expects exactly those. */
export type RequestId = string | number | { rawJSON: string };

/** A JSON-RPC error response: HTTP status, JSON-RPC code, message, and optional data. */
export class RpcError extends Error {
  readonly status: number;
  readonly code: number;
  readonly data: object | undefined;

  constructor(status: number, code: number, message: string, data?: object) {
    super(message);
    this.name = 'RpcError';
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

export type JsonObject = { [key: string]: unknown };

/** A JSON text in chunks, some of which may be bytes. */
export type JsonChunks = readonly [string, ...JsonText[], string];

/** A response: a JSON text (complete or in chunks), the frames of a short event stream, or nothing (202). */
export type Reply = {
  status: number;
  body: string | JsonChunks | undefined;
  stream?: boolean;
  /** True if the body contains a list of tools. */
  isList?: boolean;
};

/** A `tools/call` that has been parsed but not run, and the function that formats its result as the reply. */
export type PendingCall = { toolCall: ToolCall; toReply: (result: ToolResult) => Reply };

/** Runs a call, if there is one to run, and returns the reply. @throws any error of a call */
export async function completeReply(server: McpServer, handled: Reply | PendingCall): Promise<Reply> {
  return 'toolCall' in handled ? handled.toReply(await server.call(handled.toolCall)) : handled;
}

/** The HTTP request that carries a message. */
export type MessageContext = {
  headers: RequestHeaders;
  requestId: string;
  bytesIn: number;
  /** Origin of the server's own host, if the request was sent to that host. */
  ownOrigin?: string | undefined;
  onDisconnect: (cancel: () => void) => void;
  authorization: AuthorizationSnapshot<McpServer>;
};

/** The response to a message that needs no reply. */
export const accepted: Reply = { status: 202, body: undefined };

/** A received message. `id` is undefined for a notification. */
export type Message = { method: string; id: RequestId | undefined; params: JsonObject };

/**
 * Parses a body. A long body is parsed in several turns of the event loop, or by `parseLong` if the server has one.
 * @throws RpcError 400 if it is not JSON, 413 if it has too many values, and AppError tooLarge by rejecting
 */
export function parseBody(body: Buffer, limits: BodyLimits, parseLong?: McpServer['parseLongMessage']): unknown {
  // Decoding would silently substitute replacement characters for invalid bytes and pass them to the tool.
  if (!isUtf8(body)) throw new RpcError(400, errorCodes.parse, 'the body is not UTF-8');
  const scan = scanJson(body, limits.depth);
  if (!scan) throw new RpcError(400, errorCodes.parse, 'the body is not JSON');
  const problem = getBodyProblem(scan, limits);
  if (problem) throw new RpcError(413, errorCodes.invalidRequest, problem);
  if (parseLong && exceedsLimits(body.length, scan, eventLoopLimits)) return parseLong(body);
  return parseScannedBody(body, scan);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** The member of `_meta` that identifies a message of MCP 2026-07-28. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** Returns true if the message itself states that it is stateless. */
export function isStatelessMessage(value: unknown): boolean {
  const meta = isObject(value) && isObject(value.params) ? value.params._meta : undefined;
  return isObject(meta) && versionKey in meta;
}

/** Returns the id of a parsed body, if it has one that can be echoed. */
export function getEchoableId(value: unknown): RequestId | undefined {
  return isObject(value) && isRequestId(value.id) ? value.id : undefined;
}

export function isRequestId(id: unknown): id is RequestId {
  if (isRawNumber(id)) return /^-?\d{1,100}$/.test(id.rawJSON);
  // JavaScript writes larger numbers with an exponent.
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id) && Math.abs(id) < 1e21);
}

/** The fields of a message that are read from a refused request. */
export type MessageStart = { id?: RequestId; method?: string };

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Reads the id and the method of a message from its first bytes, for the response to a request that is refused before
 * it is parsed. If the message is truncated, only the members before the cut are read. Text that is not JSON has
 * neither (JSON-RPC 2.0, 5).
 */
export function readMessageStart(bytes: Buffer, isComplete: boolean): MessageStart {
  const members = Buffer.from(extractTopLevelMembers(bytes, isComplete), 'latin1');
  if (!isUtf8(members)) return {};
  try {
    const value = parseJson(members.toString());
    if (!isObject(value)) return {};
    const { id, method } = value;
    return { ...(isRequestId(id) && { id: id as RequestId }), ...(typeof method === 'string' && { method }) };
  } catch {
    // The request is refused for another reason anyway.
    return {};
  }
}

/** Returns the message in Latin-1 with null in place of each nested value, which may be long and is not validated. */
function extractTopLevelMembers(bytes: Buffer, isComplete: boolean): string {
  let text = '';
  /** Start of the bytes that are not yet in `text`, and the length of `text` up to its last complete member. */
  let pendingStart = 0;
  let end = 0;
  let depth = 0;
  let isText = false;
  for (let offset = 0; offset < bytes.length; offset++) {
    const byte = bytes[offset];
    if (isText && byte === backslash) offset++;
    else if (byte === quote) isText = !isText;
    else if (isText) continue;
    else if (byte === openObject || byte === openArray) {
      if (++depth === 2) text += `${bytes.toString('latin1', pendingStart, offset)}null`;
    } else if (byte === closeObject || byte === closeArray) {
      if (--depth === 1) pendingStart = offset + 1;
    } else if (byte === comma && depth === 1) end = text.length + offset - pendingStart;
  }
  if (depth < 2) text += bytes.toString('latin1', pendingStart);
  return isComplete ? text : `${text.slice(0, end)}}`;
}

/** Returns true if a body is a JSON-RPC response, which no client has a reason to send. */
export function isResponse(value: unknown): boolean {
  return isObject(value) && value.method === undefined && ('result' in value || 'error' in value);
}

/** Validates a JSON-RPC request or notification. @throws RpcError 400 −32600 */
export function toMessage(value: unknown): Message {
  if (!isObject(value)) throw new RpcError(400, errorCodes.invalidRequest, 'a JSON-RPC message must be an object');
  if (value.jsonrpc !== '2.0') throw new RpcError(400, errorCodes.invalidRequest, '"jsonrpc" must be "2.0"');
  if (typeof value.method !== 'string') throw new RpcError(400, errorCodes.invalidRequest, '"method" must be a string');
  if ('id' in value && !isRequestId(value.id)) {
    throw new RpcError(400, errorCodes.invalidRequest, '"id" must be a string or an integer');
  }
  const params = isObject(value.params) ? value.params : coerceObject(value.params);
  if (!params) throw new RpcError(400, errorCodes.invalidRequest, '"params" must be an object');
  return { method: value.method, id: value.id as RequestId | undefined, params };
}

/** Wraps a result in a JSON-RPC message. */
export function toResultMessage(id: RequestId, result: string | JsonChunks): string | JsonChunks {
  const prefix = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  if (typeof result === 'string') return `${prefix}${result}}`;
  const chunks: [string, ...JsonText[], string] = [...result];
  chunks[0] = prefix + chunks[0];
  chunks[chunks.length - 1] += '}';
  return chunks;
}

/**
 * Formats an error message. The id is null for a batch element without an id that can be echoed (JSON-RPC 2.0, 5.1).
 */
export function formatError(id: RequestId | null | undefined, code: number, message: string, data?: object): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    ...(id !== undefined && { id }),
    error: { code, message: message.toWellFormed(), ...(data && { data }) },
  });
}

/** Joins the chunks of a body. */
export function joinChunks(body: string | JsonChunks): string {
  return typeof body === 'string' ? body : body.join('');
}

export function getBodyLength(body: string | JsonChunks): number {
  return typeof body === 'string' ? body.length : body.reduce((sum, chunk) => sum + chunk.length, 0);
}

/**
 * Joins the responses to a batch into one array. Byte chunks are not copied: a tool list can have megabytes, and all of
 * its readers share one copy.
 */
export function joinBatch(responses: readonly (string | JsonChunks)[]): JsonChunks {
  const chunks: JsonText[] = [];
  let text = '[';
  for (const [index, response] of responses.entries()) {
    if (index > 0) text += ',';
    for (const chunk of typeof response === 'string' ? [response] : response) {
      if (typeof chunk === 'string') text += chunk;
      else {
        chunks.push(text, chunk);
        text = '';
      }
    }
  }
  return ['', ...chunks, `${text}]`];
}

// Shared by all revisions.

export function formatInstructionsField({ instructions }: McpServer): string {
  return instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions.toWellFormed())}`;
}

export function toUnknownMethodError(status: number, method: string): RpcError {
  const message = `method ${JSON.stringify(method.slice(0, 100))} does not exist`;
  return new RpcError(status, errorCodes.methodNotFound, message);
}

/**
 * Rejects a cursor. The complete list fits on one page, so this service never issues one. Some clients request the
 * first page with null.
 */
export function checkCursor(params: JsonObject): void {
  if (params.cursor !== undefined && params.cursor !== null)
    throw new RpcError(200, errorCodes.invalidParams, '"cursor" was not issued by this server');
}

type ToolRequest = Pick<ToolCall, 'name' | 'args'>;

/** Returns the tool name and the arguments of a `tools/call`. @throws RpcError −32602 */
export function parseToolRequest(server: McpServer, params: JsonObject): ToolRequest {
  const { name } = params;
  if (typeof name !== 'string') throw new RpcError(200, errorCodes.invalidParams, '"name" must be a string');
  if (!server.getMirroredArguments(name)) {
    const suggestions = suggestNearestOrList(name, server.toolNames, createSuggestionBudget());
    throw new RpcError(
      200,
      errorCodes.invalidParams,
      `there is no tool ${JSON.stringify(name.slice(0, 100))}${suggestions}`,
    );
  }
  const args = isObject(params.arguments) ? params.arguments : coerceObject(params.arguments);
  if (!args) throw new RpcError(200, errorCodes.invalidParams, '"arguments" must be an object');
  return { name, args };
}

/** Builds a ToolCall field by field, because spreading three objects into one takes several times as long. */
export function createToolCall(
  { headers, requestId, bytesIn, ownOrigin, onDisconnect, authorization }: MessageContext,
  params: JsonObject,
  toolRequest: ToolRequest,
  generation: ProtocolGeneration,
): ToolCall {
  const isTraced = params._meta !== undefined || headers.traceparent !== undefined;
  const { traceparent, tracestate } = isTraced ? getTraceContext(headers, params._meta) : noTrace;
  const { name, args } = toolRequest;
  const revision = getHeaderValue(headers, 'mcp-protocol-version');
  return {
    name,
    args,
    generation,
    traceparent,
    tracestate,
    headers,
    requestId,
    bytesIn,
    revision,
    ownOrigin,
    onDisconnect,
    authorization,
  };
}

const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const tracestatePattern = /^[\x20-\x7e]{1,512}$/;

const noTrace = { traceparent: undefined, tracestate: undefined };

/** Returns the W3C trace context from `_meta` (SEP-414), or else from the headers. Invalid values are dropped. */
function getTraceContext(headers: RequestHeaders, meta: unknown): Pick<ToolCall, 'traceparent' | 'tracestate'> {
  const fields = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  const metaTraceparent = fields.traceparent;
  const traceparent = metaTraceparent ?? getHeaderValue(headers, 'traceparent');
  if (typeof traceparent !== 'string' || !traceparentPattern.test(traceparent)) return noTrace;
  const state = metaTraceparent === undefined ? getHeaderValue(headers, 'tracestate') : fields.tracestate;
  return { traceparent, tracestate: typeof state === 'string' && tracestatePattern.test(state) ? state : undefined };
}

/**
 * Formats a tool result. Up to 2025-11-25 structured content must be an object, and older clients reject anything else.
 * `allowsAnyValue` allows any value.
 */
export function formatToolResult(
  { content, structured, isError }: ToolResult,
  allowsAnyValue: boolean,
  extraFields: string,
): JsonChunks {
  const end = `${isError ? ',"isError":true' : ''}${extraFields}}`;
  const hasStructured =
    structured !== undefined &&
    (allowsAnyValue || (typeof structured === 'string' ? structured.startsWith('{') : structured[0] === 0x7b));
  return hasStructured
    ? ['{"content":', content, ',"structuredContent":', structured, end]
    : ['{"content":', content, end];
}
