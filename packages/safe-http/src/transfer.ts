import { Buffer } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { OutboundError } from '@toolhost/errors/errors';
import { takeSlab } from '@toolhost/limits/slabs';
import type { Connection } from './connection.ts';
import type { Connections, Pool } from './connections.ts';
import type { Deadline, Deadlines } from './deadlines.ts';
import { createOversizeError, type DecodeOnThread, decodeBody } from './decode.ts';
import type { Exchange, ReservedMemory, UpstreamResponse } from './exchange.ts';
import { describeHost, toOutboundError } from './failure.ts';
import type { OnEnd } from './http-client.ts';
import type { ResponseHandler } from './response-reader.ts';

/** Dependencies that all transfers of a client share. */
export type TransferDeps = {
  connections: Connections;
  deadlines: Deadlines;
  decodeOnThread: DecodeOnThread;
  memory: { reserve(workspaceId: string): ReservedMemory } | undefined;
};

const emptyBuffer = Buffer.alloc(0);
/** Bytes of a response that are not counted, so that an ordinary one has no accounting cost. */
const uncountedBytes = 16 * 1024;
/** Maximum Content-Length for which the whole body is allocated before it arrives. */
const maxPreallocatedBytes = 64 * 1024;

/**
 * Free body chunks of a response. Each chunk costs memory and time regardless of its size, and so does an interim
 * response. Beyond this number, chunks must have `minAverageChunkBytes` on average, less than a row of any usual
 * stream.
 */
const freeChunks = 10_000;
const minAverageChunkBytes = 100;
const maxInterimResponses = 100;
/**
 * Maximum bytes of a response's header lines, and of the bytes around its body such as trailers and chunk extensions.
 */
const maxHeaderBytes = 64 * 1024;
/** Allowance for the chunk header of each body chunk. */
const chunkOverheadBytes = 16;

/**
 * A request and its response, within a deadline and limits. The request is sent only once, because only its sender
 * knows if it may be repeated.
 */
export class Transfer implements ResponseHandler, Deadline {
  readonly exchange: Exchange;
  /** Connection of the transfer, which is closed if the transfer fails. */
  connection: Connection | undefined;
  /** Pool that it waits in while it has no connection. */
  waitingPool: Pool | undefined;
  /** True if it has ended, which is possible even before it starts. */
  isSettled = false;
  expiresAt = 0;
  deadlineIndex = -1;
  pausedMsAtStart = 0;
  readonly #deps: TransferDeps;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (error: Error) => void;
  readonly #onEnd: OnEnd | undefined;
  #reservation: ReservedMemory | undefined;
  #countedBytes = 0;
  /** Memory for the whole body, if its length is known and small. */
  #body: Buffer | undefined;
  #chunks: Buffer[] | undefined;
  #chunkCount = 0;
  /** Receives the chunks if the sender reads them as they arrive. */
  #onChunk: ((chunk: Buffer) => void) | undefined;
  #bodyBytes = 0;
  #receivedBytes = 0;
  #status = 0;
  #statusText = '';
  #headers: IncomingHttpHeaders | undefined;
  #interimResponses = 0;

  /** `resolve` or `reject` is called once. */
  constructor(
    exchange: Exchange,
    deps: TransferDeps,
    resolve: (response: UpstreamResponse) => void,
    reject: (error: Error) => void,
    onEnd: OnEnd | undefined,
  ) {
    this.exchange = exchange;
    this.#onEnd = onEnd;
    this.#deps = deps;
    this.#resolve = resolve;
    this.#reject = reject;
    deps.deadlines.add(this, exchange.timeoutMs);
    exchange.registerCancel?.(() => this.fail(new OutboundError('cancelled', 'the client disconnected')));
  }

  /**
   * Checks bytes before they are read, because a few bytes of a header, trailer, or chunk cost as much as many bytes of
   * a body. Returns false if the transfer has ended.
   */
  receive(bytes: number): boolean {
    const overheadBytes = this.#receivedBytes - this.#bodyBytes;
    this.#receivedBytes += bytes;
    if (overheadBytes > maxHeaderBytes && overheadBytes > maxHeaderBytes + this.#chunkCount * chunkOverheadBytes) {
      this.fail(createTooManyError('bytes around its body'));
    }
    return !this.isSettled;
  }

