import { isUtf8 } from 'node:buffer';
import type { RequestHeaders } from '@toolhost/credentials/client-request';
import { getHeaderValue } from '@toolhost/credentials/credential';
import { getValueAt } from '@toolhost/errors/dot-path';
import { isRawNumber } from '@toolhost/json/json';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import {
  checkCursor,
  createToolCall,
  errorCodes,
  formatInstructionsField,
  formatToolResult,
  isObject,
  type JsonObject,
  joinChunks,
  type Message,
  type MessageContext,
  type PendingCall,
  parseToolRequest,
  type Reply,
  type RequestId,
  RpcError,
  toResultMessage,
  toUnknownMethodError,
  versionKey,
} from './json-rpc.ts';
import { type McpServer, type MirroredArgument, revisions, statelessRevision } from './mcp.ts';

// MCP 2026-07-28, the stateless generation: there is no handshake. Each request carries its revision and mirrors it in
// the headers.

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const clientKey = 'io.modelcontextprotocol/clientInfo';

/**
 * Handles a request. A call is returned for the server to run. The checks run in the order that the conformance suite
 * accepts. `hasEnvelope` is false if only the headers identify the request as stateless.
 */
export function handleStatelessRequest(
  server: McpServer,
  message: Message,
  context: MessageContext,
  hasEnvelope: boolean,
): Reply | PendingCall {
  const { method, params } = message;
  if (!hasEnvelope) throw toMissingEnvelopeError(method);
  const version = checkEnvelope(params._meta as JsonObject);
  checkPresentMirrorHeaders(context.headers, version, method);
  if (version !== statelessRevision) {
    throw new RpcError(
      400,
      errorCodes.unsupportedVersion,
      `protocol version ${version.slice(0, 40)} is not supported`,
      {
        supported: revisions,
        requested: version,
      },
    );
  }
  checkRequiredMirrorHeaders(context.headers, method, params.name);
  const id = message.id as RequestId;
  switch (method) {
    case 'server/discover':
      return { status: 200, body: toResultMessage(id, formatDiscovery(server)) };
    case 'tools/list': {
      checkCursor(params);
      const body = toResultMessage(id, [
        '{"tools":',
        server.getToolsJson(),
        `,${cacheFields},${formatResultFields(server)}}`,
      ]);
      return { status: 200, body, isList: true };
    }
    case 'tools/call': {
      const toolRequest = parseToolRequest(server, params);
      checkMirroredArguments(context.headers, toolRequest.args, server.getMirroredArguments(toolRequest.name) ?? []);
      const extraFields = `,${formatResultFields(server)}`;
      return {
        toolCall: createToolCall(context, params, toolRequest, 'stateless'),
        toReply: (result) => ({ status: 200, body: toResultMessage(id, formatToolResult(result, true, extraFields)) }),
      };
    }
    case 'subscriptions/listen':
      return acknowledgeSubscription(id, params);
    default:
      throw toUnknownMethodError(404, method);
  }
}

function toMissingEnvelopeError(method: string): RpcError {
  if (method === 'initialize')
    return new RpcError(400, errorCodes.headerMismatch, 'initialize does not exist in this revision');
  return new RpcError(400, errorCodes.invalidParams, `params._meta needs "${versionKey}" and "${capabilitiesKey}"`);
}

/** Validates `_meta` of a stateless request (basic/index, `_meta`). Returns its version. @throws RpcError −32602 */
function checkEnvelope(meta: JsonObject): string {
  const invalid = (problem: string) => new RpcError(400, errorCodes.invalidParams, `params._meta: ${problem}`);
  const version = meta[versionKey];
  if (typeof version !== 'string') throw invalid(`"${versionKey}" must be a string`);
  if (!isObject(meta[capabilitiesKey])) throw invalid(`"${capabilitiesKey}" must be an object`);
  const client = meta[clientKey];
  if (
    client !== undefined &&
    !(isObject(client) && typeof client.name === 'string' && typeof client.version === 'string')
  ) {
    throw invalid(`"${clientKey}" must have a name and a version`);
  }
  return version;
}

/**
 * Acknowledges a subscription as empty and ends it, because nothing that this service offers changes while a client
 * listens. It ends with the notification that a server must send (MCP 2026-07-28, patterns/cancellation), followed by
 * an empty result.
 */
