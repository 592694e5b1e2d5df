import type { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import type { Connections, Pool } from './connections.ts';
import type { Connecting } from './open-socket.ts';
import { formatRequestHead } from './request-head.ts';
import { NotHttpError, ResponseReader } from './response-reader.ts';
import type { Transfer } from './transfer.ts';

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
  /** Time in ms that the upstream keeps the connection while it is idle, if it said so. */
  keepAliveTimeoutMs: number | undefined;
  /** True if the request of the transfer was written. */
  #isRequestSent = false;
  #isClosed = false;
  #socket: Socket | undefined;
  #connecting: Connecting | undefined;
  readonly #connections: Connections;
  readonly #reader = new ResponseReader();

  constructor(pool: Pool, connections: Connections) {
    this.pool = pool;
    this.#connections = connections;
  }

  /** Sends the request of the current transfer, unless that has ended. */
  send(): void {
    const transfer = this.transfer as Transfer;
    if (transfer.isSettled) return;
    if (this.#socket) this.#write(this.#socket, transfer);
    else this.#connect();
  }

  #connect(): void {
    let isSettled = false;
    const connecting = this.pool.upstream.connect(
      (bytes) => this.#read(bytes),
      (error, connectedSocket) => {
        isSettled = true;
        this.#connecting = undefined;
        if (this.#isClosed) connectedSocket?.destroy();
        else if (connectedSocket) this.#use(connectedSocket);
        else this.transfer?.onConnectionError(error as Error);
      },
    );
    if (!isSettled) this.#connecting = connecting;
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    socket.on('error', (error) => this.#lose(socket, error));
    socket.on('end', () => this.#lose(socket));
    socket.on('close', () => this.#lose(socket));
    // The deadline of a transfer keeps the process alive; an idle connection must not.
    socket.unref();
    if (this.transfer && !this.transfer.isSettled) this.#write(socket, this.transfer);
  }

  #write(socket: Socket, transfer: Transfer): void {
    const { exchange } = transfer;
    const { method, body } = exchange;
    let head: string;
    try {
      head = formatRequestHead(exchange, this.pool.upstream.host, this.#connections.hopHeader);
    } catch (error) {
      transfer.onConnectionError(error as Error);
      return;
    }
    this.#reader.start(transfer, method);
    this.#isRequestSent = true;
    if (body === undefined || body.length === 0) socket.write(head, 'latin1');
    else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
  }

  #read(bytes: Buffer): void {
    const { transfer } = this;
    if (this.#isClosed) return;
    if (!transfer || !this.#isRequestSent) this.#refuseUnsolicited(bytes);
    else if (transfer.receive(bytes.length)) {
      let length = 0;
      try {
        length = this.#reader.read(bytes);
      } catch (error) {
        // The sender may read along (`onHead`). Its errors end only this transfer, like those of the reader.
        if (error instanceof NotHttpError) this.#connections.reportMalformed(this.pool.upstream, bytes);
        transfer.onConnectionError(error as Error);
      }
      if (this.#reader.isDone && !transfer.isSettled) this.#complete(transfer, length === bytes.length);
    }
  }

  /** Ends a transfer with its complete response. The state of the connection decides if another one may use it. */
  #complete(transfer: Transfer, isExact: boolean): void {
    // An upstream that responds before it has the whole request may read the remainder as the next one. A request that
    // fits the buffer counts as sent, although TLS may not have confirmed it yet.
    const isReusable = isExact && this.#reader.keepsAlive && this.#socket?.writableNeedDrain === false;
    if (!isExact) this.#connections.reportUnsolicited(this.pool.upstream);
    this.keepAliveTimeoutMs = this.#reader.keepAliveTimeoutMs;
    this.#isRequestSent = false;
    transfer.succeed(isReusable);
  }

  /** Drops the socket. A checked-out connection opens another one, because its request was not sent. */
  #refuseUnsolicited(bytes: Buffer): void {
    this.#dropSocket();
    const isIdleTimeout = idleTimeoutPattern.test(bytes.toString('latin1', 0, maxPatternBytes));
    if (!isIdleTimeout) this.#connections.reportUnsolicited(this.pool.upstream);
    if (!this.transfer) this.#connections.closeIdle(this);
  }

  #dropSocket(): Socket | undefined {
    const socket = this.#socket;
    this.#socket = undefined;
    return socket?.destroy();
  }

  /** The socket failed, or the upstream closed it. */
  #lose(socket: Socket, error?: Error): void {
    if (this.#socket !== socket) return;
    this.#dropSocket();
    const { transfer } = this;
    if (!transfer) this.#connections.closeIdle(this);
    else if (this.#isRequestSent) {
      // Some servers reset a connection whose request they have not read to its end.
      const isEnd = error === undefined || (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (isEnd && this.#reader.endsWithConnection) this.#complete(transfer, true);
      else transfer.onConnectionError(error ?? createClosedError());
    }
  }

  /** Closes the connection. Returns its socket, which may still have to be closed. */
  close(): Socket | undefined {
    this.#isClosed = true;
    this.#reader.stop();
    this.#connecting?.destroy();
    return this.#dropSocket();
  }
}

/**
 * Matches a 408 response. Some servers send one before they close a connection that was idle for too long (RFC 9110,
 * 15.5.9).
 */
const idleTimeoutPattern = /^HTTP\/1\.[01] 408 /;
const maxPatternBytes = 16;

/** Returns the error for a connection that was closed before the end of the response. */
export function createClosedError(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' });
}
