import { isUtf8 } from 'node:buffer';
import { headerValue } from '../../domain/credentials/credential.ts';
import { shortLimits } from '../../domain/json/body-limits.ts';
import { isRawNumber, parseJson, parseScanned } from '../../domain/json/json.ts';
import { type BodyLimits, bodyProblem, exceedsLimits, scanJson } from '../../domain/json/json-scan.ts';
import type { Admission, Era, JsonText, McpServer, ToolCall, ToolResult } from '../../domain/mcp.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems.ts';
import { coerceObject } from '../../domain/schema/coerce-value.ts';
import type { RequestHeaders } from '../../domain/visit.ts';

/** JSON-RPC 2.0 codes, and the three that MCP 2026-07-28 adds. */
export const codes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

/** An integer beyond 2^53 keeps its digits, because the client expects exactly those. */
export type RequestId = string | number | { rawJSON: string };

/** An error answer: its HTTP status, its JSON-RPC code, and the id where it could be read. */
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

/** A JSON text in pieces, of which some may be bytes. */
export type Pieces = readonly [string, ...JsonText[], string];

/** An answer: a JSON text, whole or in pieces, the frames of a short event stream, or nothing (202). */
export type Reply = {
  status: number;
  body: string | Pieces | undefined;
  stream?: boolean;
  /** It has a list of tools. */
  isList?: boolean;
};

/** The HTTP request around a message. */
export type MessageContext = {
  headers: RequestHeaders;
  requestId: string;
  bytesIn: number;
  /** Origin of the server's own host, when the request came to that. */
  ownOrigin?: string | undefined;
  onGone: (cancel: () => void) => void;
  admission: Admission<McpServer>;
};

/** The answer to what needs none. */
export const accepted: Reply = { status: 202, body: undefined };

/** A message as received; `id` is undefined for a notification. */
export type Message = { method: string; id: RequestId | undefined; params: JsonObject };

/**
 * Parses a body, a long one in several turns, or by `readLong` where the server has one.
 * @throws RpcError 400 when it is not JSON, 413 when it has too many values, and AppError tooLarge in its promise
 */
export function parseBody(body: Buffer, limits: BodyLimits, readLong?: McpServer['readLong']): unknown {
  // Decoding would replace invalid bytes by replacement characters, and a tool would be called with those.
  if (!isUtf8(body)) throw new RpcError(400, codes.parse, 'the body is not UTF-8');
  const scan = scanJson(body, limits.depth);
  if (!scan) throw new RpcError(400, codes.parse, 'the body is not JSON');
  const tooMuch = bodyProblem(scan, limits);
  if (tooMuch) throw new RpcError(413, codes.invalidRequest, tooMuch);
  if (readLong && exceedsLimits(body.length, scan, shortLimits)) return readLong(body);
  return parseScanned(body, scan);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** The member of `_meta` with which a message says that it is of MCP 2026-07-28. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** Whether a message itself says that it is of the modern era. */
export function isModern(value: unknown): boolean {
  const meta = isObject(value) && isObject(value.params) ? value.params._meta : undefined;
  return isObject(meta) && versionKey in meta;
}

/** The id of a posted value, if it has one that can be echoed. */
export function readableId(value: unknown): RequestId | undefined {
  return isObject(value) && isRequestId(value.id) ? value.id : undefined;
}

export function isRequestId(id: unknown): id is RequestId {
  if (isRawNumber(id)) return /^-?\d{1,100}$/.test(id.rawJSON);
  // JavaScript writes larger numbers with an exponent.
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id) && Math.abs(id) < 1e21);
}

/** The parts of a message that are read of a request that is refused. */
export type MessageStart = { id?: RequestId; method?: string };

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * The id and the method of a message from its first bytes, for the answer to a request that is refused before it is parsed.
 * Of one that is cut off, the members before the cut count. What is no JSON has none (JSON-RPC 2.0, 5).
 */
export function readMessageStart(bytes: Buffer, isWhole: boolean): MessageStart {
  const members = Buffer.from(outerMembers(bytes, isWhole), 'latin1');
  if (!isUtf8(members)) return {};
  try {
    const value = parseJson(members.toString());
    if (!isObject(value)) return {};
    const { id, method } = value;
    return { ...(isRequestId(id) && { id: id as RequestId }), ...(typeof method === 'string' && { method }) };
  } catch {
    // The request is refused for another reason.
    return {};
  }
}

/** A message in Latin-1 with null in place of each nested value, which may be long and is not checked. */
function outerMembers(bytes: Buffer, isWhole: boolean): string {
  let text = '';
  /** Where the part begins that is not in `text` yet, and how long the text is with the last whole member. */
  let from = 0;
  let end = 0;
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isText && byte === backslash) at++;
    else if (byte === quote) isText = !isText;
    else if (isText) continue;
    else if (byte === openObject || byte === openArray) {
      if (++depth === 2) text += `${bytes.toString('latin1', from, at)}null`;
    } else if (byte === closeObject || byte === closeArray) {
      if (--depth === 1) from = at + 1;
    } else if (byte === comma && depth === 1) end = text.length + at - from;
  }
  if (depth < 2) text += bytes.toString('latin1', from);
  return isWhole ? text : `${text.slice(0, end)}}`;
}

/** Whether a body is the answer to a request, which no client has reason to post. */
export function isResponse(value: unknown): boolean {
  return isObject(value) && value.method === undefined && ('result' in value || 'error' in value);
}

