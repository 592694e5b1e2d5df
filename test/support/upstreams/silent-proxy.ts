import { connect, createServer, type Socket } from 'node:net';
import { listenLocally } from './local-server.ts';

/** A proxy between a client and a server that can fall silent: connections stay open and no data passes. */
export type SilentProxy = {
  readonly port: number;
  silence(): void;
  /** Breaks every existing and new connection until `heal` is called. */
  cut(): void;
  /** Lets new connections through. The old ones stay silent permanently. */
  heal(): void;
  close(): Promise<void>;
};

export async function startSilentProxy(target: { host: string; port: number }): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  let isCut = false;
  const trackSocket = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    trackSocket(client);
    if (isCut) client.destroy();
    if (isSilent || isCut) return;
    const upstream = connect(target.port, target.host);
    trackSocket(upstream);
    client.pipe(upstream);
    upstream.pipe(client);
  });
  const { port, close } = await listenLocally(server);
  return {
    port,
    silence() {
      isSilent = true;
      for (const socket of sockets) socket.unpipe();
    },
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    heal() {
      isSilent = false;
      isCut = false;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await close();
    },
  };
}
