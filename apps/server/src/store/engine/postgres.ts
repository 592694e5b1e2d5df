import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getRunningTimeMs, getStoppedMs, startStopDetection } from '@toolhost/limits/running-time';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type PostgresCursor,
  PostgresDialect,
  PostgresDriver,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely';
import pg from 'pg';
import { parseTimeout, toPostgresConfig } from './postgres-url.ts';

/** Purposes of connection pools. */
export type PoolPurpose = 'requests' | 'reports' | 'changes' | 'migrations';

/** Time limits of database work, in ms. Migrations have no limit. */
export type PostgresLimits = {
  /** Limit for a statement, by the purpose of its pool. */
  statements: { readonly [purpose in Exclude<PoolPurpose, 'migrations'>]: number };
  /** Limit for waiting for a lock. */
  lock: number;
  /** Limit for the idle time of this process within a transaction. */
  idleInTransaction: number;
  /** Limit for the server's reply to a cancel request. After it, the connection counts as lost. */
  cancel: number;
};

/** Returns the limits of a process: the defaults, unless its URL sets others. */
function getLimits(url: string): PostgresLimits {
  const statement = parseTimeout(url, 'statement_timeout');
  return {
    statements: { requests: statement ?? 5000, reports: statement ?? 3000, changes: statement ?? 5000 },
    lock: parseTimeout(url, 'lock_timeout') ?? 2000,
    idleInTransaction: parseTimeout(url, 'idle_in_transaction_session_timeout') ?? 5000,
    cancel: 1000,
  };
}

/** Connections of a pool, and the number of callers that wait for one. */
export type PoolLoad = { used: number; idle: number; waiting: number };

/** Maximum number of connections in a pool; undefined uses the operator's configuration. */
const maxConnections: { readonly [purpose in PoolPurpose]: number | undefined } = {
  requests: undefined,
  // A separate pool, so that statistics leave connections for calls.
  reports: 2,
  // Exclusive to the poll for changes. A process that waits for a connection to learn of changes would serve revoked
  // credentials.
  changes: 1,
  migrations: 1,
};

/** Type OID of bigint columns. */
const int8 = 20;
const poolIdleMs = 5000;
/** Maximum time to wait for a silent server to close connections. */
const closeTimeoutMs = 1000;

/**
 * Creates the Kysely dialect for PostgreSQL. The bigint columns contain times and counts below 2^53, so they are read
 * as numbers.
 *
 * Nothing depends on a session, so a pooler such as PgBouncer may run each transaction on another server connection:
 * no startup parameters, no `set`, no named statements, no session locks. The server's limits are set within each
 * transaction. This process cancels a statement outside a transaction. `onConnectionLost` reports the loss of an idle
 * connection. All pools of a process should share one `renewal`.
 */
