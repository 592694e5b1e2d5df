import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { OutboundError } from '../errors.ts';
import type { Connection } from './connection.ts';
import type { Deadline, Deadlines } from './deadlines.ts';
import { oversize } from './decode.ts';
import type { Answer, Exchange } from './exchange.ts';
import { toOutboundError } from './failure.ts';

/**
 * A piece of a body costs memory and time however small it is, and so does an interim answer. This many pieces are
 * free; beyond them the average piece must have this many bytes, which is less than a row of any honest stream.
 */
const freePieces = 10_000;
const pieceBytes = 100;
const maxInterimAnswers = 100;
/** Limit for the header lines of an answer, and for bytes around its body such as trailers and chunk extensions. */
const maxHeaderBytes = 64 * 1024;
/** Allowance for the chunk header of each piece of a body. */
const aroundPieceBytes = 16;

/** An answer as it arrived. */
export type Received = Omit<Answer, 'body'> & { pieces: readonly Buffer[]; bytes: number };

/** What a transfer reports to: `resolve` or `reject` is called once. */
export type Ended = {
  resolve: (received: Received) => void;
  reject: (error: OutboundError) => void;
  /** Notes how many bytes of a body have arrived. False when there is no memory for them. */
  arrived: (bytes: number) => boolean;
};

/** The pool that lends a transfer its connection, or lets it wait for one. */
export type Lender = {
  /** After a whole answer. */
  giveBack(connection: Connection): void;
  /** After anything else, which ends the connection. */
  discard(connection: Connection): void;
  /** The transfer no longer waits. */
  removeWaiting(transfer: Transfer): void;
};

/** One request and its answer, as undici reports it, within a deadline and limits. */
export class Transfer implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #mark: readonly string[];
  readonly #ended: Ended;
  readonly #deadlines: Deadlines;
  readonly #deadline: Deadline;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #arrived = 0;
  #status = 0;
  #statusText = '';
  #headers: IncomingHttpHeaders = {};
  #hasBegun = false;
  #interimAnswers = 0;
  #lender: Lender | undefined;
  #connection: Connection | undefined;
  readonly #stoppedMs: number;
  #isSettled = false;

  /** `mark` is the header that marks every request; `until` is in ms of `deadlines`. */
  constructor(exchange: Exchange, mark: readonly string[], until: number, deadlines: Deadlines, ended: Ended) {
    this.#exchange = exchange;
    this.#mark = mark;
    this.#ended = ended;
    this.#deadlines = deadlines;
    this.#stoppedMs = deadlines.stoppedMs;
    this.#deadline = deadlines.add(until, () => this.fail(timedOut(exchange.timeoutMs)));
    exchange.onGone?.(() => this.fail(new OutboundError('cancelled', 'the caller went away')));
  }

  /** Whether it has ended; possible even before it started. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  get timeoutMs(): number {
    return this.#exchange.timeoutMs;
  }

  wait(lender: Lender): void {
    this.#lender = lender;
  }

  /** Takes a connection, which ends with the transfer from now on if the transfer fails. */
  take(connection: Connection, lender: Lender): void {
    this.#lender = lender;
    this.#connection = connection;
  }

  /** Sends the request over the connection taken before, unless the transfer has ended meanwhile. */
  start(): void {
    if (this.#isSettled) return;
    const { path, method, headers, body = null } = this.#exchange;
    const connection = this.#connection as Connection;
    connection.dispatch({ path, method, headers: [...headers, ...this.#mark], body }, this);
  }

  /** Checks bytes before they are read: a few bytes of header, trailer or chunk cost as much as many of a body. */
  mayArrive(bytes: number): boolean {
    const around = this.#arrived - this.#bytes;
    this.#arrived += bytes;
    if (around > maxHeaderBytes && around > maxHeaderBytes + this.#pieces.length * aroundPieceBytes) {
      this.fail(tooMany('bytes around its body'));
    }
    return !this.#isSettled;
  }

  onRequestStart(): void {
    if (this.#connection) this.#connection.isAsked = true;
  }

  onResponseStarted(): void {
    this.#hasBegun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText = '',
  ): void {
    if (status < 200) {
      if (++this.#interimAnswers > maxInterimAnswers) this.fail(tooMany('interim answers'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    if (this.#arrived > maxHeaderBytes && sizeOf(headers) > maxHeaderBytes) this.fail(tooMany('bytes of headers'));
    const { limitBytes, method } = this.#exchange;
    // In the answer to a HEAD request it is the length of a body that does not come (RFC 9110, 9.3.2).
    if (method !== 'HEAD' && Number(headers['content-length']) > limitBytes) this.fail(oversize(limitBytes));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    const { limitBytes } = this.#exchange;
    if (this.#bytes > limitBytes) this.fail(oversize(limitBytes));
    else if (this.#keep(chunk) > freePieces + this.#bytes / pieceBytes) this.fail(tooMany('pieces of a body'));
    else if (!this.#ended.arrived(this.#bytes)) this.fail(noMemory());
  }

  /** Returns the number of pieces. An empty array that grows makes room for more than the one piece of most bodies. */
  #keep(chunk: Buffer): number {
    if (this.#pieces.length > 0) return this.#pieces.push(chunk);
    this.#pieces = [chunk];
    return 1;
  }

  onResponseEnd(): void {
    if (!this.#settle()) return;
    this.#lender?.giveBack(this.#connection as Connection);
    this.#ended.resolve({
      status: this.#status,
      statusText: this.#statusText,
      headers: this.#headers,
      pieces: this.#pieces,
      bytes: this.#bytes,
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const failure = toOutboundError(error, this.#exchange.origin);
    this.#deadlines.now();
    if (wasLost(failure) && this.#deadlines.stoppedMs > this.#stoppedMs) this.fail(stopped());
    else this.fail(failure.reason === 'reset' && this.#hasBegun ? truncated() : failure);
  }

  /** Ends the transfer and its connection, which would still carry the rest of an unwanted answer. */
  fail(error: OutboundError): void {
    if (!this.#settle()) return;
    if (this.#connection) this.#lender?.discard(this.#connection);
    else this.#lender?.removeWaiting(this);
    this.#ended.reject(error);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#deadlines.remove(this.#deadline);
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

/** The upstream or the network gave up on a process that was silent. */
function stopped(): OutboundError {
  return new OutboundError(
    'stopped',
    'this service was stopped for a while during the call, and the connection to the upstream was lost; try again',
  );
}

/** Others needed the memory of the exchange. The request may have been sent and may have had its effect. */
export function noMemory(): OutboundError {
  return new OutboundError(
    'no_memory',
    'the call was ended: this service has no memory left for its answer, and this workspace uses its share of it; the upstream may have done what was asked, so check that before you try again, with fewer large calls at a time',
  );
}

function tooMany(what: string): OutboundError {
  return new OutboundError('malformed', `the upstream answered with too many ${what}`);
}

/** The answer had begun, so the upstream had served the request. */
function truncated(): OutboundError {
  return new OutboundError('truncated', 'the upstream closed the connection in the middle of its answer');
}
