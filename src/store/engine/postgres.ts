import { setTimeout as delay } from 'node:timers/promises';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  PostgresDialect,
  PostgresDriver,
  type PostgresPool,
} from 'kysely';
import pg from 'pg';
import { noticeStops, runningNow, stoppedWithin } from '../../domain/work/running-time.ts';
import { LimitedClient } from './limited-client.ts';
import type { PostgresLocation } from './postgres-location.ts';
import { postgresConfig, timeoutOf } from './postgres-url.ts';
import { Renewal } from './renewal.ts';

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
): Dialect {
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
