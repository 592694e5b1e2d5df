import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { OnGivenUp } from '../domain/work/memory-budget.ts';
import { noticeStops, runningNow, stoppedWithin } from '../domain/work/running-time.ts';
import { clientNetwork } from './client-address.ts';

/** The connections of a network, in the order in which they came or were last looked at. */
type Network = Set<Connection>;
type Connection = { socket: Socket /** When it was last looked at. */; bytesRead: number };

/** Connections that are looked at to find one to close. */
const mostLooks = 200;

/**
 * Above `most` connections, one of the network that has most is closed: an idle one that has done nothing since it was last
 * looked at, if there is one. So a network that opens ever more takes none from others. A request costs nothing here.
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

/** Closes a connection: the new one itself when its network has most, and no idle one of those that have most is found. */
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

/** One that is idle, and has been since the last look where that is known. Those that were looked at move to the end. */
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

/** Whether a request is being answered. Node keeps its response here, and tells it in no other way. */
function isBusy(socket: Socket & { _httpMessage?: unknown }): boolean {
  return socket._httpMessage != null;
}

/**
 * Closes connections without traffic for `silentMs`: idle ones, and those whose client does not read what was written.
 * They are closed after twice that at the latest, or three times that where this process was stopped meanwhile. The
 * timers of `node:http` would be set twice for every request.
 */
export function closeSilentConnections(server: Server, silentMs: number): void {
  server.on('connection', (socket) => {
    let before = 0;
    let since = runningNow();
    const timer = setInterval(() => {
      const moved = socket.bytesRead + socket.bytesWritten;
      const now = runningNow();
      if (moved !== before) since = now;
      // Timers may be a millisecond early.
      else if (now - since >= silentMs - 1) socket.destroy();
      before = moved;
    }, silentMs);
    timer.unref();
    socket.on('close', () => clearInterval(timer));
  });
}

/**
 * Makes the time for the headers and for the whole of a request longer by the stops of this process. `node:http` looks at
 * the clock before it reads, and would answer 408 to requests that have arrived meanwhile.
 */
export function prolongTimeByStops(server: Server): void {
  noticeStops();
  for (const name of ['headersTimeout', 'requestTimeout'] as const) {
    const ms = server[name];
    // `node:http` reads both whenever it looks for late requests.
    Object.defineProperty(server, name, { get: () => ms + stoppedWithin(ms) });
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Most requests of a connection that wait for the answers to earlier ones; a client that sends more is cut off. */
export const mostWaiting = 100;

/**
 * Lets the requests of a connection wait that came before an earlier one was answered; their responses have no socket until
 * then. A client may send thousands of them in one piece, before it reads an answer (pipelining; RFC 9112, 9.3.2), and Node
 * reports all of them in the same turn.
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
      // The answer before this one has ended in the same turn.
      setImmediate(() => {
        if (!socket.destroyed) handle(request, response);
      });
    });
  };
}

/**
 * Ends a connection. Node makes an error for each of its requests, also for thousands that it has yet to read of the same
 * piece, and the stacks of these errors take most of the time.
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
