import type { IncomingMessage } from 'node:http';
import { AppError } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { type MemoryReservation, minCountedBytes } from '@toolhost/limits/memory-budget';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { NodeRequest } from './node-http.ts';

/**
 * A request whose body can be received chunk by chunk as the parser finds it, without the buffer, the events, and the
 * ticks of a stream, which cost more than the body of a call.
 */
export class BodyRequest extends NodeRequest {
  /** Receives the chunks of the body, and null at its end. */
  declare onChunk?: ((chunk: Buffer | null) => void) | undefined;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.onChunk === undefined) return super.push(chunk, encoding);
    this.onChunk(chunk);
    if (chunk !== null) return true;
    // Ends the stream too. Otherwise Node would refer to the request, and so to its body, until the next one.
    this.onChunk = undefined;
    return super.push(null);
  }
}

/** Limits for reading a body without storing it. The connection of a client that sends more is closed. */
export type DiscardLimits = { bytes: number; chunks: number };

/**
 * Maximum chunks of a body. Every chunk costs time and memory regardless of its size, and no well-behaved client sends
 * a few bytes at a time.
 */
const maxChunks = 16_384;
/** Limits for requests of authorized callers. */
export const callerDiscardLimits: DiscardLimits = { bytes: 16 * 1024 * 1024, chunks: 2 * maxChunks };
/** Limits for rejected requests: as many bytes as a valid one may have, in chunks of packet size. */
export const rejectedDiscardLimits: DiscardLimits = { bytes: 1024 * 1024, chunks: 2048 };

const createEndedError = () => new AppError('invalid', 'the request ended before its body was complete');

/** Memory of a chunk in addition to its bytes, in bytes. */
export const chunkOverheadBytes = 256;
/**
 * Size above which bodies that end simultaneously are processed one per event loop turn, because checking and parsing
 * each takes some milliseconds.
 */
const longBytes = 64 * 1024;

/** Creates the error for a body that is shed, which means refused to save memory. */
const createShedError = () =>
  new AppError(
    'unavailable',
    'too many request bodies are arriving, and there is no memory left for this one; send it again',
    { retryAfterS: 5 },
  );

/**
 * Reads the whole body of a request, and counts its memory as it arrives. If the body is too large, the remainder is
 * discarded instead of left unread, because a client that is still sending would see a broken connection instead of the
 * error. `reservation` reserves the memory, and is absent if the number of bodies is limited. When `signal` is aborted,
 * the memory is freed.
 * @throws AppError tooLarge after more than `limitBytes` or too many chunks; invalid if the connection breaks;
 * unavailable if there is no memory left; the reason of `signal`
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  { reservation, signal }: { reservation?: MemoryReservation; signal?: AbortSignal },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The client may have disconnected while the headers were checked. No event follows then.
    if (request.destroyed) {
      reject(createEndedError());
      return;
    }
    let chunks: Buffer[] = [];
    let size = 0;
    let chunkCount = 0;
    let isRejected = false;
    const rejectBody = (reason: unknown) => {
      isRejected = true;
      chunks = [];
      reservation?.release();
      reject(reason);
      if (!(request instanceof BodyRequest && request.onChunk)) return;
      // Once the response is written, Node would read the rest without limits, unless a stream is being read.
      request.onChunk = undefined;
      request.on('data', onChunk);
    };
    signal?.addEventListener('abort', () => rejectBody(signal.reason));
    const onEnd = () => {
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      if (size > longBytes && !isRejected) void yieldToEventLoop().then(() => resolve(body));
      else resolve(body);
    };
    const onChunk = (chunk: Buffer | null) => {
      if (chunk === null) return onEnd();
      size += chunk.length;
      chunkCount++;
      if (!isRejected && size > limitBytes) rejectBody(createTooLargeError(limitBytes));
      if (!isRejected && chunkCount > maxChunks)
        rejectBody(new AppError('tooLarge', `the body was sent in more than ${maxChunks} chunks`));
      if (!isRejected) {
        // Nearly every body is one chunk. Pushing to an empty array would reserve space for more.
        if (chunkCount === 1) chunks = [chunk];
        else chunks.push(chunk);
        const bytes = size + chunkCount * chunkOverheadBytes;
        if (reservation && bytes > minCountedBytes && !reservation.grow(bytes - reservation.bytes))
          rejectBody(createShedError());
      } else if (size > callerDiscardLimits.bytes || chunkCount > callerDiscardLimits.chunks) request.destroy();
    };
    request.on('error', () => reject(createEndedError()));
    if (request instanceof BodyRequest && !request.complete && request.readableLength === 0) request.onChunk = onChunk;
    // A part of the body has arrived already, because authorization took some time.
    else request.on('data', onChunk).on('end', onEnd);
  });
}

function createTooLargeError(limitBytes: number): AppError {
  return new AppError('tooLarge', `the body is larger than ${limitBytes} bytes`);
}

function formatEncodedMessage(coding: string): string {
  return `the body has the Content-Encoding ${JSON.stringify(coding.slice(0, 100))}, which is not supported; send it uncompressed, without that header`;
}

/** Rejects a body by its headers, before any of it is read. @throws AppError encoded, tooLarge */
export function checkBodyHeaders({ headers }: IncomingMessage, limitBytes: number): void {
  const coding = headers['content-encoding'];
  if (coding !== undefined && !/^(?:identity)?$/i.test(coding))
    throw new AppError('encoded', formatEncodedMessage(coding));
  if (Number(headers['content-length'] ?? 0) > limitBytes) throw createTooLargeError(limitBytes);
}

/** Returns true if a request has a body (RFC 9112, 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}

/** Time that a response waits for the first bytes of a body, in ms. */
const startTimeoutMs = 1000;

/**
 * Reads the first bytes of a rejected request's body: at least `limitBytes` if they arrive within a second. The
 * remainder is discarded within limits. Never rejects.
 */
export function readStart(
  request: IncomingMessage,
  limitBytes: number,
  limits: DiscardLimits,
): Promise<{ bytes: Buffer; isComplete: boolean }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (isComplete: boolean) => {
      cancel();
      resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), isComplete });
    };
    const cancel = setRunningTimeout(startTimeoutMs, () => finish(false));
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
    discardBody(request, limits);
  });
}

/**
 * Reads and discards an unwanted body, so that the client receives its response and the connection can be reused. The
 * connection is closed if the body exceeds the limits.
 */
export function discardBody(request: IncomingMessage, limits: DiscardLimits): void {
  if (request.destroyed || !hasBody(request)) return;
  let size = 0;
  let chunkCount = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    chunkCount++;
    if (size > limits.bytes || chunkCount > limits.chunks) request.destroy();
  });
  // The connection broke, so nothing is left to read.
  request.on('error', () => undefined);
  // Starts immediately. Once the response is written, Node itself would read an unread body without limits.
  request.read();
}
