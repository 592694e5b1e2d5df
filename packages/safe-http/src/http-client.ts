import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import { OutboundError } from '@toolhost/errors/errors';
import type { Dispatcher } from 'undici';
import type { BlockedClass } from './address.ts';
import type { Connection } from './connection.ts';
import { Connections, type CreateCache, type Pool } from './connections.ts';
import { createOversizeError, type DecodeOnThread, decodeBody } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { EgressProxy } from './egress-proxy.ts';
import type { Exchange, ReservedMemory, UpstreamResponse } from './exchange.ts';
import { toOutboundError } from './failure.ts';
import type { GetResolver } from './lookups.ts';

export type { Exchange, UpstreamResponse } from './exchange.ts';

/** Only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, and reused connections. */
export type HttpClient = {
  /** Sends a request. Fails only by rejecting. @throws OutboundError */
  send(exchange: Exchange): Promise<UpstreamResponse>;
  /** Returns the number of connection pools in use. */
  getPoolCount(): number;
  /**
   * Returns totals of all pools: open connections, requests on them, requests that wait for one, and connections that
   * were closed because of unsolicited bytes.
   */
  getLoad(): { connections: number; running: number; waiting: number; unsolicited: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  /** Proxy for all destinations that `allow` does not name, if there is one. */
  proxy?: EgressProxy | undefined;
  getResolver: GetResolver;
  decodeOnThread: DecodeOnThread;
  createCache: CreateCache;
  /** Returns the tenant that the connections of a workspace are counted for. */
  getTenant: (workspaceId: string) => string;
  /**
   * Returns true if a request must not be sent because it contains a credential of this service, regardless of its
   * source. Every finished request is checked here, which covers everything that the rules for arguments or
   * configurations miss.
   */
  containsOwnCredential: (exchange: Exchange) => boolean | Promise<boolean>;
  /** Name of the header that marks every request, so that a request that loops back to this service is rejected. */
  hopHeader: string;
  /** Monotonic ms. Determines how long connections are kept. */
  clock?: () => number;
  /** Receives the class of each rejected address. */
  onBlocked?: (blockedClass: BlockedClass) => void;
  /** Reports an upstream that sent unsolicited bytes. */
  onUnsolicited?: (workspaceId: string, origin: string) => void;
  /** Memory budget for responses of exchanges without a reservation. If absent, they are not counted. */
  memory?: { reserve(workspaceId: string): ReservedMemory };
  /** Maximum connections of the process. Defaults to a few thousand. */
  maxConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const connections = new Connections(options);
  const { decodeOnThread, memory } = options;
  const deps: TransferDeps = { connections, deadlines: new Deadlines(), decodeOnThread, memory };
  async function sendAfterSearch(exchange: Exchange, isWithheld: true | Promise<boolean>): Promise<UpstreamResponse> {
    if (await isWithheld) throw new OutboundError('own_credential', ownCredentialMessage);
    return new Promise((resolve, reject) => connections.start(new Transfer(exchange, deps, resolve, reject)));
  }
  return {
    send(exchange) {
      const isWithheld = options.containsOwnCredential(exchange);
      if (isWithheld !== false) return sendAfterSearch(exchange, isWithheld);
      return new Promise((resolve, reject) => connections.start(new Transfer(exchange, deps, resolve, reject)));
    },
    getPoolCount: () => connections.load.pools,
    getLoad: () => connections.load,
    close: () => connections.close(),
  };
}

const ownCredentialMessage =
  'the request contains an API key or a token of this service, which is never sent to an upstream; replace it at its source: an argument, a stored credential, or the login token';

/** Dependencies that all transfers of a client share. */
type TransferDeps = {
  connections: Connections;
  deadlines: Deadlines;
  decodeOnThread: DecodeOnThread;
  memory: OutboundOptions['memory'];
};

const emptyBuffer = Buffer.alloc(0);
/** Bytes of a response that are not counted, so that an ordinary one has no accounting cost. */
const uncountedBytes = 16 * 1024;

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
 * A request and its response, as undici reports it, within a deadline and limits. The request is sent only once,
 * because only its sender knows if it may be repeated.
 */
export class Transfer implements Dispatcher.DispatchHandler {
  readonly exchange: Exchange;
  /** Connection of the transfer, which is closed if the transfer fails. */
  connection: Connection | undefined;
  /** Pool that it waits in while it has no connection. */
  waitingPool: Pool | undefined;
  /** True if it has ended, which is possible even before it starts. */
  isSettled = false;
  readonly #deps: TransferDeps;
  readonly #resolve: (response: UpstreamResponse | Promise<UpstreamResponse>) => void;
  readonly #reject: (error: OutboundError) => void;
  readonly #deadline: Deadline;
  #reservation: ReservedMemory | undefined;
  #countedBytes = 0;
  #chunks: Buffer[] = [];
  #chunkCount = 0;
  /** Receives the chunks if the sender reads them as they arrive. */
  #onChunk: ((chunk: Buffer) => void) | undefined;
  #bodyBytes = 0;
  #receivedBytes = 0;
  #status = 0;
  #statusText = '';
  #headers: IncomingHttpHeaders = {};
  #interimResponses = 0;

  /** `resolve` or `reject` is called once. */
  constructor(
    exchange: Exchange,
    deps: TransferDeps,
    resolve: (response: UpstreamResponse | Promise<UpstreamResponse>) => void,
    reject: (error: OutboundError) => void,
  ) {
    this.exchange = exchange;
    this.#deps = deps;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = deps.deadlines.add(exchange.timeoutMs, () => this.fail(createTimeoutError(exchange.timeoutMs)));
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

  onRequestStart(): void {
    if (this.connection) this.connection.isRequestSent = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText = '',
  ): void {
    if (status < 200) {
      if (++this.#interimResponses > maxInterimResponses) this.fail(createTooManyError('interim responses'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    if (this.#receivedBytes > maxHeaderBytes && getHeaderSize(headers) > maxHeaderBytes)
      this.fail(createTooManyError('header bytes'));
    const { limitBytes, method } = this.exchange;
    // In the response to a HEAD request, this is the length of a body that is not sent (RFC 9110, 9.3.2).
    if (method !== 'HEAD' && Number(headers['content-length']) > limitBytes) this.fail(createOversizeError(limitBytes));
    if (this.exchange.onHead && headers['content-encoding'] === undefined && !this.isSettled)
      this.#onChunk = this.exchange.onHead({ status, statusText, headers });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    this.#chunkCount++;
    // A growing empty array allocates space for more than the one chunk of most bodies.
    if (this.#onChunk) this.#onChunk(chunk);
    else if (this.#chunks.length > 0) this.#chunks.push(chunk);
    else this.#chunks = [chunk];
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

  onResponseEnd(): void {
    if (!this.#settle()) return;
    this.#deps.connections.checkIn(this.connection as Connection);
    const chunks = this.#chunks;
    const body = chunks.length > 1 ? Buffer.concat(chunks) : (chunks[0] ?? emptyBuffer);
    const response = { status: this.#status, statusText: this.#statusText, headers: this.#headers, body };
    // Most upstreams do not compress, as requested.
    this.#resolve(this.#headers['content-encoding'] === undefined ? response : this.#decode(response));
  }

  async #decode(response: UpstreamResponse): Promise<UpstreamResponse> {
    const body = await decodeBody(response, this.exchange, this.#deps.decodeOnThread);
    // The additional size counts too: 12 KB of gzip can contain 10 MB.
    const additionalBytes = Math.max(0, body.length - this.#countedBytes);
    if (body.length > uncountedBytes && this.exchange.reservation?.grow(additionalBytes) === false)
      throw createNoMemoryError();
    return { ...response, body };
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const failure = toOutboundError(error, this.exchange.origin);
    if (isConnectionLoss(failure) && this.#deps.deadlines.wasPausedSince(this.#deadline))
      this.fail(createPausedError());
    else this.fail(failure.reason === 'reset' && this.#receivedBytes > 0 ? createTruncatedError() : failure);
  }

  /** Ends the transfer and its connection, which would still carry the remainder of an unwanted response. */
  fail(error: OutboundError): void {
    if (!this.#settle()) return;
    const queueIndex = this.waitingPool?.waiting.indexOf(this) ?? -1;
    if (this.connection) this.#deps.connections.discard(this.connection);
    else if (queueIndex >= 0) this.waitingPool?.waiting.splice(queueIndex, 1);
    this.#reject(error);
  }

  /** Marks the transfer as ended. Returns false if it had ended before. */
  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#deps.deadlines.remove(this.#deadline);
    // The reservation of the exchange belongs to the sender, which knows how long it is needed.
    if (!this.exchange.reservation) this.#reservation?.release();
    return true;
  }
}

function getHeaderSize(headers: IncomingHttpHeaders): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
}

function createTimeoutError(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `upstream did not answer within ${timeoutMs} ms`);
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

/** A function that runs when its time is over, unless it is removed first. */
type Deadline = {
  /** In ms of the deadline clock, which omits pauses. */
  until: number;
  expire: () => void;
  /** Index in the array of pending deadlines; −1 if it is not pending. */
  index: number;
  /** Total time that the process had been paused when the deadline was added, in ms. */
  stoppedMs: number;
};

/** Interval of the deadline timer. A passed deadline expires at the second tick after it. */
const tickMs = 20;
/** Timer delay above which the process counts as paused. */
const pauseThresholdMs = 500;

/**
 * Deadlines on one shared timer, which runs only while there are some. A timer per call costs more than the rest of its
 * bookkeeping. Time in which the process was paused (SIGSTOP, a machine without CPU time, a long garbage collection)
 * does not count: the upstream may have responded, but the process could not read it.
 */
class Deadlines {
  /**
   * An array, because the tables that a Set discards as it grows still refer to its items and to the next table. Nearly
   * every call would survive into the old generation, and the whole heap would be collected several times as often.
   */
  readonly #pending: Deadline[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lastTickAt = 0;
  #pausedMs = 0;

  add(ms: number, expire: () => void): Deadline {
    const now = performance.now();
    if (this.#timer === undefined) {
      this.#lastTickAt = now;
      this.#timer = setInterval(() => this.#tick(), tickMs);
    }
    this.#recordPause(now);
    const until = now - this.#pausedMs + ms;
    const deadline = { until, expire, index: this.#pending.length, stoppedMs: this.#pausedMs };
    this.#pending.push(deadline);
    return deadline;
  }

  remove(deadline: Deadline): void {
    if (deadline.index < 0) return;
    const lastDeadline = this.#pending.pop() as Deadline;
    if (lastDeadline !== deadline) {
      this.#pending[deadline.index] = lastDeadline;
      lastDeadline.index = deadline.index;
    }
    deadline.index = -1;
  }

  /** Returns true if the process was paused since a pending deadline was added. */
  wasPausedSince({ stoppedMs }: Deadline): boolean {
    this.#recordPause(performance.now());
    return this.#pausedMs > stoppedMs;
  }

  #recordPause(now: number): void {
    if (this.#timer === undefined || now - this.#lastTickAt <= pauseThresholdMs) return;
    // Subtracts a normal tick, so that time advances even if one pause follows another.
    this.#pausedMs += now - this.#lastTickAt - tickMs;
    this.#lastTickAt = now;
  }

  #tick(): void {
    // A deadline that passed since the last tick waits for the next one, so that bytes that arrived in time while the
    // process was busy are read first.
    const previousTick = this.#lastTickAt - this.#pausedMs;
    const now = performance.now();
    this.#recordPause(now);
    this.#lastTickAt = now;
    for (const deadline of this.#pending.filter(({ until }) => until <= previousTick)) {
      this.remove(deadline);
      deadline.expire();
    }
    if (this.#pending.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
