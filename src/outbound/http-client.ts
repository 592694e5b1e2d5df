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

/** The only client for upstreams: guarded addresses, no redirects, one deadline, one byte limit, reused connections. */
export type HttpClient = {
  /** Fails only by rejecting. @throws OutboundError */
  send(exchange: Exchange): Promise<Answer>;
  /** Connection pools in use. */
  poolCount(): number;
  /**
   * Totals of all pools: open connections, requests on them, requests that wait for one, and connections ended because
   * bytes arrived that no request asked for.
   */
  load(): { connections: number; running: number; waiting: number; unasked: number };
  close(): Promise<void>;
};

export type OutboundOptions = {
  allow: EgressAllow;
  /** What `allow` does not name is reached through it, where there is one. */
  proxy?: EgressProxy | undefined;
  lookupsOf: LookupsOf;
  decodeOnThread: DecodeOnThread;
  createMemory: MakeMemory;
  /** Whom the connections of a workspace count for. */
  tenantOf: (workspaceId: string) => string;
  /**
   * Whether a request must not be sent, because it holds a credential of this service, whatever put it there. Every request
   * passes here when it is finished, so a place that a rule of arguments or configurations forgets is searched as well.
   */
  isWithheld: (exchange: Exchange) => boolean | Promise<boolean>;
  /** Name of the header that marks every request, so that one that comes back to this service is refused. */
  hopHeader: string;
  /** Monotonic ms; decides how long connections are kept. */
  clock?: () => number;
  /** Gets the class of each refused address. */
  onBlocked?: (of: BlockedClass) => void;
  /** Reports an upstream that sent bytes which no request asked for. */
  onUnasked?: (workspaceId: string, origin: string) => void;
  /** Memory for answers of exchanges that bring none; not counted when absent. */
  memory?: { hold(workspaceId: string): HeldMemory };
  /** Most connections of the process; a few thousand when absent. */
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
  'the request would hold an API key or a token of this service, which is never sent to an upstream; replace it where it comes from: an argument, a stored credential or the token of a login';

/** What all transfers of a client share. */
type TransferParts = {
  connections: Connections;
  deadlines: Deadlines;
  decodeOnThread: DecodeOnThread;
  memory: OutboundOptions['memory'];
};

const nothing = Buffer.alloc(0);
/** So many bytes of an answer are not counted: an ordinary one costs nothing then. */
const uncounted = 16 * 1024;

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

/**
 * One request and its answer, as undici reports it, within a deadline and limits. The request is sent once: nobody but its
 * sender knows whether it may be sent again.
 */
export class Transfer implements Dispatcher.DispatchHandler {
  readonly exchange: Exchange;
  /** The connection that it has, which ends with it if it fails. */
  connection: Connection | undefined;
  /** The pool that it waits in while it has no connection. */
  waitsIn: Pool | undefined;
  /** Whether it has ended; possible even before it started. */
  isSettled = false;
  readonly #parts: TransferParts;
  readonly #resolve: (answer: Answer | Promise<Answer>) => void;
  readonly #reject: (error: OutboundError) => void;
  readonly #deadline: Deadline;
  #held: HeldMemory | undefined;
  #counted = 0;
  #pieces: Buffer[] = [];
  #pieceCount = 0;
  /** Takes the pieces, where the sender reads them as they arrive. */
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
    exchange.onGone?.(() => this.fail(new OutboundError('cancelled', 'the caller went away')));
  }

  /** Checks bytes before they are read: a few bytes of header, trailer or chunk cost as much as many of a body. */
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
      if (++this.#interimAnswers > maxInterimAnswers) this.fail(tooMany('interim answers'));
      return;
    }
    this.#status = status;
    this.#statusText = statusText;
    this.#headers = headers;
    if (this.#arrived > maxHeaderBytes && sizeOf(headers) > maxHeaderBytes) this.fail(tooMany('bytes of headers'));
    const { limitBytes, method } = this.exchange;
    // In the answer to a HEAD request it is the length of a body that does not come (RFC 9110, 9.3.2).
    if (method !== 'HEAD' && Number(headers['content-length']) > limitBytes) this.fail(oversize(limitBytes));
    if (this.exchange.onHead && headers['content-encoding'] === undefined && !this.isSettled)
      this.#onPiece = this.exchange.onHead({ status, statusText, headers });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#pieceCount++;
    // An empty array that grows makes room for more than the one piece of most bodies.
    if (this.#onPiece) this.#onPiece(chunk);
    else if (this.#pieces.length > 0) this.#pieces.push(chunk);
    else this.#pieces = [chunk];
    const { limitBytes } = this.exchange;
    if (this.#bytes > limitBytes) this.fail(oversize(limitBytes));
    else if (this.#pieceCount > freePieces + this.#bytes / pieceBytes) this.fail(tooMany('pieces of a body'));
    else if (this.#bytes > uncounted && !this.#hold()) this.fail(noMemory());
  }

  /** Counts the bytes of the body that have arrived. False when there is no memory for them. */
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
    // Most upstreams follow our request to compress nothing.
    this.#resolve(this.#headers['content-encoding'] === undefined ? answer : this.#decoded(answer));
  }

  async #decoded(answer: Answer): Promise<Answer> {
    const body = await decodeBody(answer, this.exchange, this.#parts.decodeOnThread);
    // What it takes more than before counts too: 12 KB of gzip can hold 10 MB.
    const more = Math.max(0, body.length - this.#counted);
    if (body.length > uncounted && this.exchange.held?.add(more) === false) throw noMemory();
    return { ...answer, body };
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const failure = toOutboundError(error, this.exchange.origin);
    if (wasLost(failure) && this.#parts.deadlines.wasStoppedSince(this.#deadline)) this.fail(stopped());
    else this.fail(failure.reason === 'reset' && this.#arrived > 0 ? truncated() : failure);
  }

  /** Ends the transfer and its connection, which would still carry the rest of an unwanted answer. */
  fail(error: OutboundError): void {
    if (!this.#settle()) return;
    const place = this.waitsIn?.waiting.indexOf(this) ?? -1;
    if (this.connection) this.#parts.connections.discard(this.connection);
    else if (place >= 0) this.waitsIn?.waiting.splice(place, 1);
    this.#reject(error);
  }

  /** Whether it has not ended before. */
  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#parts.deadlines.remove(this.#deadline);
    // The memory of the exchange is that of the sender, who knows how long it is needed.
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

/** The upstream or the network gave up on a process that was silent. */
function stopped(): OutboundError {
  return new OutboundError(
    'stopped',
    'this service was stopped for a while during the call, and the connection to the upstream was lost; try again',
  );
}

/** Others needed the memory of the exchange. The request may have been sent and may have had its effect. */
function noMemory(): OutboundError {
  return new OutboundError(
    'no_memory',
    'the call was ended: this service has no memory left for its answer, and this workspace and the others of its creator use their share of it; the upstream may have done what was asked, so check that before you try again, with fewer large calls at a time',
  );
}

function tooMany(what: string): OutboundError {
  return new OutboundError('malformed', `the upstream answered with too many ${what}`);
}

/** The answer had begun, so the upstream had served the request. */
function truncated(): OutboundError {
  return new OutboundError('truncated', 'the upstream closed the connection in the middle of its answer');
}

/** A function to run when its time is over, unless it is removed before. */
type Deadline = {
  /** In ms of `now`. */
  until: number;
  expire: () => void;
  /** Index in the array of pending deadlines; −1 when it is not pending. */
  index: number;
  /** Total time that the process had been stopped when the deadline was added, in ms. */
  stoppedMs: number;
};

/** A passed deadline expires at the second look after it. */
const tickMs = 20;
/** A delay of the timer beyond this means that the process was stopped. */
const stopMs = 500;

/**
 * Deadlines on one shared timer, which runs only while there are some: a timer for each call costs more than the rest of
 * its bookkeeping. Time in which the process was stopped (SIGSTOP, a machine without processor time, a long garbage
 * collection) does not count: the upstream may have answered, and the process could not read it.
 */
class Deadlines {
  /**
   * An array, because the tables that a Set discards as it grows still refer to its items and to the next table: nearly
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

  /** Whether the process was stopped for a while since a pending deadline was added. */
  wasStoppedSince({ stoppedMs }: Deadline): boolean {
    this.#noteStop(performance.now());
    return this.#stoppedMs > stoppedMs;
  }

  #noteStop(at: number): void {
    if (this.#timer === undefined || at - this.#lookedAt <= stopMs) return;
    // The usual time between two looks counts, so that time goes on where one stop follows the other.
    this.#stoppedMs += at - this.#lookedAt - tickMs;
    this.#lookedAt = at;
  }

  #look(): void {
    // One that has passed since the last look waits for the next: what came in time while the process was busy is read first.
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
