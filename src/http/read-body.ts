import type { IncomingMessage } from 'node:http';
import { type Held, uncountedBytes } from '../domain/work/memory-budget.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import { AppError } from '../errors.ts';

/** Limits for reading a body without storing it. The connection of a client that sends more is closed. */
export type Drain = { bytes: number; pieces: number };

/**
 * Maximum chunks of a body. Every chunk costs time and memory regardless of its size, and no well-behaved client sends
 * a few bytes at a time.
 */
const maxPieces = 16_384;
export const drainOfCaller: Drain = { bytes: 16 * 1024 * 1024, pieces: 2 * maxPieces };
/** Limits for rejected requests: as many bytes as a valid one may have, in chunks of packet size. */
export const drainOfRefused: Drain = { bytes: 1024 * 1024, pieces: 2048 };

const ended = () => new AppError('invalid', 'the request ended before its body was complete');

/** Memory of a chunk besides its bytes. */
const pieceBytes = 256;
/**
 * Size above which bodies that end simultaneously are processed one per event loop turn, because checking and parsing
 * each takes some milliseconds.
 */
const longBytes = 64 * 1024;

const givenUp = () =>
  new AppError(
    'unavailable',
    'too many request bodies are arriving, and there is no memory left for this one; send it again',
    {
      retryAfterS: 5,
    },
  );

/**
 * Reads the whole body of a request, and counts its memory as it arrives. If the body is too large, the remainder is
 * discarded instead of left unread, because a client that is still sending would see a broken connection instead of the
 * error. `held` reserves the memory, and is absent if the number of bodies is limited. The memory is freed when `gone`
 * is aborted.
 * @throws AppError tooLarge after more than `limitBytes` or too many chunks; invalid if the connection breaks;
 * unavailable if there is no memory left; the reason of `gone`
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  { held, gone }: { held?: Held; gone?: AbortSignal },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The client may have disconnected while the headers were checked. No event follows then.
    if (request.destroyed) {
      reject(ended());
      return;
    }
    let chunks: Buffer[] = [];
    let size = 0;
    let pieces = 0;
    let isRefused = false;
    const refuse = (why: unknown) => {
      isRefused = true;
      chunks = [];
      held?.end();
      reject(why);
    };
    gone?.addEventListener('abort', () => refuse(gone.reason));
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      pieces++;
      if (!isRefused && size > limitBytes) refuse(tooLarge(limitBytes));
      if (!isRefused && pieces > maxPieces)
        refuse(new AppError('tooLarge', `the body was sent in more than ${maxPieces} chunks`));
      if (!isRefused) {
        // A growing empty array allocates space for more than the one chunk that nearly every body has.
        if (pieces === 1) chunks = [chunk];
        else chunks.push(chunk);
        const bytes = size + pieces * pieceBytes;
        if (held && bytes > uncountedBytes && !held.add(bytes - held.bytes)) refuse(givenUp());
      } else if (size > drainOfCaller.bytes || pieces > drainOfCaller.pieces) request.destroy();
    });
    request.on('end', () => {
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      if (size > longBytes && !isRefused) void nextTurn().then(() => resolve(body));
      else resolve(body);
    });
    request.on('error', () => reject(ended()));
  });
}

function tooLarge(limitBytes: number): AppError {
  return new AppError('tooLarge', `the body is larger than ${limitBytes} bytes`);
}

function encoded(coding: string): string {
  return `the body has the Content-Encoding ${JSON.stringify(coding.slice(0, 100))}, which is not supported; send it uncompressed, without that header`;
}

/** Rejects a body by its headers, before any of it is read. @throws AppError encoded, tooLarge */
export function checkBodyHeaders({ headers }: IncomingMessage, limitBytes: number): void {
  const coding = headers['content-encoding'];
  if (coding !== undefined && !/^(?:identity)?$/i.test(coding)) throw new AppError('encoded', encoded(coding));
  if (Number(headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
}

/** Returns true if a request has a body (RFC 9112, 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}

/** Time that a response waits for the first bytes of a body. */
const startMs = 1000;

/**
 * Reads the first bytes of a rejected request's body: at least `limitBytes` if they arrive within a second. The
 * remainder is discarded within limits. Never rejects.
 */
export function readStart(
  request: IncomingMessage,
  limitBytes: number,
  most: Drain,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (isWhole: boolean) => {
      cancel();
      resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), isWhole });
    };
    const cancel = afterRunning(startMs, () => finish(false));
    if (request.destroyed || !hasBody(request)) {
      finish(!request.destroyed);
      return;
    }
    request.on('data', (chunk: Buffer) => {
      if (size >= limitBytes) return;
      size += chunk.length;
      chunks.push(chunk);
      if (size >= limitBytes) finish(false);
    });
    request.on('end', () => finish(true));
    discardBody(request, most);
  });
}

/**
 * Reads and discards an unwanted body, so that the client receives its response and the connection can be reused. The
 * connection is closed if the body exceeds the limits.
 */
export function discardBody(request: IncomingMessage, most: Drain): void {
  if (request.destroyed || !hasBody(request)) return;
  let size = 0;
  let pieces = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    pieces++;
    if (size > most.bytes || pieces > most.pieces) request.destroy();
  });
  // The connection broke, so nothing is left to read.
  request.on('error', () => undefined);
  // Starts immediately. Once the response is written, Node itself would read an unread body without limits.
  request.read();
}
