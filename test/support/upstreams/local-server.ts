import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A test's own HTTP or TCP server. */
export type LocalServer = {
  readonly port: number;
  readonly url: string;
  /** Open connections. */
  readonly sockets: ReadonlySet<Socket>;
  /** Destroys all connections. May be called twice. */
  close(): Promise<void>;
};

/** Lets a server listen on this machine, by default on a free port. */
export async function listenLocally(server: Server, port = 0, host = '127.0.0.1'): Promise<LocalServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(port, host), 'listening');
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    sockets,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