function acknowledgeSubscription(id: RequestId, params: JsonObject): Reply {
  if (!isObject(params.notifications))
    throw new RpcError(400, errorCodes.invalidParams, '"notifications" must be an object');
  const meta = { 'io.modelcontextprotocol/subscriptionId': id };
  const notification = (method: string, fields: object) =>
    `data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...fields, _meta: meta } })}\n\n`;
  const acknowledged = notification('notifications/subscriptions/acknowledged', { notifications: {} });
  const canceled = notification('notifications/cancelled', { requestId: id, reason: 'no notifications are offered' });
  const end = joinChunks(toResultMessage(id, JSON.stringify({ resultType: 'complete', _meta: meta })));
  return { status: 200, stream: true, body: `${acknowledged}${canceled}data: ${end}\n\n` };
}

/** Time in ms for which a client may reuse a list. Lists depend on the caller, so callers never share them. */
const listTtlMs = 30_000;
const cacheFields = `"ttlMs":${listTtlMs},"cacheScope":"private"`;

/** Returns the fields that every result carries: its type and the server's identity. */
function formatResultFields(server: McpServer): string {
  return `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":${server.info}}`;
}

function formatDiscovery(server: McpServer): string {
  const versions = `"supportedVersions":${JSON.stringify(revisions)}`;
  return `{${versions},"capabilities":{"tools":{}}${formatInstructionsField(server)},${cacheFields},${formatResultFields(server)}}`;
}

function toMismatchError(message: string): RpcError {
  return new RpcError(400, errorCodes.headerMismatch, message);
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Decodes a mirrored value: a literal, or `=?base64?…?=` around the base64 of its UTF-8 (MCP 2026-07-28, transports).
 * @throws RpcError −32020 if the base64 is not canonical or its bytes are not UTF-8
 */
function decodeMirrored(value: string): string {
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value;
  const encoded = value.slice('=?base64?'.length, -2);
  const bytes = Buffer.from(encoded, 'base64');
  if (!base64.test(encoded) || bytes.toString('base64') !== encoded)
    throw toMismatchError('a header value is not valid base64');
  if (!isUtf8(bytes)) throw toMismatchError('a header value is valid base64 but not valid UTF-8');
  return bytes.toString('utf8');
}

/** Compares `Mcp-Method` and `MCP-Protocol-Version`, if present, with the body. @throws RpcError −32020 */
function checkPresentMirrorHeaders(headers: RequestHeaders, version: string, method: string): void {
  const headerVersion = getHeaderValue(headers, 'mcp-protocol-version');
  if (headerVersion !== undefined && headerVersion !== version) {
    throw toMismatchError('the MCP-Protocol-Version header differs from _meta');
  }
  const headerMethod = getHeaderValue(headers, 'mcp-method');
  if (headerMethod !== undefined && headerMethod !== method)
    throw toMismatchError('the Mcp-Method header differs from "method"');
}

/** Requires the headers that a stateless request must carry. @throws RpcError −32020 */
function checkRequiredMirrorHeaders(headers: RequestHeaders, method: string, name: unknown): void {
  if (getHeaderValue(headers, 'mcp-protocol-version') === undefined)
    throw toMismatchError('the MCP-Protocol-Version header is missing');
  if (getHeaderValue(headers, 'mcp-method') === undefined) throw toMismatchError('the Mcp-Method header is missing');
  if (method !== 'tools/call' || typeof name !== 'string') return;
  const headerName = getHeaderValue(headers, 'mcp-name');
  if (headerName === undefined) throw toMismatchError('the Mcp-Name header is missing');
  if (decodeMirrored(headerName) !== name) throw toMismatchError('the Mcp-Name header differs from "params.name"');
}

/**
 * Requires a mirrored header for each declared argument that is present, with an equal value. An argument that is
 * absent or null is not compared.
 * @throws RpcError −32020
 */
function checkMirroredArguments(headers: RequestHeaders, args: Arguments, mirrored: readonly MirroredArgument[]): void {
  for (const { header, path, type } of mirrored) {
    const value = getValueAt(args, path);
    if (value === undefined || value === null) continue;
    const headerText = getHeaderValue(headers, `mcp-param-${header.toLowerCase()}`);
    if (headerText === undefined) throw toMismatchError(`the Mcp-Param-${header} header is missing`);
    if (!isEqual(decodeMirrored(headerText), value, type))
      throw toMismatchError(`the Mcp-Param-${header} header differs from the argument`);
  }
}

function isEqual(headerText: string, value: unknown, type: MirroredArgument['type']): boolean {
  const text = isRawNumber(value) ? value.rawJSON : String(value);
  if (headerText === text || type !== 'integer') return headerText === text;
  const [a, b] = [parseInteger(headerText), parseInteger(text)];
  return a !== undefined && a === b;
}

/**
 * Parses an integer, so that `42` and `42.0` are equal. Doubles would not do: different large integers can be equal as
 * doubles.
 */
function parseInteger(text: string): bigint | undefined {
  const digits = /^(-?\d{1,100})(?:\.0{1,100})?$/.exec(text)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}
