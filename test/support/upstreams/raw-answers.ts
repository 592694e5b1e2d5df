import type { Socket } from 'node:net';

/** One request that a raw upstream has read, and the connection on which it may misbehave. */
export interface RawExchange {
  socket: Socket;
  /** Path segment after the name of the behavior: '418' in /status/418. */
  argument: string;
  query: URLSearchParams;
}

export type Behaviour = (exchange: RawExchange) => void;

/** Formats the head of a response, including the empty line. */
export function head(status: string, fields: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`;
}

/** Formats a complete response, which is JSON unless `headers` says otherwise. */
export function whole(body: string | Buffer, fields: Readonly<Record<string, string>> = {}, status = '200 OK'): Buffer {
  const length = Buffer.byteLength(body);
  const start = head(status, { 'content-type': 'application/json', 'content-length': length, ...fields });
  return Buffer.concat([Buffer.from(start), Buffer.from(body)]);
}

// A disconnect of the client is the expected end of a stream that is too long for it.
export function ignoreLeaving(sending: Promise<void>): void {
  sending.catch(() => undefined);
}
