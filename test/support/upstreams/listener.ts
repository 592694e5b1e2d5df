import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Accepts and counts connections, and never answers: it proves that nothing connected. */
export type Listener = { readonly port: number; readonly connections: number; close(): Promise<void> };

export async function startListener(host = '127.0.0.1', port = 0): Promise<Listener> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(port, host), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A listener on a port that a configuration may name without the operator's leave. */
export const startWebPortListener = (host = '127.0.0.1') => onFreePort(8100, 8999, (port) => startListener(host, port));

/** Lets a server of a test's own listen on such a port, and gives it. */
export const listenOnWebPort = (server: Server) =>
  onFreePort(8100, 8999, async (port) => {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return port;
  });

/**
 * A port on which nothing listens, for a program that must be given one or that must find nothing there. It is below the
 * ephemeral range, so that no outgoing connection and no listener on port 0 takes it later.
 */
export async function freePort(): Promise<number> {
  const [port] = (await freePorts(1)) as [number];
  return port;
}

/** Several of them, which differ. */
export async function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, () => onFreePort(12_000, 32_000, take)));
}

/** The first of two neighbors that are free: one for the service, and one for the API of its worked example. */
export const freeNeighbors = (): Promise<number> =>
  onFreePort(12_000, 32_000, async (port) => (await take(port + 1)) && take(port));

async function take(port: number): Promise<number> {
  await reserve(port);
  const listener = await startListener('127.0.0.1', port);
  await listener.close();
  return port;
}

/**
 * Keeps a free port from the other processes of the tests until this one ends: what will listen there may start late or
 * never. The UDP port of the same number stands for it, because TCP does not use that. @throws EADDRINUSE
 */
async function reserve(port: number): Promise<void> {
  const socket = createSocket('udp4');
  socket.bind({ port, address: '127.0.0.1', exclusive: true });
  await once(socket, 'listening');
  socket.unref();
}

/** Listens on any free port from `first` on, and below `end`. */
async function onFreePort<Result>(
  first: number,
  end: number,
  listen: (port: number) => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await listen(randomInt(first, end));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}
