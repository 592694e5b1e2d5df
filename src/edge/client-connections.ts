import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { OnGivenUp } from '../domain/work/memory-budget.ts';
import { noticeStops, runningNow, stoppedWithin } from '../domain/work/running-time.ts';
import { clientNetwork } from './client-address.ts';

/** Connections of a network, ordered by when they were opened or last checked. */
type Network = Set<Connection>;
type Connection = { socket: Socket /** When it was last checked. */; bytesRead: number };

/** Maximum connections that are checked to find one to close. */
const mostLooks = 200;

/**
 * Limits the number of open connections. Above `most`, closes one of the network with the most connections: preferably
 * one that has been idle since it was last checked. So a network that keeps opening connections takes none from others.
 * Requests have no additional cost.
 */
export function limitConnections(server: Server, most: number, onGivenUp: OnGivenUp): void {
  const networks = new Map<string, Network>();
  let open = 0;
  server.on('connection', (socket) => {
    const name = clientNetwork({ headers: {}, socket }, 0);
    const network = networks.get(name) ?? new Set();
    networks.set(name, network);
    const connection = { socket, bytesRead: 0 };
    network.add(connection);
    open++;
    socket.once('close', () => {
      open--;
      network.delete(connection);
      if (network.size === 0 && networks.get(name) === network) networks.delete(name);
    });
    if (open <= most) return;
    makeRoom(networks, connection, network);
    onGivenUp('connection');
  });
}

/**
 * Closes one connection. Closes the new one if its network has the most connections and no idle one is found in the
 * largest networks.
 */
function makeRoom(networks: ReadonlyMap<string, Network>, newest: Connection, own: Network): void {
  const size = networks.values().reduce((most, network) => Math.max(most, network.size), 0);
  const largest = [...networks.values().filter((network) => network.size === size)];
  let looks = mostLooks;
  let victim: Connection | undefined;
  for (const network of largest) {
    victim = findIdle(network, newest, looks);
    looks -= size;
    if (victim || looks <= 0) break;
  }
  victim ??= own.size === size ? newest : largest[0]?.values().next().value;
  victim?.socket.destroy();
}

/**
 * Finds an idle connection, preferably one that has been idle since the last check. Checked connections move to the
 * end.
 */
function findIdle(network: Network, newest: Connection, looks: number): Connection | undefined {
  let used: Connection | undefined;
  for (const connection of [...network.values().take(looks)]) {
    const { socket, bytesRead } = connection;
    const isIdle = connection !== newest && !socket.destroyed && !isBusy(socket);
    if (isIdle && socket.bytesRead === bytesRead) return connection;
    if (isIdle) used ??= connection;
    connection.bytesRead = socket.bytesRead;
    network.delete(connection);
    network.add(connection);
  }
  return used;
}

/** Returns true if a response is pending. Node stores it here and exposes it in no other way. */
function isBusy(socket: Socket & { _httpMessage?: unknown }): boolean {
  return socket._httpMessage != null;
}

/**
 * Closes connections without traffic for `silentMs`: idle ones, and those whose client does not read the response. Each
 * is closed after twice that time at the latest, or three times if this process was paused in between. The timers of
 * `node:http` would be set twice per request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let before = 0;
    let since = runningNow();
    const timer = setInterval(() => {
      const moved = socket.bytesRead + socket.bytesWritten;
      const now = runningNow();
      if (moved !== before) since = now;
      // Timers may fire a millisecond early.
      else if (now - since >= silentMs - 1) socket.destroy();
      before = moved;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}

/**
 * Extends the header and request timeouts by the pauses of this process. `node:http` checks the clock before it reads,
 * and would respond with 408 to requests that arrived during the pause.
 */
export function prolongTimeByStops(server: Server): void {
  noticeStops();
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it checks for late requests.
    Object.defineProperty(server, name, { get: () => ms + stoppedWithin(ms) });
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Maximum pipelined requests of a connection. The connection of a client that sends more is closed. */
export const mostWaiting = 100;

/**
 * Delays pipelined requests until the previous response is complete. Their responses have no socket until then. A
 * client may send thousands of requests in one chunk before it reads a response (pipelining; RFC 9112, 9.3.2), and Node
 * reports all of them in the same turn of the event loop.
 */
export function createWaitingRequests(handle: Handle): Handle {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > mostWaiting) {
      cutOff(socket);
      return;
    }
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      // The previous response has ended in the same turn.
      setImmediate(() => {
        if (!socket.destroyed) handle(request, response);
      });
    });
  };
}

/**
 * Closes a connection. Node creates an error for each of its requests, including thousands that it has yet to parse
 * from the same chunk, and the stack traces of these errors take most of the time.
 */
function cutOff(socket: Socket): void {
  let stackTraceLimit: number;
  socket.prependOnceListener('close', () => {
    stackTraceLimit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  socket.destroy();
}
