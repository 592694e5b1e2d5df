import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

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
export async function startWebPortListener(host = '127.0.0.1'): Promise<Listener> {
  for (;;) {
    try {
      return await startListener(host, randomInt(8100, 8999));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** A port that was free a moment ago, for a program that must be told one. */
export async function freePort(): Promise<number> {
  const listener = await startListener();
  await listener.close();
  return listener.port;
}
