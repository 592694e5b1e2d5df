import { isUtf8 } from 'node:buffer';
import { type BodyLimits, bodyProblem, exceedsLimits, shortLimits } from '../../domain/json/body-limits.ts';
import { isRawNumber } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { parseScanned } from '../../domain/json/long-json.ts';
import type { JsonText, McpServer } from '../../domain/mcp.ts';
import type { Pieces } from './results.ts';

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

/** The id of a posted value, if it has one that can be echoed. */
export function readableId(value: unknown): RequestId | undefined {
  return isObject(value) && isRequestId(value.id) ? value.id : undefined;
}

export function isRequestId(id: unknown): id is RequestId {
  if (isRawNumber(id)) return /^-?\d{1,100}$/.test(id.rawJSON);
  // JavaScript writes larger numbers with an exponent.
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id) && Math.abs(id) < 1e21);
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
  // Some clients write null for parameters that they do not have.
  const params = value.params ?? {};
  if (!isObject(params)) throw new RpcError(400, codes.invalidRequest, '"params" must be an object');
  return { method: value.method, id: value.id as RequestId | undefined, params };
}

export function resultText(id: RequestId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

/** The same for a result that may be in pieces. */
export function resultPieces(id: RequestId, result: string | Pieces): string | Pieces {
  if (typeof result === 'string') return resultText(id, result);
  const pieces: [string, ...JsonText[], string] = [...result];
  pieces[0] = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${pieces[0]}`;
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
