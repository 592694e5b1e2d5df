import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { OnShed } from '@toolhost/limits/memory-budget';
import { getRunningTimeMs, getStoppedMs, startStopDetection } from '@toolhost/limits/running-time';
import { getClientNetwork } from './client-address.ts';

/** Connections of a network, ordered by when they were opened or last checked. */
type Network = Set<Connection>;
/** A connection, and the number of bytes that had been read from it at the last check. */
type Connection = { socket: Socket; bytesRead: number };

/** Maximum connections that are checked to find one to close. */
const maxChecks = 200;

/**
 * Limits the number of open connections. Above `maxConnections`, closes one of the network with the most connections,
 * preferably one that has been idle since it was last checked. A network that keeps opening connections thus takes none
 * from others. Requests have no additional cost.
 */
export function limitConnections(server: Server, maxConnections: number, onShed: OnShed): void {
  const networks = new Map<string, Network>();
  let openCount = 0;
  server.on('connection', (socket) => {
    const name = getClientNetwork({ headers: {}, socket }, 0);
    const network = networks.get(name) ?? new Set();
    networks.set(name, network);
    const connection = { socket, bytesRead: 0 };
    network.add(connection);
    openCount++;
    socket.once('close', () => {
      openCount--;
      network.delete(connection);
      if (network.size === 0 && networks.get(name) === network) networks.delete(name);
    });
    if (openCount <= maxConnections) return;
    closeOne(networks, connection, network);
    onShed('connection');
  });
}

/**
 * Closes one connection. Closes the new one if its network has the most connections and no idle one is found in the
 * largest networks.
 */
function closeOne(networks: ReadonlyMap<string, Network>, newConnection: Connection, newNetwork: Network): void {
  const size = networks.values().reduce((largestSize, network) => Math.max(largestSize, network.size), 0);
  const largest = [...networks.values().filter((network) => network.size === size)];
  let remainingChecks = maxChecks;
  let victim: Connection | undefined;
  for (const network of largest) {
    victim = findIdle(network, newConnection, remainingChecks);
    remainingChecks -= size;
    if (victim || remainingChecks <= 0) break;
  }
  victim ??= newNetwork.size === size ? newConnection : largest[0]?.values().next().value;
  victim?.socket.destroy();
}

/**
 * Finds an idle connection, preferably one that has been idle since the last check. Checked connections move to the
 * end.
 */
function findIdle(network: Network, newConnection: Connection, maxChecked: number): Connection | undefined {
  let recentlyActive: Connection | undefined;
  for (const connection of [...network.values().take(maxChecked)]) {
    const { socket, bytesRead } = connection;
    const isIdle = connection !== newConnection && !socket.destroyed && !hasPendingResponse(socket);
    if (isIdle && socket.bytesRead === bytesRead) return connection;
    if (isIdle) recentlyActive ??= connection;
    connection.bytesRead = socket.bytesRead;
    network.delete(connection);
    network.add(connection);
  }
  return recentlyActive;
}

/** Returns true if a response is pending. Node stores it in `_httpMessage` and exposes it in no other way. */
function hasPendingResponse(socket: Socket & { _httpMessage?: unknown }): boolean {
  return socket._httpMessage != null;
}

/**
 * Closes connections without traffic for `silentMs`: idle ones, and those whose client does not read the response. Each
 * is closed after twice that time at the latest, or three times if this process was paused in between. The timers of
 * `node:http` would be set twice per request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let previousBytes = 0;
    let lastActiveAt = getRunningTimeMs();
    const timer = setInterval(() => {
      const transferredBytes = socket.bytesRead + socket.bytesWritten;
      const now = getRunningTimeMs();
      if (transferredBytes !== previousBytes) lastActiveAt = now;
      // Timers may fire a millisecond early.
      else if (now - lastActiveAt >= silentMs - 1) socket.destroy();
      previousBytes = transferredBytes;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}

/**
 * Extends the header and request timeouts by the pauses of this process. `node:http` checks the clock before it reads,
 * and would respond with 408 to requests that arrived during the pause.
 */
export function extendTimeoutsByPauses(server: Server): void {
  startStopDetection();
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it checks for late requests.
    Object.defineProperty(server, name, { get: () => ms + getStoppedMs(ms) });
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Maximum pipelined requests of a connection. The connection of a client that sends more is closed. */
export const maxPipelined = 100;

/**
 * Delays pipelined requests until the previous response is complete. Their responses have no socket until then. A
 * client may send thousands of requests in one chunk before it reads a response (pipelining; RFC 9112, 9.3.2), and Node
 * reports all of them in the same turn of the event loop.
 */
export function createPipelineQueue(handle: Handle): Handle {
  const pipelinedCounts = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const count = (pipelinedCounts.get(socket) ?? 0) + 1;
    pipelinedCounts.set(socket, count);
    if (count > maxPipelined) {
      closeWithoutStacks(socket);
      return;
    }
    response.once('socket', () => {
      pipelinedCounts.set(socket, (pipelinedCounts.get(socket) ?? 1) - 1);
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
function closeWithoutStacks(socket: Socket): void {
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
