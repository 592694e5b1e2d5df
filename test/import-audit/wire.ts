/** Records requests at a stub, and parses them. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { tokenPath } from './localize.ts';

export type Part = { name: string; hasFileName: boolean; contentType: string; content: string };

/** Parsed body. Strings contain one character per byte, unless they are decoded. */
export type Body =
  | { kind: 'none' }
  | { kind: 'json'; value: unknown }
  | { kind: 'form'; pairs: [string, string][] }
  | { kind: 'multipart'; parts: Part[] }
  | { kind: 'bytes'; content: string };

export type WireRequest = {
  method: string;
  /** Path with normalized percent-encoding (RFC 3986, 6.2.2). */
  path: string;
  /** Names and values of the query with normalized percent-encoding. */
  query: [string, string][];
  headers: Map<string, string>;
  cookies: [string, string][];
  /** Media type without parameters; empty if there is none. */
  contentType: string;
  body: Body;
};

export type ReceivedRequest = { method: string; target: string; rawHeaders: string[]; body: Buffer };

/** Records requests and answers each with an empty JSON object. Also serves as a token endpoint. */
export type Stub = {
  url: string;
  port: number;
  /** Returns and forgets the requests since the last call. */
  take(): ReceivedRequest[];
  close(): Promise<void>;
};

const tokenReply = JSON.stringify({ access_token: 'audit-token', token_type: 'bearer', expires_in: 3600 });

export async function startStub(): Promise<Stub> {
  let received: ReceivedRequest[] = [];
  const server: Server = createServer({ maxHeaderSize: 256 * 1024 }, async (message, response) => {
    // Undefined if the client disconnected before its request was complete.
    const body = await buffer(message).catch(() => undefined);
    if (body === undefined) return;
    const { method = '', url: target = '', rawHeaders } = message;
    const isToken = target === tokenPath;
    if (!isToken) received.push({ method, target, rawHeaders, body });
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(isToken ? tokenReply : '{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    take() {
      const taken = received;
      received = [];
      return taken;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export function readRequest({ method, target, rawHeaders, body }: ReceivedRequest): WireRequest {
  const mark = target.indexOf('?');
  const headers = new Map<string, string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    const value = rawHeaders[at + 1] as string;
    headers.set(name, headers.has(name) ? `${headers.get(name)},${value}` : value);
  }
  const type = headers.get('content-type') ?? '';
  return {
    method,
    path: normalizePercent(mark < 0 ? target : target.slice(0, mark)),
    query: mark < 0 ? [] : readQuery(target.slice(mark + 1)),
    headers,
    cookies: readCookies(headers.get('cookie') ?? ''),
    contentType: readMediaType(type),
    body: readBody(type, body),
  };
}

export const readMediaType = (type: string) => (type.split(';', 1)[0] as string).trim().toLowerCase();

export const isJsonType = (mediaType: string) => /[/+]json$/.test(readMediaType(mediaType));

/**
 * Decodes characters that need no encoding, encodes characters that are not allowed in a URI, and uses uppercase hex
 * digits.
 */
export function normalizePercent(text: string): string {
  const legal = text.replaceAll(/[^\w\-.~!$&'()*+,;=:@/?%[\]]/gu, encodeURIComponent);
  return legal.replaceAll(/%([0-9a-fA-F]{2})/g, (_, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return /[A-Za-z0-9\-._~]/.test(character) ? character : `%${digits.toUpperCase()}`;
  });
}

export function readQuery(query: string): [string, string][] {
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      return [normalizePercent(at < 0 ? pair : pair.slice(0, at)), at < 0 ? '' : normalizePercent(pair.slice(at + 1))];
    });
}

function readCookies(header: string): [string, string][] {
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    });
}

function readBody(type: string, body: Buffer): Body {
  if (body.length === 0) return { kind: 'none' };
  const mediaType = readMediaType(type);
  if (isJsonType(mediaType)) {
    try {
      return { kind: 'json', value: JSON.parse(body.toString('utf8')) };
    } catch {
      return { kind: 'bytes', content: body.toString('latin1') };
    }
  }
  if (mediaType === 'application/x-www-form-urlencoded') {
    return { kind: 'form', pairs: [...new URLSearchParams(body.toString('utf8'))] };
  }
  const boundary = /boundary="?([^";]+)"?/i.exec(type)?.[1];
  if (mediaType.startsWith('multipart/') && boundary)
    return { kind: 'multipart', parts: readParts(body.toString('latin1'), boundary) };
  return { kind: 'bytes', content: body.toString('latin1') };
}

function readParts(body: string, boundary: string): Part[] {
  return `\r\n${body}`
    .split(`\r\n--${boundary}`)
    .slice(1)
    .filter((part) => part.startsWith('\r\n'))
    .map((part) => {
      const end = part.indexOf('\r\n\r\n');
      const lines = part.slice(2, Math.max(2, end)).split('\r\n');
      const headers = new Map(
        lines.map((line): [string, string] => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 1).trim(),
        ]),
      );
      const disposition = headers.get('content-disposition') ?? '';
      return {
        name: Buffer.from(/[; ]name="([^"]*)"/.exec(disposition)?.[1] ?? '', 'latin1').toString('utf8'),
        hasFileName: /[; ]filename\*?=/.test(disposition),
        contentType: readMediaType(headers.get('content-type') ?? ''),
        content: part.slice(end + 4),
      };
    });
}
