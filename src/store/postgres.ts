import type { Socket } from 'node:net';
import { type Dialect, PostgresDialect } from 'kysely';
import pg from 'pg';

const int8 = 20;

/** What a statement of a request may wait for. */
const limits: pg.PoolConfig = {
  statement_timeout: 5000,
  lock_timeout: 2000,
  idle_in_transaction_session_timeout: 5000,
  idleTimeoutMillis: 5000,
};

/** What a pool of connections is for: how many it may open, and what its statements may wait for. */
export type PoolUse = 'requests' | 'reports' | 'changes' | 'migrations';

const pools: { [Use in PoolUse]: pg.PoolConfig } = {
  requests: { ...limits, max: 10 },
  // However many people ask for statistics, calls find a connection.
  reports: { ...limits, max: 2, statement_timeout: 3000 },
  // A process that waits for a connection to learn of changes would serve what was revoked.
  changes: { ...limits, max: 1 },
  // These take the time that they need.
  migrations: { max: 1 },
};

/** Longer than any statement may take and any idle connection is kept: the database, or the way to it, has gone. */
const silenceMs = 6000;

/** Kysely on PostgreSQL. Our bigint columns hold times and counts below 2^53, so they are read as numbers. */
export function postgresDialect(url: string, onLost: (error: Error) => void, use: PoolUse): Dialect {
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: 2000,
    ...pools[use],
    types: {
      getTypeParser: (oid, format) => (oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text')),
    },
  });
  // Without a listener a connection that is lost would end the process: the pool listens to idle ones, we to those in use.
  pool.on('error', onLost);
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    if (use !== 'migrations') closeWhenSilent(client);
  });
  return new PostgresDialect({ pool });
}

/** Nothing else ends a query whose answer was lost on the way, and its connection must not be used again. */
function closeWhenSilent(client: pg.PoolClient): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.setTimeout(silenceMs, () => stream.destroy());
}
