import type { Socket } from 'node:net';
import type { Dispatcher, Client as UndiciClient } from 'undici';
import { Client } from './undici.ts';
import type { Upstream } from './upstream.ts';

/**
 * Size at which undici ends a connection. A transfer ends it long before that: for each header line beyond its limit
 * undici creates an error, which takes longer than the line itself.
 */
const maxHeaderBytes = 512 * 1024;
/** Undici closes an idle connection after this time; the sweep usually closes it before. */
const keepAliveMs = 10_000;

/** The request on a connection. `mayArrive` gets the number of bytes before they are read, and permits reading them. */
export type Carried = Dispatcher.DispatchHandler & { mayArrive(bytes: number): boolean };

/** Events of a connection outside its requests. */
export type ConnectionEvents = {
  /** Bytes came that no request asked for; the connection is closed already. */
  onUnasked(): void;
  /** An idle connection was closed by the upstream. */
  onClosed(): void;
};

/**
 * One connection to an upstream, which carries one request at a time. HTTP/1.1 does not say which request an answer
 * belongs to, so bytes that arrive while no request is sent end the connection before they can be taken for an answer.
 */
export class Connection {
  /** Monotonic ms; meaningful while the connection is idle. */
  idleSince = 0;
  /** Number of requests answered on it. */
  served = 0;
  /** A request has been assigned to it and is not over. */
  isBusy = true;
  /** A request has been written to it and is not over. */
  isAsked = false;
  /** The upstream answered before it had the whole request, so it is unknown how it reads the rest. */
  isSpoilt = false;
  readonly #client: UndiciClient;
  readonly #events: ConnectionEvents;
  #connecting: Socket | undefined;
  #carried: Carried | undefined;
  /** Whether the final answer to the request has begun. */
  #hasAnswer = false;
  /** The beginning of what may be an interim answer. */
  #held: Buffer = nothing;

  constructor({ url, connect }: Upstream, events: ConnectionEvents) {
    this.#events = events;
    this.#client = new Client(url, {
      connect: (options, callback) => {
        this.#connecting = connect(options, (...[error, socket]) => {
          this.#connecting = undefined;
          if (socket) this.#watch(socket);
          callback(...([error, socket] as Parameters<typeof callback>));
        });
      },
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    });
    this.#client.on('disconnect', (_origin, _targets, error) => {
      // A request that was not written yet is sent over a new socket, and one that was fails by itself.
      if (this.isBusy) return;
      if (isUnasked(error)) events.onUnasked();
      events.onClosed();
    });
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Carried): void {
    this.#carried = handler;
    this.#hasAnswer = false;
    this.#held = nothing;
    this.#client.dispatch(request, handler);
  }

  /** After an answer. */
  rest(now: number): void {
    this.isBusy = false;
    this.isAsked = false;
    this.#carried = undefined;
    this.served++;
    this.idleSince = now;
  }

  /** Closes it; a request that it carries fails. */
  end(): Promise<void> {
    // Undici would let the socket go on connecting although no request waits for it.
    this.#connecting?.destroy();
    return this.#client.destroy();
  }

  /** Listens before undici does, while the bytes can still be inspected. */
  #watch(socket: Socket): void {
    socket.on('readable', () => {
      if (socket.readableLength === 0) return;
      if (this.isAsked) {
        // A request that fits the buffer counts as sent, although TLS may not have confirmed it yet.
        if (socket.writableNeedDrain) this.isSpoilt = true;
        if (this.#carried?.mayArrive(socket.readableLength) === false) socket.read();
        else if (!this.#hasAnswer) this.#skipContinue(socket);
        return;
      }
      const isFarewell = farewell.test(String(socket.read()));
      socket.destroy();
      if (!isFarewell) this.#events.onUnasked();
    });
  }

  /** Takes 100 Continue away, which a client must take without having asked for it (RFC 9110, 15.2), and undici does not. */
  #skipContinue(socket: Socket): void {
    const arrived = socket.read() as Buffer;
    const { passed, rest } = withoutContinue(this.#held.length > 0 ? Buffer.concat([this.#held, arrived]) : arrived);
    const isUnclear = rest.length < longestInterim && mayBecomeInterim(rest);
    this.#held = isUnclear ? rest : nothing;
    this.#hasAnswer = !isUnclear;
    const all = isUnclear ? passed : [...passed, rest];
    if (all.length > 0) socket.unshift(all.length === 1 ? all[0] : Buffer.concat(all));
  }
}

const nothing = Buffer.alloc(0);
/** A longer interim answer is left to undici, in bytes. */
const longestInterim = 4096;
/** An interim answer, with the last two digits of its status. */
const interim = /HTTP\/1\.[01] 1(\d\d)\b[^\n]*\n(?:[^\n]+\n)*?\r?\n/y;
const startOfInterim = 'HTTP/1.1 1';

/** The interim answers that `bytes` begins with, but for 100 Continue, and what follows them. */
function withoutContinue(bytes: Buffer): { passed: Buffer[]; rest: Buffer } {
  // A final answer, which is nearly every one, is not looked through.
  const text = mayBecomeInterim(bytes) ? bytes.toString('latin1') : '';
  const passed: Buffer[] = [];
  let at = 0;
  interim.lastIndex = 0;
  for (let found = interim.exec(text); found; found = interim.exec(text)) {
    if (found[1] !== '00') passed.push(bytes.subarray(at, interim.lastIndex));
    at = interim.lastIndex;
  }
  return { passed, rest: bytes.subarray(at) };
}

/** Whether more bytes could make this an interim answer. */
function mayBecomeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, startOfInterim.length).replace('HTTP/1.0', 'HTTP/1.1');
  return startOfInterim.startsWith(start);
}

/** Some servers announce that a connection was idle for too long before they close it (RFC 9110, 15.5.9). */
const farewell = /^HTTP\/1\.[01] 408 /;

/** Errors of undici for bytes behind an answer, in the same packet. */
function isUnasked(error: Error): boolean {
  return error.message === 'bad response' || error.name === 'HTTPParserError';
}
