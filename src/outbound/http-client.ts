import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';
import { OutboundError } from '../errors.ts';
import type { BlockedClass } from './address.ts';
import type { Connection } from './connection.ts';
import { Connections, type MakeMemory, type Pool } from './connections.ts';
import { type DecodeOnThread, decodeBody, oversize } from './decode.ts';
import type { EgressAllow } from './egress.ts';
import type { EgressProxy } from './egress-proxy.ts';
import type { Answer, Exchange, HeldMemory } from './exchange.ts';
import { toOutboundError } from './failure.ts';
import type { LookupsOf } from './lookups.ts';

export type { Answer, Exchange } from './exchange.ts';

/** Only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, and reused connections. */
export type HttpClient = {
  /** Sends a request. Fails only by rejecting. @throws OutboundError */
  send(exchange: Exchange): Promise<Answer>;
  /** Returns the number of connection pools in use. */
  poolCount(): number;
  /**
   * Returns totals of all pools: open connections, requests on them, requests that wait for one, and connections that
   * were closed because of unsolicited bytes.
   */
  load(): { connections: number; running: number; waiting: number; unasked: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  /** Proxy for all destinations that `allow` does not name, if there is one. */
  proxy?: EgressProxy | undefined;
  lookupsOf: LookupsOf;
  decodeOnThread: DecodeOnThread;
  createMemory: MakeMemory;
  /** Returns the tenant that the connections of a workspace are counted for. */
  tenantOf: (workspaceId: string) => string;
  /**
   * Returns true if a request must not be sent because it contains a credential of this service, regardless of its
   * source. Every finished request is checked here, which covers everything that the rules for arguments or
   * configurations miss.
   */
  isWithheld: (exchange: Exchange) => boolean | Promise<boolean>;
  /** Name of the header that marks every request, so that a request that loops back to this service is rejected. */
  hopHeader: string;
  /** Monotonic ms. Determines how long connections are kept. */
  clock?: () => number;
  /** Receives the class of each rejected address. */
  onBlocked?: (of: BlockedClass) => void;
  /** Reports an upstream that sent unsolicited bytes. */
  onUnasked?: (workspaceId: string, origin: string) => void;
  /** Memory budget for responses of exchanges without a reservation. If absent, they are not counted. */
  memory?: { hold(workspaceId: string): HeldMemory };
  /** Maximum connections of the process. Defaults to a few thousand. */
  mostConnections?: number;
};

export function createHttpClient(options: OutboundOptions): HttpClient {
  const connections = new Connections(options);
  const { decodeOnThread, memory } = options;
  const parts: TransferParts = { connections, deadlines: new Deadlines(), decodeOnThread, memory };
  async function sendSearched(exchange: Exchange, found: true | Promise<boolean>): Promise<Answer> {
    if (await found) throw new OutboundError('own_credential', ownCredential);
    return new Promise((resolve, reject) => connections.begin(new Transfer(exchange, parts, resolve, reject)));
  }
  return {
    send(exchange) {
      const found = options.isWithheld(exchange);
      if (found !== false) return sendSearched(exchange, found);
      return new Promise((resolve, reject) => connections.begin(new Transfer(exchange, parts, resolve, reject)));
    },
    poolCount: () => connections.counts.pools,
    load: () => connections.counts,
    close: () => connections.close(),
  };
}

const ownCredential =
  'the request contains an API key or a token of this service, which is never sent to an upstream; replace it at its source: an argument, a stored credential, or the login token';

/** Dependencies that all transfers of a client share. */
type TransferParts = {
  connections: Connections;
  deadlines: Deadlines;
  decodeOnThread: DecodeOnThread;
  memory: OutboundOptions['memory'];
};

const nothing = Buffer.alloc(0);
/** Bytes of a response that are not counted, so that an ordinary one has no accounting cost. */
const uncounted = 16 * 1024;

/**
 * Free body chunks of a response. Each chunk costs memory and time regardless of its size, and so does an interim
 * response. Beyond this number, chunks must have `pieceBytes` on average, which is less than a row of any regular
 * stream.
 */
const freePieces = 10_000;
const pieceBytes = 100;
const maxInterimAnswers = 100;
/**
 * Maximum bytes of a response's header lines, and of the bytes around its body such as trailers and chunk extensions.
 */
const maxHeaderBytes = 64 * 1024;
/** Allowance for the chunk header of each body chunk. */
const aroundPieceBytes = 16;

/**
 * A request and its response, as undici reports it, within a deadline and limits. The request is sent only once,
 * because only its sender knows if it may be repeated.
 */
export class Transfer implements Dispatcher.DispatchHandler {
  readonly exchange: Exchange;
  /** Connection of the transfer, which is closed if the transfer fails. */
  connection: Connection | undefined;
  /** Pool that it waits in while it has no connection. */
  waitsIn: Pool | undefined;
  /** True if it has ended, which is possible even before it starts. */
  isSettled = false;
  readonly #parts: TransferParts;
  readonly #resolve: (answer: Answer | Promise<Answer>) => void;
  readonly #reject: (error: OutboundError) => void;
  readonly #deadline: Deadline;
  #held: HeldMemory | undefined;
  #counted = 0;
  #pieces: Buffer[] = [];
  #pieceCount = 0;
  /** Receives the chunks if the sender reads them as they arrive. */
  #onPiece: ((piece: Buffer) => void) | undefined;
  #bytes = 0;
  #arrived = 0;
  #status = 0;
  #statusText = '';
  #headers: IncomingHttpHeaders = {};
  #interimAnswers = 0;

  /** `resolve` or `reject` is called once. */
  constructor(
    exchange: Exchange,
    parts: TransferParts,
    resolve: (answer: Answer | Promise<Answer>) => void,
    reject: (error: OutboundError) => void,
  ) {
    this.exchange = exchange;
    this.#parts = parts;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = parts.deadlines.add(exchange.timeoutMs, () => this.fail(timedOut(exchange.timeoutMs)));
    exchange.onGone?.(() => this.fail(new OutboundError('cancelled', 'the client disconnected')));
  }

  /**
   * Checks bytes before they are read, because a few bytes of a header, trailer, or chunk cost as much as many bytes of
   * a body. Returns false if the transfer has ended.
   */
  mayArrive(bytes: number): boolean {
    const around = this.#arrived - this.#bytes;
    this.#arrived += bytes;
    if (around > maxHeaderBytes && around > maxHeaderBytes + this.#pieceCount * aroundPieceBytes) {
      this.fail(tooMany('bytes around its body'));
    }
    return !this.isSettled;
  }

  onRequestStart(): void {
    if (this.connection) this.connection.isAsked = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText = '',
  ): void {
    if (status < 200) {
      if (++this.#interimAnswers > maxInterimAnswers) this.fail(tooMany('interim responses'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    if (this.#arrived > maxHeaderBytes && sizeOf(headers) > maxHeaderBytes) this.fail(tooMany('header bytes'));
    const { limitBytes, method } = this.exchange;
    // In the response to a HEAD request, this is the length of a body that is not sent (RFC 9110, 9.3.2).
    if (method !== 'HEAD' && Number(headers['content-length']) > limitBytes) this.fail(oversize(limitBytes));
    if (this.exchange.onHead && headers['content-encoding'] === undefined && !this.isSettled)
      this.#onPiece = this.exchange.onHead({ status, statusText, headers });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#pieceCount++;
    // A growing empty array allocates space for more than the one chunk of most bodies.
    if (this.#onPiece) this.#onPiece(chunk);
    else if (this.#pieces.length > 0) this.#pieces.push(chunk);
    else this.#pieces = [chunk];
    const { limitBytes } = this.exchange;
    if (this.#bytes > limitBytes) this.fail(oversize(limitBytes));
    else if (this.#pieceCount > freePieces + this.#bytes / pieceBytes) this.fail(tooMany('body chunks'));
    else if (this.#bytes > uncounted && !this.#hold()) this.fail(noMemory());
  }

  /** Reserves memory for the body bytes that have arrived. Returns false if there is not enough. */
  #hold(): boolean {
    const { held, workspaceId } = this.exchange;
    this.#held ??= held ?? this.#parts.memory?.hold(workspaceId);
    if (!this.#held) return true;
    if (!this.#held.add(this.#bytes - this.#counted)) return false;
    this.#counted = this.#bytes;
    return true;
  }

  onResponseEnd(): void {
    if (!this.#settle()) return;
    this.#parts.connections.giveBack(this.connection as Connection);
    const pieces = this.#pieces;
    const body = pieces.length > 1 ? Buffer.concat(pieces) : (pieces[0] ?? nothing);
    const answer = { status: this.#status, statusText: this.#statusText, headers: this.#headers, body };
    // Most upstreams do not compress, as requested.
    this.#resolve(this.#headers['content-encoding'] === undefined ? answer : this.#decoded(answer));
  }

  async #decoded(answer: Answer): Promise<Answer> {
    const body = await decodeBody(answer, this.exchange, this.#parts.decodeOnThread);
    // The additional size counts too: 12 KB of gzip can contain 10 MB.
    const more = Math.max(0, body.length - this.#counted);
    if (body.length > uncounted && this.exchange.held?.add(more) === false) throw noMemory();
    return { ...answer, body };
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const failure = toOutboundError(error, this.exchange.origin);
    if (wasLost(failure) && this.#parts.deadlines.wasStoppedSince(this.#deadline)) this.fail(stopped());
    else this.fail(failure.reason === 'reset' && this.#arrived > 0 ? truncated() : failure);
  }

  /** Ends the transfer and its connection, which would still carry the remainder of an unwanted response. */
  fail(error: OutboundError): void {
    if (!this.#settle()) return;
    const place = this.waitsIn?.waiting.indexOf(this) ?? -1;
    if (this.connection) this.#parts.connections.discard(this.connection);
    else if (place >= 0) this.waitsIn?.waiting.splice(place, 1);
    this.#reject(error);
  }

  /** Marks the transfer as ended. Returns false if it had ended before. */
  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#parts.deadlines.remove(this.#deadline);
    // The reservation of the exchange belongs to the sender, which knows how long it is needed.
    if (!this.exchange.held) this.#held?.end();
    return true;
  }
}

function sizeOf(headers: IncomingHttpHeaders): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
}

function timedOut(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `upstream did not answer within ${timeoutMs} ms`);
}

function wasLost({ reason }: OutboundError): boolean {
  return reason === 'reset' || reason === 'unreachable' || reason === 'truncated';
}

/** Returns the error for a connection that the upstream or the network dropped while this process was paused. */
function stopped(): OutboundError {
  return new OutboundError(
    'stopped',
    'this service was paused during the call, and the connection to the upstream was lost; try again',
  );
}

/**
 * Returns the error for a transfer that was ended to free memory for others. The request may have been sent and may
 * have taken effect.
 */
function noMemory(): OutboundError {
  return new OutboundError(
    'no_memory',
    'the call was ended, because the service has no memory left for its response and the workspaces of this owner have used their share; the upstream may have executed the request, so check that before you try again with fewer parallel large calls',
  );
}

function tooMany(what: string): OutboundError {
  return new OutboundError('malformed', `the upstream responded with too many ${what}`);
}

/** Returns the error for a response that had started, so the upstream had handled the request. */
function truncated(): OutboundError {
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
const stopMs = 500;

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
  #lookedAt = 0;
  #stoppedMs = 0;

  add(ms: number, expire: () => void): Deadline {
    const at = performance.now();
    if (this.#timer === undefined) {
      this.#lookedAt = at;
      this.#timer = setInterval(() => this.#look(), tickMs);
    }
    this.#noteStop(at);
    const until = at - this.#stoppedMs + ms;
    const deadline = { until, expire, index: this.#pending.length, stoppedMs: this.#stoppedMs };
    this.#pending.push(deadline);
    return deadline;
  }

  remove(deadline: Deadline): void {
    if (deadline.index < 0) return;
    const last = this.#pending.pop() as Deadline;
    if (last !== deadline) {
      this.#pending[deadline.index] = last;
      last.index = deadline.index;
    }
    deadline.index = -1;
  }

  /** Returns true if the process was paused since a pending deadline was added. */
  wasStoppedSince({ stoppedMs }: Deadline): boolean {
    this.#noteStop(performance.now());
    return this.#stoppedMs > stoppedMs;
  }

  #noteStop(at: number): void {
    if (this.#timer === undefined || at - this.#lookedAt <= stopMs) return;
    // Subtracts a normal tick, so that time advances even if one pause follows another.
    this.#stoppedMs += at - this.#lookedAt - tickMs;
    this.#lookedAt = at;
  }

  #look(): void {
    // A deadline that passed since the last tick waits for the next one, so that bytes that arrived in time while the
    // process was busy are read first.
    const passed = this.#lookedAt - this.#stoppedMs;
    const at = performance.now();
    this.#noteStop(at);
    this.#lookedAt = at;
    for (const deadline of this.#pending.filter(({ until }) => until <= passed)) {
      this.remove(deadline);
      deadline.expire();
    }
    if (this.#pending.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
