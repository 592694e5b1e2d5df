import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { listenLocally } from '../upstreams/local-server.ts';

/**
 * A proxy between the service and PostgreSQL. It knows the protocol messages that matter and makes rare orders of
 * events deterministic.
 */
export type PostgresProxy = {
  /** URL of the same database through the proxy. */
  readonly url: string;
  /** Number of cancel requests that arrived, held or not. */
  readonly cancelRequestCount: number;
  /** Number of open connections, without those of cancel requests. */
  readonly connectionCount: number;
  /** Holds cancel requests from now on. */
  holdCancelRequests(): void;
  /** Forwards the held cancel requests and waits until the server has processed them. */
  forwardCancelRequests(): Promise<void>;
  /**
   * Breaks a connection at the COMMIT that follows a statement with this text: before the server receives it, or after
   * the server has responded.
   */
  dropAtCommit(when: Moment, marker: string): void;
  /** Breaks a connection when the server has responded to the next statement that contains the text. */
  dropAtResponse(marker: string): void;
  close(): Promise<void>;
};

type Moment = 'before' | 'after';

/** PostgreSQL protocol, 54.7: CancelRequest. */
const cancelCode = 80877102;
const commit = Buffer.from('commit\0');

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const clientConnections = new Set<Socket>();
  let [cancelRequestCount, isHolding] = [0, false];
  let commitDrop: { when: Moment; text: string } | undefined;
  let responseDropMarker: string | undefined;
  let heldCancelRequests: { request: Buffer; client: Socket }[] = [];
  const trackSocket = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const toServer = () => trackSocket(connect(Number(target.port), target.hostname));
  const forwardCancelRequest = async (request: Buffer) => {
    const server = toServer();
    server.write(request);
    // The server closes the connection once it has signaled the process of the statement.
    await once(server.resume(), 'close');
  };

  function forwardClient(client: Socket, first: Buffer): void {
    const server = toServer();
    let [hasSentMarker, isDropping] = [false, false];
    const forward = (data: Buffer) => {
      if (responseDropMarker !== undefined && data.includes(responseDropMarker)) {
        isDropping = true;
        responseDropMarker = undefined;
      }
      if (commitDrop && data.includes(commitDrop.text)) hasSentMarker = true;
      if (!commitDrop || !hasSentMarker || !data.includes(commit)) {
        server.write(data);
        return;
      }
      isDropping = commitDrop.when === 'after';
      commitDrop = undefined;
      if (isDropping) server.write(data);
      else {
        client.resetAndDestroy();
        server.destroy();
      }
    };
    server.on('data', (data: Buffer) => {
      if (!isDropping) {
        client.write(data);
        return;
      }
      client.resetAndDestroy();
      server.destroy();
    });
    clientConnections.add(client);
    client.once('close', () => {
      clientConnections.delete(client);
      server.end();
    });
    server.once('close', () => client.destroy());
    forward(first);
    client.on('data', forward);
  }

  const server = createServer((client) => {
    trackSocket(client).once('data', (first: Buffer) => {
      if (first.length < 16 || first.readInt32BE(4) !== cancelCode) {
        forwardClient(client, first);
        return;
      }
      cancelRequestCount++;
      if (isHolding) heldCancelRequests.push({ request: first, client });
      else void forwardCancelRequest(first).then(() => client.end());
    });
  });
  const { port, close } = await listenLocally(server);
  const url = new URL(databaseUrl);
  url.port = String(port);
  return {
    url: url.href,
    get cancelRequestCount() {
      return cancelRequestCount;
    },
    get connectionCount() {
      return clientConnections.size;
    },
    holdCancelRequests() {
      isHolding = true;
    },
    async forwardCancelRequests() {
      isHolding = false;
      const waiting = heldCancelRequests;
      heldCancelRequests = [];
      await Promise.all(waiting.map(({ request }) => forwardCancelRequest(request)));
    },
    dropAtCommit(when, text) {
      commitDrop = { when, text };
    },
    dropAtResponse(text) {
      responseDropMarker = text;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await close();
    },
  };
}