/** @throws RpcError 400 −32600 when a value is no JSON-RPC request or notification */
export function toMessage(value: unknown): Message {
  if (!isObject(value)) throw new RpcError(400, codes.invalidRequest, 'a JSON-RPC message must be an object');
  if (value.jsonrpc !== '2.0') throw new RpcError(400, codes.invalidRequest, '"jsonrpc" must be "2.0"');
  if (typeof value.method !== 'string') throw new RpcError(400, codes.invalidRequest, '"method" must be a string');
  if ('id' in value && !isRequestId(value.id)) {
    throw new RpcError(400, codes.invalidRequest, '"id" must be a string or an integer');
  }
  const params = isObject(value.params) ? value.params : coerceObject(value.params);
  if (!params) throw new RpcError(400, codes.invalidRequest, '"params" must be an object');
  return { method: value.method, id: value.id as RequestId | undefined, params };
}

/** The message of a result. */
export function resultPieces(id: RequestId, result: string | Pieces): string | Pieces {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  if (typeof result === 'string') return `${head}${result}}`;
  const pieces: [string, ...JsonText[], string] = [...result];
  pieces[0] = head + pieces[0];
  pieces[pieces.length - 1] += '}';
  return pieces;
}

/** The id is null where an element of a batch has none that can be echoed (JSON-RPC 2.0, 5.1). */
export function errorText(id: RequestId | null | undefined, code: number, message: string, data?: object): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    ...(id !== undefined && { id }),
    error: { code, message: message.toWellFormed(), ...(data && { data }) },
  });
}

/** The text of an answer in one piece. */
export function textOf(body: string | Pieces): string {
  return typeof body === 'string' ? body : body.join('');
}

export function lengthOfAnswer(body: string | Pieces): number {
  return typeof body === 'string' ? body.length : body.reduce((sum, piece) => sum + piece.length, 0);
}

/**
 * The answers to a batch as one array. Bytes stay as they are: a list of tools is megabytes long, and its own server and
 * all who read it share it.
 */
export function batchPieces(answers: readonly (string | Pieces)[]): Pieces {
  const pieces: JsonText[] = [];
  let text = '[';
  for (const [index, answer] of answers.entries()) {
    if (index > 0) text += ',';
    for (const piece of typeof answer === 'string' ? [answer] : answer) {
      if (typeof piece === 'string') text += piece;
      else {
        pieces.push(text, piece);
        text = '';
      }
    }
  }
  return ['', ...pieces, `${text}]`];
}

// What every revision has in common.

export function instructionsField({ instructions }: McpServer): string {
  return instructions === undefined ? '' : `,"instructions":${JSON.stringify(instructions.toWellFormed())}`;
}

export function noMethod(status: number, method: string): RpcError {
  const message = `method ${JSON.stringify(method.slice(0, 100))} does not exist here`;
  return new RpcError(status, codes.methodNotFound, message);
}

/** The whole list fits on one page, so no cursor was ever issued. Some clients ask for the first page with null. */
export function checkCursor(params: JsonObject): void {
  if (params.cursor !== undefined && params.cursor !== null)
    throw new RpcError(200, codes.invalidParams, '"cursor" was not given out by this server');
}

type Called = Pick<ToolCall, 'name' | 'args'>;

/** The tool and the arguments of a `tools/call`. @throws RpcError −32602 */
export function checkCall(server: McpServer, params: JsonObject): Called {
  const { name } = params;
  if (typeof name !== 'string') throw new RpcError(200, codes.invalidParams, '"name" must be a string');
  if (!server.mirrored(name)) {
    const near = nearestOrAll(name, server.toolNames, newGuesses());
    throw new RpcError(200, codes.invalidParams, `there is no tool ${JSON.stringify(name.slice(0, 100))}${near}`);
  }
  const args = isObject(params.arguments) ? params.arguments : coerceObject(params.arguments);
  if (!args) throw new RpcError(200, codes.invalidParams, '"arguments" must be an object');
  return { name, args };
}

/** Written by hand, because spreading three objects into one takes several times as long. */
export function toolCall(
  { headers, requestId, bytesIn, ownOrigin, onGone, admission }: MessageContext,
  params: JsonObject,
  called: Called,
  era: Era,
): ToolCall {
  const isTraced = params._meta !== undefined || headers.traceparent !== undefined;
  const { traceparent, tracestate } = isTraced ? traceContext(headers, params._meta) : noTrace;
  const { name, args } = called;
  const revision = headerValue(headers, 'mcp-protocol-version');
  return {
    name,
    args,
    era,
    traceparent,
    tracestate,
    headers,
    requestId,
    bytesIn,
    revision,
    ownOrigin,
    onGone,
    admission,
  };
}

const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const tracestatePattern = /^[\x20-\x7e]{1,512}$/;

const noTrace = { traceparent: undefined, tracestate: undefined };

/** W3C trace context from `_meta` (SEP-414), or else from the headers; invalid values are dropped. */
function traceContext(headers: RequestHeaders, meta: unknown): Pick<ToolCall, 'traceparent' | 'tracestate'> {
  const fields = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  const fromMeta = fields.traceparent;
  const traceparent = fromMeta ?? headerValue(headers, 'traceparent');
  if (typeof traceparent !== 'string' || !traceparentPattern.test(traceparent)) return noTrace;
  const state = fromMeta === undefined ? headerValue(headers, 'tracestate') : fields.tracestate;
  return { traceparent, tracestate: typeof state === 'string' && tracestatePattern.test(state) ? state : undefined };
}

/** Up to 2025-11-25 structured content must be an object; an older client would refuse anything else (`anyValue`). */
export function callResult({ content, structured, isError }: ToolResult, anyValue: boolean, more: string): Pieces {
  const end = `${isError ? ',"isError":true' : ''}${more}}`;
  const isShown =
    structured !== undefined &&
    (anyValue || (typeof structured === 'string' ? structured.startsWith('{') : structured[0] === 0x7b));
  return isShown ? ['{"content":', content, ',"structuredContent":', structured, end] : ['{"content":', content, end];
}
