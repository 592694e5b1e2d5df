import type { ServerResponse } from 'node:http';
import type { Party } from '../domain/visit.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import type { Pieces } from './protocol/results.ts';

/** An answer to be written; `headers` alternates names and values, and gets the length of the body. */
export type Outgoing = { status: number; headers: string[]; body: string | Pieces | undefined };

/**
 * Ends a response on which nothing has been set. What the client does not read is counted for its party: the address of
 * the request when `party` is absent.
 */
export function write(
  response: ServerResponse,
  { status, headers, body }: Outgoing,
  unread: UnreadAnswers,
  party?: Party,
): void {
  if (response.destroyed) return;
  let bytes = 0;
  if (body === undefined) response.writeHead(status, headers).end();
  else {
    bytes = typeof body === 'string' ? Buffer.byteLength(body) : lengthOf(body);
    headers.push('Content-Length', String(bytes));
    response.writeHead(status, headers);
    // A text goes out in one write with the head. ASCII text is also Latin-1, which is the cheapest to write.
    if (typeof body === 'string') response.end(body, bytes === body.length ? 'latin1' : 'utf8');
    else endWithPieces(response, body);
  }
  // The socket has taken everything, so the client can no longer hold memory.
  if (response.socket?.writableLength !== 0) unread.hold(response, bytes, party, bytesIn(body));
}

/** The pieces that are bytes. A list of tools is the same ones for all who read it. */
function bytesIn(body: Outgoing['body']): Uint8Array[] {
  return typeof body === 'object' ? body.filter((piece) => typeof piece !== 'string') : [];
}

function lengthOf(pieces: Pieces): number {
  return pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
}

/** Corked, the pieces and the head go out in one write. */
function endWithPieces(response: ServerResponse, pieces: Pieces): void {
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
}
