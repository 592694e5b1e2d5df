import type { Socket } from 'node:net';

/** One request that a raw upstream has read, and the connection on which it may misbehave. */
export interface RawExchange {
  socket: Socket;
  /** Path segment after the name of the behavior: '418' in /status/418. */
  argument: string;
  query: URLSearchParams;
}

export type Behavior = (exchange: RawExchange) => void;

/** Formats the head of a response, including the empty line. */
export function formatHead(status: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`;
}

/** Formats a complete response, which is JSON unless `headers` says otherwise. */
export function formatRawResponse(
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
  status = '200 OK',
): Buffer {
  const length = Buffer.byteLength(body);
  const start = formatHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers });
  return Buffer.concat([Buffer.from(start), Buffer.from(body)]);
}

// A disconnect of the client is the expected end of a stream that is too long for it.
export function ignoreDisconnect(sending: Promise<void>): void {
  sending.catch(() => undefined);
}
