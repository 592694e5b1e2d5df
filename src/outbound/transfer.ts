import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { OutboundError } from '../errors.ts';
import type { Deadline, Deadlines } from './deadlines.ts';
import { oversize } from './decode.ts';
import type { Answer, Exchange } from './door.ts';
import { toOutboundError } from './failure.ts';

/**
 * A piece of a body costs memory and time however small it is, and so does an interim answer. This many pieces are free;
 * beyond them they must hold so many bytes on average, which is less than a row of any honest stream.
 */
const freePieces = 10_000;
const pieceBytes = 100;
const maxInterimAnswers = 100;
const nothing = Buffer.alloc(0);

/** Told once how a transfer ended. */
export type Ended = { resolve: (answer: Answer) => void; reject: (error: OutboundError) => void };

/** One request on its way and the answer to it as undici tells of it, within its deadline and its limits. */
export class Transfer implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #ended: Ended;
  readonly #deadlines: Deadlines;
  readonly #deadline: Deadline;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  #status = 0;
  #statusText = '';
  #headers: IncomingHttpHeaders = {};
  #hasBegun = false;
  #interimAnswers = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #isSettled = false;

  constructor(exchange: Exchange, until: number, deadlines: Deadlines, ended: Ended) {
    this.#exchange = exchange;
    this.#ended = ended;
    this.#deadlines = deadlines;
    this.#deadline = deadlines.add(until, () => this.#fail(timedOut(exchange.timeoutMs)));
    exchange.onGone?.(() => this.#fail(new OutboundError('cancelled', 'the caller went away')));
  }

  /** Sends the request, unless the caller has gone already. */
  start(pool: Dispatcher): void {
    if (this.#isSettled) return;
    const { path, method, headers, body = null } = this.#exchange;
    pool.dispatch({ path, method, headers, body }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled)
      controller.abort(new OutboundError('cancelled', 'the call had ended before a connection was free'));
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
      if (++this.#interimAnswers > maxInterimAnswers) this.#fail(tooMany('interim answers'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    const { limitBytes } = this.#exchange;
    if (Number(headers['content-length']) > limitBytes) this.#fail(oversize(limitBytes));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    const { limitBytes } = this.#exchange;
    if (this.#bytes > limitBytes) this.#fail(oversize(limitBytes));
    else if (this.#pieces.push(chunk) > freePieces + this.#bytes / pieceBytes) this.#fail(tooMany('pieces of a body'));
  }

  onResponseEnd(): void {
    if (!this.#settle()) return;
    this.#ended.resolve({
      status: this.#status,
      statusText: this.#statusText,
      headers: this.#headers,
      body: whole(this.#pieces),
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const failure = toOutboundError(error);
    this.#fail(failure.reason === 'reset' && this.#hasBegun ? truncated() : failure);
  }

  #fail(error: OutboundError): void {
    if (!this.#settle()) return;
    this.#controller?.abort(error);
    this.#ended.reject(error);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#deadlines.remove(this.#deadline);
    return true;
  }
}

function whole(pieces: readonly Buffer[]): Buffer {
  return pieces.length > 1 ? Buffer.concat(pieces) : (pieces[0] ?? nothing);
}

function timedOut(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `upstream did not answer within ${timeoutMs} ms`);
}

function tooMany(what: string): OutboundError {
  return new OutboundError('malformed', `the upstream answered with too many ${what}`);
}

/** The answer had begun, so the request was served: it is not sent twice. */
function truncated(): OutboundError {
  return new OutboundError('truncated', 'the upstream closed the connection in the middle of its answer');
}
