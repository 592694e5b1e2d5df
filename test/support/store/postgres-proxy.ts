import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * A proxy between the service and PostgreSQL. It knows the protocol messages that matter and makes rare orders of
 * events deterministic.
 */
export type PostgresProxy = {
  /** URL of the same database through the proxy. */
  readonly url: string;
  /** Number of cancel requests that arrived, held or not. */
  readonly cancels: number;
  /** Number of open connections, without those of cancel requests. */
  readonly connections: number;
  /** Holds cancel requests from now on. */
  holdCancels(): void;
  /** Forwards the held cancel requests and waits until the server has processed them. */
  passCancels(): Promise<void>;
  /**
   * Breaks a connection at the COMMIT that follows a statement with this text: before the server receives it, or after
   * the server has responded.
   */
  loseCommit(when: Moment, after: string): void;
  /** Breaks a connection when the server has responded to the next statement that contains the text. */
  loseAnswer(to: string): void;
  close(): Promise<void>;
};

type Moment = 'before' | 'after';

/** PostgreSQL protocol, 54.7: CancelRequest. */
const cancelCode = 80877102;
const commit = Buffer.from('commit\0');

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const ordinary = new Set<Socket>();
  let [cancels, isHolding] = [0, false];
  let losing: { when: Moment; text: string } | undefined;
  let unanswered: string | undefined;
  let held: { request: Buffer; client: Socket }[] = [];
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const toServer = () => keep(connect(Number(target.port), target.hostname));
  const passCancel = async (request: Buffer) => {
    const server = toServer();
    server.write(request);
    // The server closes the connection once it has signaled the process of the statement.
    await once(server.resume(), 'close');
  };

  function pass(client: Socket, first: Buffer): void {
    const server = toServer();
    let [isMarked, isLast] = [false, false];
    const forward = (data: Buffer) => {
      if (unanswered !== undefined && data.includes(unanswered)) {
        isLast = true;
        unanswered = undefined;
      }
      if (losing && data.includes(losing.text)) isMarked = true;
      if (!losing || !isMarked || !data.includes(commit)) {
        server.write(data);
        return;
      }
      isLast = losing.when === 'after';
      losing = undefined;
      if (isLast) server.write(data);
      else {
        client.resetAndDestroy();
        server.destroy();
      }
    };
    server.on('data', (data: Buffer) => {
      if (!isLast) {
        client.write(data);
        return;
      }
      client.resetAndDestroy();
      server.destroy();
    });
    ordinary.add(client);
    client.once('close', () => {
      ordinary.delete(client);
      server.end();
    });
    server.once('close', () => client.destroy());
    forward(first);
    client.on('data', forward);
  }

  const server = createServer((client) => {
    keep(client).once('data', (first: Buffer) => {
      if (first.length < 16 || first.readInt32BE(4) !== cancelCode) {
        pass(client, first);
        return;
      }
      cancels++;
      if (isHolding) held.push({ request: first, client });
      else void passCancel(first).then(() => client.end());
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get cancels() {
      return cancels;
    },
    get connections() {
      return ordinary.size;
    },
    holdCancels() {
      isHolding = true;
    },
    async passCancels() {
      isHolding = false;
      const waiting = held;
      held = [];
      await Promise.all(waiting.map(({ request }) => passCancel(request)));
    },
    loseCommit(when, text) {
      losing = { when, text };
    },
    loseAnswer(text) {
      unanswered = text;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