export function createPostgresDialect(
  location: PostgresLocation,
  onConnectionLost: (error: Error) => void,
  purpose: PoolPurpose,
  renewal = new Renewal(),
  limits = getLimits(location.url),
): Dialect & { load: () => PoolLoad } {
  startStopDetection();
  const max = maxConnections[purpose] ?? location.maxConnections;
  const statementMs = purpose === 'migrations' ? undefined : limits.statements[purpose];
  const silenceLimits = statementMs === undefined ? undefined : { statementMs, cancelMs: limits.cancel };
  const pool = new pg.Pool({
    ...toPostgresConfig(location.url, location.authorities),
    max,
    idleTimeoutMillis: poolIdleMs,
    fallback_application_name: 'toolhost',
    types: {
      getTypeParser: (oid, format) => (oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text')),
    },
  });
  // Without a listener, a lost connection would end the process. The pool listens to idle connections, this listener to
  // those in use.
  pool.on('error', onConnectionLost);
  const openConnections = new Set<Promise<unknown>>();
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    const closed = new Promise<void>((resolve) => client.once('end', resolve));
    openConnections.add(closed);
    void closed.then(() => openConnections.delete(closed));
    renewal.recordOpened(client);
  });
  const limitedPool = {
    async connect() {
      for (;;) {
        const client = await checkOut(pool);
        if (!renewal.isOutdated(client)) return new LimitedClient(client, silenceLimits, renewal);
        client.release(true);
      }
    },
    // The pool reports its end before its connections are closed, and the server counts them until then.
    async end() {
      await pool.end();
      await Promise.race([Promise.all(openConnections), delay(closeTimeoutMs, undefined, { ref: false })]);
    },
    options: pool.options,
  };
  return Object.assign(new PostgresDialect({ pool: limitedPool }), {
    createDriver: () => new LimitedDriver(limitedPool, formatBegin(statementMs, limits)),
    load: () => ({ used: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  });
}

/** Waits for a connection. Retries after a stop of this process, because the timers of the pool count that time. */
async function checkOut(pool: pg.Pool): Promise<pg.PoolClient> {
  const deadline = getRunningTimeMs() + (pool.options.connectionTimeoutMillis ?? 0);
  for (;;) {
    const attemptStartedAt = performance.now();
    try {
      return await pool.connect();
    } catch (error) {
      if (getStoppedMs(performance.now() - attemptStartedAt) === 0 || getRunningTimeMs() >= deadline) throw error;
    }
  }
}

/** Returns the statements that begin a transaction and set its time limits, in one round trip. 0 means no limit. */
function formatBegin(statementMs: number | undefined, limits: PostgresLimits): string {
  const settings = {
    statement_timeout: statementMs ?? 0,
    lock_timeout: statementMs === undefined ? 0 : limits.lock,
    idle_in_transaction_session_timeout: statementMs === undefined ? 0 : limits.idleInTransaction,
  };
  return ['begin', ...Object.entries(settings).map(([name, ms]) => `set local ${name} = ${ms}`)].join('; ');
}

class LimitedDriver extends PostgresDriver {
  readonly #begin: string;

  constructor(pool: PostgresPool, begin: string) {
    super({ pool });
    this.#begin = begin;
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(this.#begin));
  }
}

/** Members of pg's connection that are missing from its types. */
type Connection = {
  stream: Socket;
  ssl: pg.ClientConfig['ssl'];
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: unknown): void;
};
type Client = { connection: Connection; host: string; port: number; processID: number; secretKey: unknown };
type ConnectionClass = new (config: { ssl?: pg.ClientConfig['ssl'] }) => Connection & pg.Connection;

/**
 * Maximum time that the server may be silent after a statement, and after a cancel request. Extended after a stop of
 * this process.
 */
type SilenceLimits = { statementMs: number; cancelMs: number };

/** SQLSTATE query_canceled. */
const queryCanceled = '57014';
/** SQLSTATE read_only_sql_transaction. */
const readOnlyTransaction = '25006';

/**
 * Checked-out connection of the pool that limits the silence of each of its statements. A statement outside a
 * transaction whose reply does not start in time is canceled on the server, and the connection is closed if that does
 * not help. pg's own `query_timeout` would leave the statement running on a connection that the next request uses.
 *
 * A cancel request names a connection, not a statement, and travels on a separate connection. When it arrives, its
 * statement may have ended and another one begun. After such a request, the connection therefore accepts no further
 * statement and is closed instead of being returned to the pool. In a transaction, the server's own limits end a
 * statement, so this process cancels nothing. A server that is still silent after them counts as lost.
 */
class LimitedClient implements PostgresPoolClient {
  readonly #client: pg.PoolClient;
  /** Undefined means no limit. */
  readonly #silence: SilenceLimits | undefined;
  readonly #renewal: Renewal;
  #isCanceled = false;

  constructor(client: pg.PoolClient, silenceLimits: SilenceLimits | undefined, renewal: Renewal) {
    this.#client = client;
    this.#silence = silenceLimits;
    this.#renewal = renewal;
  }

  query<Row>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<Row>>;
  query<Row>(cursor: PostgresCursor<Row>): PostgresCursor<Row>;
  query(text: unknown, parameters: readonly unknown[] = []): never {
    return this.#run(text as string, parameters) as never;
  }

  release(discard?: boolean): void {
    this.#client.release(discard || this.#isCanceled || this.#renewal.isOutdated(this.#client));
  }

  async #run(text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#isCanceled)
      throw Object.assign(new Error('an earlier statement on this connection was canceled'), { code: queryCanceled });
    const stopWatching = this.#silence === undefined ? undefined : this.#watch(this.#silence);
    try {
      return await this.#client.query(text, [...parameters]);
    } catch (error) {
      if ((error as { code?: string }).code === readOnlyTransaction) this.#renewal.renew();
      throw error;
    } finally {
      stopWatching?.();
    }
  }

  /** Limits the silence of the next statement. The returned function ends the limit. */
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
      const remainingMs = limitMs - (silentMs - getStoppedMs(silentMs));
      if (remainingMs >= 1) {
        // Data that the server sent while this process was stopped has not been read yet.
        stream.setTimeout(remainingMs);
        return;
      }
      if (isInTransaction || this.#isCanceled) {
        stream.destroy();
        return;
      }
      this.#isCanceled = true;
      limitMs = cancelMs;
      silence = { bytesRead, since: now };
      stream.setTimeout(cancelMs);
      requestCancel(client, cancelMs);
    };
    stream.on('timeout', onSilence);
    stream.setTimeout(limitMs);
    return () => {
      // A connection without a statement may be silent for as long as it stays in the pool.
      stream.setTimeout(0);
      stream.off('timeout', onSilence);
    };
  }
}

