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
const keepAliveTimeoutMs = 10_000;

/**
 * Shared read buffer of all upstream sockets. The bytes are copied immediately. Otherwise Node allocates memory for
 * each read, which costs more than the copy and lasts until the next garbage collection.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
const onread = {
  buffer: readBuffer,
  callback(this: Socket, bytes: number): boolean {
    const copy = Buffer.allocUnsafe(bytes);
    readBuffer.copy(copy, 0, 0, bytes);
    return this.push(copy);
  },
};

/** Creates undici's connector, which resolves names with `lookup`. */
export function createConnector(lookup: LookupFunction): Connect {
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
  /** Number of completed requests. */
  completedRequests = 0;
  /** Transfer that has checked out the connection. */
  transfer: Transfer | undefined;
  /** True if the request of the transfer was written. */
  isRequestSent = false;
  /**
   * True if the upstream responded before it had received the whole request. It is then unknown how it reads the
   * remainder.
   */
  isTainted = false;
  readonly #client: undici.Client;
  #connecting: Socket | undefined;
  /** True if the final response to the request has started. */
  #hasResponse = false;
  /** Buffered beginning of a possible interim response. */
  #buffered: Buffer = emptyBuffer;

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
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    });
    this.#client.on('disconnect', (_origin, _targets, error) => {
      // A request that was not written yet is sent over a new socket, and one that was written fails by itself.
      if (this.transfer) return;
      if (isUnsolicited(error)) connections.reportUnsolicited(pool.upstream);
      connections.closeIdle(this);
    });
  }

  /** Sends the request of the current transfer, unless that has ended. */
  send(addedHeaders: readonly string[]): void {
    const transfer = this.transfer as Transfer;
    if (transfer.isSettled) return;
    this.#hasResponse = false;
    this.#buffered = emptyBuffer;
    const { path, method, headers, body = null } = transfer.exchange;
    this.#client.dispatch({ path, method, headers: [...headers, ...addedHeaders], body }, transfer);
  }

  /** Closes the connection. Its current request fails. */
  close(): Promise<void> {
    // Undici would let the socket continue to connect although no request waits for it.
    this.#connecting?.destroy();
    return this.#client.destroy();
  }

  /** Listens before undici does, while the bytes can still be inspected. */
  #watch(socket: Socket, connections: Connections): void {
    socket.on('readable', () => {
      if (socket.readableLength === 0) return;
      if (this.isRequestSent) {
        // A request that fits the buffer counts as sent, although TLS may not have confirmed it yet.
        if (socket.writableNeedDrain) this.isTainted = true;
        if (this.transfer?.receive(socket.readableLength) === false) socket.read();
        else if (!this.#hasResponse) this.#skipContinue(socket);
        return;
      }
      const isIdleTimeout = idleTimeoutPattern.test(String(socket.read()));
      socket.destroy();
      if (!isIdleTimeout) connections.reportUnsolicited(this.pool.upstream);
    });
  }

  /**
   * Removes 100 Continue, which a client must accept without having requested it (RFC 9110, 15.2), but undici does not.
   */
  #skipContinue(socket: Socket): void {
    const received = socket.read() as Buffer;
    const bytes = this.#buffered.length > 0 ? Buffer.concat([this.#buffered, received]) : received;
    this.#buffered = emptyBuffer;
    // A final response, as nearly every one is, is not searched.
    if (bytes.length >= interimPrefix.length && bytes[interimPrefix.length - 1] !== digitOne) {
      this.#hasResponse = true;
      socket.unshift(bytes);
      return;
    }
    const { forwarded, remainder } = removeContinue(bytes);
    const isIncomplete = remainder.length < maxInterimBytes && mayBecomeInterim(remainder);
    if (isIncomplete) this.#buffered = remainder;
    else forwarded.push(remainder);
    this.#hasResponse = !isIncomplete;
    if (forwarded.length > 0) socket.unshift(Buffer.concat(forwarded));
  }
}

const emptyBuffer = Buffer.alloc(0);
/** Maximum bytes of an interim response that is examined. A longer one is passed to undici. */
const maxInterimBytes = 4096;
/** Matches an interim response and captures the last two digits of its status. */
const interimPattern = /HTTP\/1\.[01] 1(\d\d)\b[^\n]*\n(?:[^\n]+\n)*?\r?\n/y;
const interimPrefix = 'HTTP/1.1 1';
const digitOne = 0x31;

/** Returns the interim responses at the beginning of `bytes`, except 100 Continue, and the bytes after them. */
function removeContinue(bytes: Buffer): { forwarded: Buffer[]; remainder: Buffer } {
  const text = mayBecomeInterim(bytes) ? bytes.toString('latin1') : '';
  const forwarded: Buffer[] = [];
  let offset = 0;
  interimPattern.lastIndex = 0;
  for (let match = interimPattern.exec(text); match; match = interimPattern.exec(text)) {
    if (match[1] !== '00') forwarded.push(bytes.subarray(offset, interimPattern.lastIndex));
    offset = interimPattern.lastIndex;
  }
  return { forwarded, remainder: bytes.subarray(offset) };
}

/** Returns true if more bytes could complete an interim response. */
function mayBecomeInterim(bytes: Buffer): boolean {
  const beginning = bytes.toString('latin1', 0, interimPrefix.length).replace('HTTP/1.0', 'HTTP/1.1');
  return interimPrefix.startsWith(beginning);
}

/**
 * Matches a 408 response. Some servers send one before they close a connection that was idle for too long (RFC 9110,
 * 15.5.9).
 */
const idleTimeoutPattern = /^HTTP\/1\.[01] 408 /;

/** Detects undici's errors for bytes after a response in the same packet. */
function isUnsolicited(error: Error): boolean {
  return error.message === 'bad response' || error.name === 'HTTPParserError';
}
