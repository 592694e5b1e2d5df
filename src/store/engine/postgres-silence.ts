import type { Socket } from 'node:net';
import pg from 'pg';

/** Members of pg's connection that its types leave out. */
type Connection = {
  stream: Socket;
  ssl: pg.ClientConfig['ssl'];
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: unknown): void;
};
type Client = { connection: Connection; host: string; port: number; processID: number; secretKey: unknown };
type ConnectionClass = new (config: { ssl?: pg.ClientConfig['ssl'] }) => Connection & pg.Connection;

/** How long the server may take to answer a request to cancel, in ms; after that the connection counts as lost. */
const graceMs = 1000;

/**
 * Ends a statement whose answer does not begin within `ms`: asks the server to cancel it, and closes the connection when
 * that does not help. pg's own `query_timeout` would leave the statement running on a connection that the next request
 * uses.
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

/** Asks the server, over a separate connection, to cancel this client's statement (PostgreSQL protocol, 54.2.8). */
function requestCancel({ connection: { ssl }, host, port, processID, secretKey }: Client): void {
  const connection = new (pg.Connection as unknown as ConnectionClass)({ ssl });
  // The caller gets the error from the connection that it waits on.
  connection.on('error', () => undefined);
  connection.once(ssl ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey));
  if (ssl) connection.once('connect', () => connection.requestSsl());
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}` as never, undefined as never);
  else connection.connect(port, host);
  connection.stream.setTimeout(graceMs, () => connection.stream.destroy());
  connection.stream.unref();
}
