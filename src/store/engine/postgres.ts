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
import { LimitedClient } from './limited-client.ts';
import type { PostgresLocation } from './postgres-location.ts';
import { postgresConfig } from './postgres-url.ts';
import { Renewal } from './renewal.ts';

/** The purposes of connection pools: how many connections each may open, and how long its statements may take. */
export type PoolUse = 'requests' | 'reports' | 'changes' | 'migrations';

/** `max` undefined: as many as the operator configures. `statementMs` undefined: no limit. */
const pools: { [Use in PoolUse]: { max?: number; statementMs?: number } } = {
  requests: { statementMs: 5000 },
  // A separate pool, so that statistics leave connections for calls.
  reports: { max: 2, statementMs: 3000 },
  // A process that waits for a connection to learn of changes would serve what was revoked.
  changes: { max: 1, statementMs: 5000 },
  // These take the time that they need.
  migrations: { max: 1 },
};

const int8 = 20;
const idleMs = 5000;
const lockMs = 2000;
const idleInTransactionMs = 5000;
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
): Dialect {
  const { max = location.connections, statementMs } = pools[use];
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
        const client = await pool.connect();
        if (!renewal.isOutdated(client)) return new LimitedClient(client, statementMs, renewal);
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
    createDriver: () => new LimitedDriver(limited, statementMs),
  });
}

/** Begins transactions and sets their time limits in one round trip. */
class LimitedDriver extends PostgresDriver {
  readonly #begin: string;

  constructor(pool: PostgresPool, statementMs: number | undefined) {
    super({ pool });
    const limits = {
      statement_timeout: statementMs ?? 0,
      lock_timeout: statementMs === undefined ? 0 : lockMs,
      idle_in_transaction_session_timeout: statementMs === undefined ? 0 : idleInTransactionMs,
    };
    this.#begin = ['begin', ...Object.entries(limits).map(([name, ms]) => `set local ${name} = ${ms}`)].join('; ');
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(this.#begin));
  }
}
