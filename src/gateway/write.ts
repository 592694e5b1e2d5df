import { Buffer } from 'node:buffer';
import type { ServerResponse } from 'node:http';
import type { Party } from '../domain/visit.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import type { Pieces } from './protocol/results.ts';

/** An answer to be written. `headers`, and `ofBody` without its length, alternate names and values. */
export type Outgoing = {
  status: number;
  headers: readonly string[];
  ofBody: readonly string[];
  body: string | Pieces | undefined;
};

/**
 * Ends a response on which nothing has been set. What the client does not read is counted for its party: the address of
 * the request when `party` is absent.
 */
export function write(
  response: ServerResponse,
  { status, headers, ofBody, body }: Outgoing,
  unread: UnreadAnswers,
  party?: Party,
): void {
  if (response.destroyed) return;
  let bytes = 0;
  if (body === undefined) response.writeHead(status, [...headers]).end();
  else {
    bytes = typeof body === 'string' ? Buffer.byteLength(body) : bytesOf(body);
    response.writeHead(status, [...headers, ...ofBody, 'Content-Length', String(bytes)]);
    const text = typeof body === 'string' ? body : joinedText(body);
    // A text goes out in one write with the head. ASCII text is also Latin-1, which is the cheapest to write.
    if (text !== undefined) response.end(text, bytes === text.length ? 'latin1' : 'utf8');
    else endWithPieces(response, body as Pieces);
  }
  // The socket has taken everything, so the client can no longer hold memory.
  if (response.socket?.writableLength !== 0) unread.hold(response, bytes, party, bytesIn(body));
}

/** The pieces that are bytes. A list of tools is the same ones for all who read it. */
function bytesIn(body: Outgoing['body']): Uint8Array[] {
  return typeof body === 'object' ? body.filter((piece) => typeof piece !== 'string') : [];
}

function bytesOf(pieces: Pieces): number {
  let bytes = 0;
  for (const piece of pieces) bytes += Buffer.byteLength(piece);
  return bytes;
}

/**
 * One text of pieces that are all texts. V8 copies their characters together when the text is first read, which is when it
 * is written: to count its bytes as a whole would copy it once more.
 */
function joinedText(pieces: Pieces): string | undefined {
  let text = '';
  for (const piece of pieces) {
    if (typeof piece !== 'string') return undefined;
    text += piece;
  }
  return text;
}

/** Corked, the pieces and the head go out in one write. */
function endWithPieces(response: ServerResponse, pieces: Pieces): void {
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
}
