import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
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
import { noticeStops, runningNow, stoppedWithin } from '../../domain/work/running-time.ts';
import { postgresConfig, timeoutOf } from './postgres-url.ts';

/** The purposes of connection pools. */
export type PoolUse = 'requests' | 'reports' | 'changes' | 'migrations';

/** How long work at the database may take, in ms. Migrations take the time that they need. */
export type PostgresLimits = {
  /** A statement, by the purpose of its pool. */
  statements: { readonly [use in Exclude<PoolUse, 'migrations'>]: number };
  /** The wait for a lock. */
  lock: number;
  /** The silence of this process within a transaction. */
  idleInTransaction: number;
  /** The server's answer to a request to cancel a statement; after that the connection counts as lost. */
  cancel: number;
};

/** The limits of a process, the usual ones unless its URL sets others. */
function limitsFor(url: string): PostgresLimits {
  const statement = timeoutOf(url, 'statement_timeout');
  return {
    statements: { requests: statement ?? 5000, reports: statement ?? 3000, changes: statement ?? 5000 },
    lock: timeoutOf(url, 'lock_timeout') ?? 2000,
    idleInTransaction: timeoutOf(url, 'idle_in_transaction_session_timeout') ?? 5000,
    cancel: 1000,
  };
}

/** Connections of a pool, and the work that waits for one. */
export type PoolLoad = { used: number; idle: number; waiting: number };

/** Connections of a pool at once; undefined: as many as the operator configures. */
const mostConnections: { readonly [use in PoolUse]: number | undefined } = {
  requests: undefined,
  // A separate pool, so that statistics leave connections for calls.
  reports: 2,
  // A process that waits for a connection to learn of changes would serve what was revoked.
  changes: 1,
  migrations: 1,
};

const int8 = 20;
const idleMs = 5000;
/** How long a server that says nothing may take to close connections. */
const closingMs = 1000;

/**
 * Kysely on PostgreSQL. Our bigint columns hold times and counts below 2^53, so they are read as numbers.
 *
 * Nothing depends on a session, so that a pooler such as PgBouncer may give each transaction another connection to the
 * server: no startup parameters, no `set`, no named statements, no session locks. The server's limits are set within
 * each transaction; a statement outside of one is cancelled by this process. `onLost` reports an idle connection that
 * was lost. All pools of a process should get the same `renewal`.
 */
export function postgresDialect(
  location: PostgresLocation,
  onLost: (error: Error) => void,
  use: PoolUse,
  renewal = new Renewal(),
  limits = limitsFor(location.url),
): Dialect & { load: () => PoolLoad } {
  noticeStops();
  const max = mostConnections[use] ?? location.connections;
  const statementMs = use === 'migrations' ? undefined : limits.statements[use];
  const silence = statementMs === undefined ? undefined : { statementMs, cancelMs: limits.cancel };
  const pool = new pg.Pool({
    ...postgresConfig(location.url, location.authorities),
    max,
    idleTimeoutMillis: idleMs,
    fallback_application_name: 'toolhost',
    types: {
      getTypeParser: (oid, format) => (oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text')),
    },
  });
  // Without a listener a lost connection would end the process. The pool listens to idle ones, this to those in use.
  pool.on('error', onLost);
  const open = new Set<Promise<unknown>>();
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    const closed = new Promise<void>((resolve) => client.once('end', resolve));
    open.add(closed);
    void closed.then(() => open.delete(closed));
    renewal.opened(client);
  });
  const limited = {
    async connect() {
      for (;;) {
        const client = await borrow(pool);
        if (!renewal.isOutdated(client)) return new LimitedClient(client, silence, renewal);
        client.release(true);
      }
    },
    // The pool says that it has ended before its connections are closed, and until then the server counts them.
    async end() {
      await pool.end();
      await Promise.race([Promise.all(open), delay(closingMs, undefined, { ref: false })]);
    },
    options: pool.options,
  };
  return Object.assign(new PostgresDialect({ pool: limited }), {
    createDriver: () => new LimitedDriver(limited, beginning(statementMs, limits)),
    load: () => ({ used: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  });
}

/** Waits for a connection. The timers of the pool count stops of this process too, so it asks again after one. */
async function borrow(pool: pg.Pool): Promise<pg.PoolClient> {
  const until = runningNow() + (pool.options.connectionTimeoutMillis ?? 0);
  for (;;) {
    const askedAt = performance.now();
    try {
      return await pool.connect();
    } catch (error) {
      if (stoppedWithin(performance.now() - askedAt) === 0 || runningNow() >= until) throw error;
    }
  }
}

/** The statements that begin a transaction and set its time limits, in one round trip; 0 is no limit. */
function beginning(statementMs: number | undefined, limits: PostgresLimits): string {
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
class LimitedClient implements PostgresPoolClient {
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

/** The least time from one renewal to the next, in ms: a server that is to stay read-only must not be flooded with connections. */
const leastMs = 5000;

/**
 * Replaces connections to a PostgreSQL that takes no changes any more (SQLSTATE 25006). After a failover it may be the old
 * primary: it goes on answering reads with old rows, and a connection to it that is in use never ends by itself, while a
 * new connection finds the new primary. All pools of a process share one renewal, since only some of them write.
 */
export class Renewal {
  readonly #openedAt = new WeakMap<object, number>();
  /** Connections opened before this monotonic time are not used again. */
  #since = Number.NEGATIVE_INFINITY;

  opened(connection: object): void {
    this.#openedAt.set(connection, performance.now());
  }

  /** Called when the server of a connection refused a change because it is read-only. */
  begin(): void {
    const now = performance.now();
    if (now - this.#since >= leastMs) this.#since = now;
  }

  isOutdated(connection: object): boolean {
    return (this.#openedAt.get(connection) ?? Number.POSITIVE_INFINITY) < this.#since;
  }
}

/** The connection settings of a PostgreSQL server. */
export type PostgresLocation = {
  /** `postgres://…` */
  url: string;
  /** Most connections at once for the requests of this process. */
  connections: number;
  /** Certificate authorities in PEM that must have issued the server's certificate; they also switch TLS on. */
  authorities: string | undefined;
};