/**
 * Requests that the server cancel this client's statement, over a separate connection that lasts at most `ms`
 * (PostgreSQL protocol, 54.2.8).
 */
function requestCancel({ connection: { ssl }, host, port, processID, secretKey }: Client, ms: number): void {
  const connection = new (pg.Connection as unknown as ConnectionClass)({ ssl });
  // The caller receives the error from the connection that it waits on.
  connection.on('error', () => undefined);
  connection.once(ssl ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey));
  if (ssl) connection.once('connect', () => connection.requestSsl());
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}` as never, undefined as never);
  else connection.connect(port, host);
  connection.stream.setTimeout(ms, () => connection.stream.destroy());
  connection.stream.unref();
}

/** Minimum time between two renewals, in ms. A server that stays read-only must not be flooded with connections. */
const minRenewalIntervalMs = 5000;

/**
 * Replaces connections to a PostgreSQL server that no longer accepts changes (SQLSTATE 25006). After a failover, it
 * may be the old primary. It continues to answer reads with old rows, and a connection in use never ends by itself,
 * while a new connection finds the new primary. All pools of a process share one renewal, because only some of them
 * write.
 */
export class Renewal {
  readonly #openedAt = new WeakMap<object, number>();
  /** Connections that were opened before this monotonic time are not reused. */
  #since = Number.NEGATIVE_INFINITY;

  recordOpened(connection: object): void {
    this.#openedAt.set(connection, performance.now());
  }

  /** Called when the server of a connection rejected a change because it is read-only. */
  renew(): void {
    const now = performance.now();
    if (now - this.#since >= minRenewalIntervalMs) this.#since = now;
  }

  isOutdated(connection: object): boolean {
    return (this.#openedAt.get(connection) ?? Number.POSITIVE_INFINITY) < this.#since;
  }
}

/** Connection settings of a PostgreSQL server. */
export type PostgresLocation = {
  /** `postgres://…` */
  url: string;
  /** Maximum number of connections for the requests of this process. */
  maxConnections: number;
  /** Authorities in PEM, one of which must have issued the server's certificate. Setting them also enables TLS. */
  authorities: string | undefined;
};
