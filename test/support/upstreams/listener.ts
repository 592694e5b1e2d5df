import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { listenLocally } from './local-server.ts';

/** Accepts and counts connections and never responds. Tests use it to prove that nothing connected. */
export type Listener = { readonly port: number; readonly connections: number; close(): Promise<void> };

export async function startListener(host = '127.0.0.1', port = 0): Promise<Listener> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
  });
  const local = await listenLocally(server, port, host);
  return {
    port: local.port,
    get connections() {
      return connections;
    },
    close: local.close,
  };
}

/** Starts a listener on a port that a configuration may name without the operator's permission. */
export const startWebPortListener = (host = '127.0.0.1') =>
  listenOnFreePort(8100, 8999, (port) => startListener(host, port));

/** Lets a test's own server listen on such a port, and returns the port. */
export const listenOnWebPort = (server: Server) =>
  listenOnFreePort(8100, 8999, async (port) => {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return port;
  });

/**
 * Returns a port on which nothing listens, for a program that must be given one or must find nothing there. It is below
 * the ephemeral range, so that no outgoing connection and no listener on port 0 takes it later.
 */
export async function findFreePort(): Promise<number> {
  const [port] = (await findFreePorts(1)) as [number];
  return port;
}

/** Returns several different free ports. */
export async function findFreePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, () => listenOnFreePort(12_000, 32_000, claimPort)));
}

/** Returns the first of two adjacent free ports: one for the service, and one for the API of its worked example. */
export const findFreeNeighbors = (): Promise<number> =>
  listenOnFreePort(12_000, 32_000, async (port) => (await claimPort(port + 1)) && claimPort(port));

async function claimPort(port: number): Promise<number> {
  await reservePort(port);
  const listener = await startListener('127.0.0.1', port);
  await listener.close();
  return port;
}

/**
 * Reserves a free port against the other test processes until this process ends, because its listener may start late or
 * never. Binds the UDP port of the same number, which TCP does not use.
 * @throws EADDRINUSE
 */
async function reservePort(port: number): Promise<void> {
  const socket = createSocket('udp4');
  socket.bind({ port, address: '127.0.0.1', exclusive: true });
  await once(socket, 'listening');
  socket.unref();
}

/** Listens on any free port from `first` to below `end`. */
async function listenOnFreePort<Result>(
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
