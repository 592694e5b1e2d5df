import type { Socket } from 'node:net';
import type { PostgresCursor, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import pg from 'pg';
import { stoppedWithin } from '../../domain/work/running-time.ts';
import type { Renewal } from './renewal.ts';

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

/** How long the server may say nothing after a statement, and after a request to cancel one; longer after a stop. */
type SilenceLimits = { statementMs: number; cancelMs: number };

/** SQLSTATE query_canceled. */
const cancelled = '57014';
/** SQLSTATE read_only_sql_transaction. */
const readOnly = '25006';

/**
 * A connection of the pool while it is lent, with a limit on the silence of each of its statements. A statement outside
 * of a transaction whose answer does not begin in time is cancelled at the server, and the connection is closed when that
 * does not help. pg's own `query_timeout` would leave the statement running on a connection that the next request uses.
 *
 * A request to cancel names a connection, not a statement, and travels on a connection of its own: when it arrives, its
 * statement may have ended and another one begun. So after such a request the connection takes no further statement, and
 * is closed instead of being given back. In a transaction the server's own limits end a statement, so nothing is cancelled
 * from here; a server that is still silent after them is lost.
 */
export class LimitedClient implements PostgresPoolClient {
  readonly #client: pg.PoolClient;
  /** Undefined: no limit. */
  readonly #silence: SilenceLimits | undefined;
  readonly #renewal: Renewal;
  #isCancelled = false;

  constructor(client: pg.PoolClient, silence: SilenceLimits | undefined, renewal: Renewal) {
    this.#client = client;
    this.#silence = silence;
    this.#renewal = renewal;
  }

  query<Row>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<Row>>;
  query<Row>(cursor: PostgresCursor<Row>): PostgresCursor<Row>;
  query(text: unknown, parameters: readonly unknown[] = []): never {
    return this.#run(text as string, parameters) as never;
  }

  release(discard?: boolean): void {
    this.#client.release(discard || this.#isCancelled || this.#renewal.isOutdated(this.#client));
  }

  async #run(text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#isCancelled)
      throw Object.assign(new Error('an earlier statement of this connection was cancelled'), { code: cancelled });
    const stopWatching = this.#silence === undefined ? undefined : this.#watch(this.#silence);
    try {
      return await this.#client.query(text, [...parameters]);
    } catch (error) {
      if ((error as { code?: string }).code === readOnly) this.#renewal.begin();
      throw error;
    } finally {
      stopWatching?.();
    }
  }

  /** Limits the silence of the statement that follows; the result ends the limit. */
  #watch({ statementMs, cancelMs }: SilenceLimits): () => void {
    const client = this.#client as unknown as Client;
    const { stream } = client.connection;
    const isInTransaction = this.#client.getTransactionStatus() !== 'I';
    let limitMs = isInTransaction ? statementMs + cancelMs : statementMs;
    let silence = { bytesRead: -1, since: 0 };
    const onSilence = () => {
      const { timeout = 0, bytesRead } = stream;
      const now = performance.now();
      if (bytesRead !== silence.bytesRead) silence = { bytesRead, since: now - timeout };
      const silentMs = now - silence.since;
      const left = limitMs - (silentMs - stoppedWithin(silentMs));
      if (left >= 1) {
        // What the server sent while this process was stopped has not been read yet.
        stream.setTimeout(left);
        return;
      }
      if (isInTransaction || this.#isCancelled) {
        stream.destroy();
        return;
      }
      this.#isCancelled = true;
      limitMs = cancelMs;
      silence = { bytesRead, since: now };
      stream.setTimeout(cancelMs);
      requestCancel(client, cancelMs);
    };
    stream.on('timeout', onSilence);
    stream.setTimeout(limitMs);
    return () => {
      // A connection without a statement may be silent for as long as the pool keeps it.
      stream.setTimeout(0);
      stream.off('timeout', onSilence);
    };
  }
}

/**
 * Asks the server, over a separate connection that lasts `ms` at most, to cancel this client's statement (PostgreSQL
 * protocol, 54.2.8).
 */
function requestCancel({ connection: { ssl }, host, port, processID, secretKey }: Client, ms: number): void {
  const connection = new (pg.Connection as unknown as ConnectionClass)({ ssl });
  // The caller gets the error from the connection that it waits on.
  connection.on('error', () => undefined);
  connection.once(ssl ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey));
  if (ssl) connection.once('connect', () => connection.requestSsl());
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}` as never, undefined as never);
  else connection.connect(port, host);
  connection.stream.setTimeout(ms, () => connection.stream.destroy());
  connection.stream.unref();
}
