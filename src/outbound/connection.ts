import { Buffer } from 'node:buffer';
import { createRequire } from 'node:module';
import type { LookupFunction, Socket } from 'node:net';
import type * as undici from 'undici';
import type { Connections, Pool } from './connections.ts';
import type { Transfer } from './http-client.ts';

/**
 * The two modules of undici that are used. Its main module also loads fetch, caches, mocks, and proxies: 80 files and 8
 * MB.
 */
const require = createRequire(import.meta.url);
const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client;
const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector;

/** Connects for undici. Returns the connecting socket, if there is one, so that it can be destroyed. */
export type Connect = (
  options: undici.buildConnector.Options,
  callback: undici.buildConnector.Callback,
) => Socket | undefined;

const connectTimeoutMs = 3000;
/**
 * Header size at which undici ends a connection. A transfer ends it long before that: for each header line beyond its
 * limit, undici creates an error, which takes longer than the line itself.
 */
const maxHeaderBytes = 512 * 1024;
/** Idle time after which undici closes a connection. The sweep usually closes it earlier. */
const keepAliveMs = 10_000;

/**
 * Shared read buffer of all upstream sockets. The bytes are copied immediately. Otherwise Node allocates memory for
 * each read, which costs more than the copy and lasts until the next garbage collection.
 */
const readInto = Buffer.allocUnsafeSlow(64 * 1024);
const onread = {
  buffer: readInto,
  callback(this: Socket, bytes: number): boolean {
    const read = Buffer.allocUnsafe(bytes);
    readInto.copy(read, 0, 0, bytes);
    return this.push(read);
  },
};

/** Creates undici's connector, which resolves names with `lookup`. */
export function connectorWith(lookup: LookupFunction): Connect {
  // Undici forwards unknown options to net.connect and tls.connect, and returns its socket. Its types omit both.
  const socketOptions: object = { autoSelectFamily: true, lookup, onread };
  return buildConnector({ timeout: connectTimeoutMs, allowH2: false, ...socketOptions }) as Connect;
}

/**
 * A connection to an upstream, which carries one request at a time. HTTP/1.1 does not identify the request of a
 * response, so bytes that arrive while no request is pending end the connection before they can be mistaken for a
 * response.
 */
export class Connection {
  readonly pool: Pool;
  /** Monotonic ms. Meaningful only while the connection is idle. */
  idleSince = 0;
  /** Number of requests that it has completed. */
  served = 0;
  /** Transfer that has checked it out. */
  transfer: Transfer | undefined;
  /** True if the request of the transfer was written. */
  isAsked = false;
  /**
   * True if the upstream responded before it had received the whole request. It is then unknown how it reads the
   * remainder.
   */
  isSpoilt = false;
  readonly #client: undici.Client;
  #connecting: Socket | undefined;
  /** True if the final response to the request has started. */
  #hasAnswer = false;
  /** Buffered beginning of a possible interim response. */
  #held: Buffer = nothing;

  constructor(pool: Pool, connections: Connections) {
    this.pool = pool;
    const { url, connect } = pool.upstream;
    this.#client = new Client(url, {
      connect: (options, callback) => {
        this.#connecting = connect(options, (...[error, socket]) => {
          this.#connecting = undefined;
          if (socket) this.#watch(socket, connections);
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
      // A request that was not written yet is sent over a new socket, and one that was written fails by itself.
      if (this.transfer) return;
      if (isUnasked(error)) connections.noteUnasked(pool.upstream);
      connections.endIdle(this);
    });
  }

  /** Sends the request of the current transfer, unless that has ended. */
  send(mark: readonly string[]): void {
    const transfer = this.transfer as Transfer;
    if (transfer.isSettled) return;
    this.#hasAnswer = false;
    this.#held = nothing;
    const { path, method, headers, body = null } = transfer.exchange;
    this.#client.dispatch({ path, method, headers: [...headers, ...mark], body }, transfer);
  }

  /** Closes the connection. Its current request fails. */
  end(): Promise<void> {
    // Undici would let the socket continue to connect although no request waits for it.
    this.#connecting?.destroy();
    return this.#client.destroy();
  }

  /** Listens before undici does, while the bytes can still be inspected. */
  #watch(socket: Socket, connections: Connections): void {
    socket.on('readable', () => {
      if (socket.readableLength === 0) return;
      if (this.isAsked) {
        // A request that fits the buffer counts as sent, although TLS may not have confirmed it yet.
        if (socket.writableNeedDrain) this.isSpoilt = true;
        if (this.transfer?.mayArrive(socket.readableLength) === false) socket.read();
        else if (!this.#hasAnswer) this.#skipContinue(socket);
        return;
      }
      const isFarewell = farewell.test(String(socket.read()));
      socket.destroy();
      if (!isFarewell) connections.noteUnasked(this.pool.upstream);
    });
  }

  /**
   * Removes 100 Continue, which a client must accept without having requested it (RFC 9110, 15.2), but undici does not.
   */
  #skipContinue(socket: Socket): void {
    const arrived = socket.read() as Buffer;
    const all = this.#held.length > 0 ? Buffer.concat([this.#held, arrived]) : arrived;
    this.#held = nothing;
    // A final response, as nearly every one is, is not searched.
    if (all.length >= startOfInterim.length && all[startOfInterim.length - 1] !== digitOne) {
      this.#hasAnswer = true;
      socket.unshift(all);
      return;
    }
    const { passed, rest } = withoutContinue(all);
    const isUnclear = rest.length < longestInterim && mayBecomeInterim(rest);
    if (isUnclear) this.#held = rest;
    else passed.push(rest);
    this.#hasAnswer = !isUnclear;
    if (passed.length > 0) socket.unshift(Buffer.concat(passed));
  }
}

const nothing = Buffer.alloc(0);
/** Maximum bytes of an interim response that is examined. A longer one is passed to undici. */
const longestInterim = 4096;
/** Matches an interim response and captures the last two digits of its status. */
const interim = /HTTP\/1\.[01] 1(\d\d)\b[^\n]*\n(?:[^\n]+\n)*?\r?\n/y;
const startOfInterim = 'HTTP/1.1 1';
const digitOne = 0x31;

/** Returns the interim responses at the beginning of `bytes`, except 100 Continue, and the bytes after them. */
function withoutContinue(bytes: Buffer): { passed: Buffer[]; rest: Buffer } {
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

/** Returns true if more bytes could complete an interim response. */
function mayBecomeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, startOfInterim.length).replace('HTTP/1.0', 'HTTP/1.1');
  return startOfInterim.startsWith(start);
}

/**
 * Matches a 408 response. Some servers send one before they close a connection that was idle for too long (RFC 9110,
 * 15.5.9).
 */
const farewell = /^HTTP\/1\.[01] 408 /;

/** Detects undici's errors for bytes after a response in the same packet. */
function isUnasked(error: Error): boolean {
  return error.message === 'bad response' || error.name === 'HTTPParserError';
}
