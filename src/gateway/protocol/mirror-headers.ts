import { isUtf8 } from 'node:buffer';
import { headerValue } from '../../domain/credentials/credential.ts';
import { isRawNumber } from '../../domain/json/json.ts';
import { valueAt } from '../../domain/json/value-at.ts';
import type { MirroredArgument } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { RequestHeaders } from '../../domain/visit.ts';
import { codes, RpcError } from './json-rpc.ts';

function mismatch(message: string): RpcError {
  return new RpcError(400, codes.headerMismatch, message);
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * A mirrored value: literal, or `=?base64?…?=` around the base64 of its UTF-8 (MCP 2026-07-28, transports).
 * @throws RpcError −32020 when the base64 is not canonical, or its bytes are not UTF-8
 */
function decodeMirrored(value: string): string {
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value;
  const encoded = value.slice('=?base64?'.length, -2);
  const bytes = Buffer.from(encoded, 'base64');
  if (!base64.test(encoded) || bytes.toString('base64') !== encoded)
    throw mismatch('a header value is not valid base64');
  if (!isUtf8(bytes)) throw mismatch('a header value is not the base64 of UTF-8');
  return bytes.toString('utf8');
}

/** `Mcp-Method` and `MCP-Protocol-Version` must equal the body where they are present. @throws RpcError −32020 */
export function checkPresentMirrors(headers: RequestHeaders, version: string, method: string): void {
  const headerVersion = headerValue(headers, 'mcp-protocol-version');
  if (headerVersion !== undefined && headerVersion !== version) {
    throw mismatch('the MCP-Protocol-Version header differs from _meta');
  }
  const headerMethod = headerValue(headers, 'mcp-method');
  if (headerMethod !== undefined && headerMethod !== method)
    throw mismatch('the Mcp-Method header differs from "method"');
}

/** The headers that a modern request must carry. @throws RpcError −32020 */
export function checkRequiredMirrors(headers: RequestHeaders, method: string, name: unknown): void {
  if (headerValue(headers, 'mcp-protocol-version') === undefined)
    throw mismatch('the MCP-Protocol-Version header is missing');
  if (headerValue(headers, 'mcp-method') === undefined) throw mismatch('the Mcp-Method header is missing');
  if (method !== 'tools/call' || typeof name !== 'string') return;
  const headerName = headerValue(headers, 'mcp-name');
  if (headerName === undefined) throw mismatch('the Mcp-Name header is missing');
  if (decodeMirrored(headerName) !== name) throw mismatch('the Mcp-Name header differs from "params.name"');
}

/**
 * An argument that is present must be mirrored and equal; one that is absent or null is not compared.
 * @throws RpcError −32020
 */
export function checkMirroredArguments(
  headers: RequestHeaders,
  args: Arguments,
  mirrored: readonly MirroredArgument[],
): void {
  for (const { header, path, type } of mirrored) {
    const value = valueAt(args, path);
    if (value === undefined || value === null) continue;
    const given = headerValue(headers, `mcp-param-${header.toLowerCase()}`);
    if (given === undefined) throw mismatch(`the Mcp-Param-${header} header is missing`);
    if (!isEqual(decodeMirrored(given), value, type))
      throw mismatch(`the Mcp-Param-${header} header differs from the argument`);
  }
}

function isEqual(given: string, value: unknown, type: MirroredArgument['type']): boolean {
  const text = isRawNumber(value) ? value.rawJSON : String(value);
  if (given === text || type !== 'integer') return given === text;
  const [a, b] = [integerOf(given), integerOf(text)];
  return a !== undefined && a === b;
}

/** `42` and `42.0` are one integer. Large ones must not be compared as doubles, where different ones can be equal. */
function integerOf(text: string): bigint | undefined {
  const digits = /^(-?\d{1,100})(?:\.0{1,100})?$/.exec(text)?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}