  onHead(status: number, statusText: string, headers: IncomingHttpHeaders, bodyLength: number | undefined): void {
    if (status < 200) {
      if (++this.#interimResponses > maxInterimResponses) this.fail(createTooManyError('interim responses'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    if (this.#receivedBytes > maxHeaderBytes && getHeaderSize(headers) > maxHeaderBytes)
      this.fail(createTooManyError('header bytes'));
    const { limitBytes, onHead } = this.exchange;
    if (bodyLength !== undefined && bodyLength > limitBytes) this.fail(createOversizeError(limitBytes));
    if (this.isSettled) return;
    if (onHead && headers['content-encoding'] === undefined) this.#onChunk = onHead({ status, statusText, headers });
    else if (bodyLength !== undefined && bodyLength <= maxPreallocatedBytes) this.#body = takeSlab(bodyLength);
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    if (this.#body) bytes.copy(this.#body, this.#bodyBytes, start, end);
    else {
      const chunk = Buffer.allocUnsafe(end - start);
      bytes.copy(chunk, 0, start, end);
      // A growing empty array allocates space for more than the one chunk of most bodies.
      if (this.#onChunk) this.#onChunk(chunk);
      else if (this.#chunks) this.#chunks.push(chunk);
      else this.#chunks = [chunk];
    }
    this.#bodyBytes += end - start;
    this.#chunkCount++;
    const { limitBytes } = this.exchange;
    if (this.#bodyBytes > limitBytes) this.fail(createOversizeError(limitBytes));
    else if (this.#chunkCount > freeChunks + this.#bodyBytes / minAverageChunkBytes)
      this.fail(createTooManyError('body chunks'));
    else if (this.#bodyBytes > uncountedBytes && !this.#reserve()) this.fail(createNoMemoryError());
  }

  /** Reserves memory for the body bytes that have arrived. Returns false if there is not enough. */
  #reserve(): boolean {
    const { reservation, workspaceId } = this.exchange;
    this.#reservation ??= reservation ?? this.#deps.memory?.reserve(workspaceId);
    if (!this.#reservation) return true;
    if (!this.#reservation.grow(this.#bodyBytes - this.#countedBytes)) return false;
    this.#countedBytes = this.#bodyBytes;
    return true;
  }

  /** Ends the transfer with the complete response. `isReusable` is true if its connection may carry another request. */
  succeed(isReusable: boolean): void {
    if (!this.#settle()) return;
    this.#deps.connections.checkIn(this.connection as Connection, isReusable);
    const headers = this.#headers as IncomingHttpHeaders;
    const body = this.#body ?? (this.#chunks ? Buffer.concat(this.#chunks) : emptyBuffer);
    const response = { status: this.#status, statusText: this.#statusText, headers, body };
    // Most upstreams do not compress, as requested.
    if (headers['content-encoding'] !== undefined) void this.#decode(response);
    else this.#deliver(response);
  }

  #deliver(response: UpstreamResponse): void {
    this.#onEnd?.(response.status);
    this.#resolve(response);
  }

  async #decode(response: UpstreamResponse): Promise<void> {
    try {
      const body = await decodeBody(response, this.exchange, this.#deps.decodeOnThread);
      // The additional size counts too: 12 KB of gzip can contain 10 MB.
      const additionalBytes = Math.max(0, body.length - this.#countedBytes);
      if (body.length > uncountedBytes && this.exchange.reservation?.grow(additionalBytes) === false)
        throw createNoMemoryError();
      this.#deliver({ ...response, body });
    } catch (error) {
      this.#onEnd?.(error as Error);
      this.#reject(error as Error);
    }
  }

  /** Ends the transfer because its connection was lost, could not be established, or carried something else. */
  onConnectionError(error: Error): void {
    const failure = toOutboundError(error, this.exchange.origin);
    if (isConnectionLoss(failure) && this.#deps.deadlines.wasPausedSince(this)) this.fail(createPausedError());
    else this.fail(failure.reason === 'reset' && this.#receivedBytes > 0 ? createTruncatedError() : failure);
  }

  /** Called by the deadlines. */
  expire(): void {
    this.fail(createTimeoutError(this.exchange));
  }

  /** Ends the transfer and its connection, which would still carry the remainder of an unwanted response. */
  fail(error: OutboundError): void {
    if (!this.#settle()) return;
    const queueIndex = this.waitingPool?.waiting.indexOf(this) ?? -1;
    if (this.connection) this.#deps.connections.discard(this.connection);
    else if (queueIndex >= 0) this.waitingPool?.waiting.splice(queueIndex, 1);
    this.#onEnd?.(error);
    this.#reject(error);
  }

  /** Marks the transfer as ended. Returns false if it had ended before. */
  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#deps.deadlines.remove(this);
    // The reservation of the exchange belongs to the sender, which knows how long it is needed.
    if (!this.exchange.reservation) this.#reservation?.release();
    return true;
  }
}

function getHeaderSize(headers: IncomingHttpHeaders): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
}

function createTimeoutError({ timeoutMs, origin }: Exchange): OutboundError {
  return new OutboundError(
    'timeout',
    `upstream did not answer within ${timeoutMs} ms`,
    `${describeHost(origin)} did not respond within ${timeoutMs / 1000} s`,
  );
}

function isConnectionLoss({ reason }: OutboundError): boolean {
  return reason === 'reset' || reason === 'unreachable' || reason === 'truncated';
}

/** Returns the error for a connection that the upstream or the network dropped while this process was paused. */
function createPausedError(): OutboundError {
  return new OutboundError(
    'stopped',
    'this service was paused during the call, and the connection to the upstream was lost; try again',
  );
}

/**
 * Returns the error for a transfer that was ended to free memory for others. The request may have been sent and may
 * have taken effect.
 */
function createNoMemoryError(): OutboundError {
  return new OutboundError(
    'no_memory',
    'the call was ended, because the service has no memory left for its response and the workspaces of this owner have used their share; the upstream may have executed the request, so check that before you try again with fewer parallel large calls',
  );
}

function createTooManyError(item: string): OutboundError {
  return new OutboundError('malformed', `the upstream responded with too many ${item}`);
}

/** Returns the error for a response that had started, so the upstream had handled the request. */
function createTruncatedError(): OutboundError {
  return new OutboundError('truncated', 'the upstream closed the connection before the end of its response');
}
