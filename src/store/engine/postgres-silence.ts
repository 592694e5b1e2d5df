import type { Socket } from 'node:net';
import pg from 'pg';

/** What pg's connection has and its types leave out. */
type Connection = {
  stream: Socket;
  ssl: pg.ClientConfig['ssl'];
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: unknown): void;
};
type Client = { connection: Connection; host: string; port: number; processID: number; secretKey: unknown };
type ConnectionClass = new (config: { ssl?: pg.ClientConfig['ssl'] }) => Connection & pg.Connection;

/** How long the server may take to answer a request to cancel, in ms; then it, or the network to it, is taken for lost. */
const graceMs = 1000;

/**
 * Ends a statement whose answer does not begin within `ms`: first by asking the server to cancel it, and when that does
 * not help by closing the connection. pg's own `query_timeout` would leave the statement running, and its connection in
 * use by the next request.
 */
export function limitSilence(pgClient: pg.PoolClient, ms: number): void {
  const client = pgClient as unknown as Client;
  const { stream } = client.connection;
  let isCancelling = false;
  stream.setTimeout(ms);
  stream.on('timeout', () => {
    if (isCancelling) {
      stream.destroy();
      return;
    }
    isCancelling = true;
    stream.setTimeout(graceMs);
    requestCancel(client);
  });
  stream.on('data', () => {
    if (!isCancelling) return;
    isCancelling = false;
    stream.setTimeout(ms);
  });
}

/** Asks the server, over a connection of its own, to cancel what this client waits for (PostgreSQL protocol, 54.2.8). */
function requestCancel({ connection: { ssl }, host, port, processID, secretKey }: Client): void {
  const connection = new (pg.Connection as unknown as ConnectionClass)({ ssl });
  // Whoever waits is told by the connection that it waits on.
  connection.on('error', () => undefined);
  connection.once(ssl ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey));
  if (ssl) connection.once('connect', () => connection.requestSsl());
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}` as never, undefined as never);
  else connection.connect(port, host);
  connection.stream.setTimeout(graceMs, () => connection.stream.destroy());
  connection.stream.unref();
}
