import type { ServerResponse } from 'node:http';
import type { Pieces } from './protocol/results.ts';

/**
 * Ends a response. `headers` alternates names and values; nothing has been set on the response itself.
 * A client that does not take its answer within `slowReaderMs` is cut off, so that it holds no memory.
 */
export function write(
  response: ServerResponse,
  status: number,
  headers: string[],
  body: string | Pieces | undefined,
  slowReaderMs: number,
): void {
  if (response.destroyed) return;
  if (body === undefined) response.writeHead(status, headers).end();
  else if (typeof body !== 'string') {
    headers.push('Content-Length', String(body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)));
    // Corked, the pieces and the head still leave in one write.
    response.cork();
    response.writeHead(status, headers);
    for (const piece of body) response.write(piece);
    response.end();
  } else {
    const bytes = Buffer.byteLength(body);
    headers.push('Content-Length', String(bytes));
    // Text goes out in one write with the head. That of ASCII alone is also Latin-1, which is the cheapest to write.
    response.writeHead(status, headers).end(body, bytes === body.length ? 'latin1' : 'utf8');
  }
  // What the socket has taken needs no reader any more.
  if (response.socket?.writableLength === 0) return;
  const timer = setTimeout(() => response.destroy(), slowReaderMs);
  timer.unref();
  response.on('close', () => clearTimeout(timer));
}
