import { setTimeout as delay } from 'node:timers/promises';
import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  Driver,
  Kysely,
  QueryResult,
  Transaction,
  TransactionSettings,
} from 'kysely';
import type { Tables } from '../schema.ts';
import { type FaultKind, faultKindOf, leavesOpen, StoreFault, toCommitFault, toStoreFault } from './faults.ts';

/** Called for every database error, with the driver's error. */
export type OnFault = (kind: FaultKind, error: unknown) => void;

/** Maximum number of attempts for work that the database ended in favor of other work. */
const mostAttempts = 4;
/** Pause before the first retry, in ms. */
const retryPauseMs = 5;

/**
 * Wraps a dialect so that its errors are reported and thrown as a `StoreFault`. A statement outside a transaction
 * that was ended in favor of others (serialization failure, deadlock) has had no effect and is retried.
 */
export function watchedDialect(dialect: Dialect, onFault: OnFault): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new WatchedDriver(dialect.createDriver(), onFault),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class WatchedDriver implements Driver {
  readonly #inner: Driver;
  readonly #onFault: OnFault;

  constructor(inner: Driver, onFault: OnFault) {
    this.#inner = inner;
    this.#onFault = onFault;
  }

  init(): Promise<void> {
    return this.#reported(this.#inner.init());
  }

  async acquireConnection(): Promise<WatchedConnection> {
    return new WatchedConnection(await this.#reported(this.#inner.acquireConnection()), this.#onFault);
  }

  async beginTransaction(connection: WatchedConnection, settings: TransactionSettings): Promise<void> {
    connection.isInTransaction = true;
    await this.#reported(this.#inner.beginTransaction(connection.inner, settings));
  }

  async commitTransaction(connection: WatchedConnection): Promise<void> {
    try {
      await this.#inner.commitTransaction(connection.inner);
    } catch (error) {
      connection.fault = toCommitFault(error);
      this.#onFault(faultKindOf(error), error);
      throw connection.fault;
    }
    connection.isInTransaction = false;
  }

  /**
   * Rolls back. An error has often already ended the transaction or its connection. Then the rollback fails, and the
   * first error is thrown.
   */
  async rollbackTransaction(connection: WatchedConnection): Promise<void> {
    try {
      await this.#inner.rollbackTransaction(connection.inner);
    } catch (error) {
      throw connection.fault ?? reported(error, this.#onFault);
    }
    connection.isInTransaction = false;
  }

  releaseConnection(connection: WatchedConnection): Promise<void> {
    return this.#inner.releaseConnection(connection.inner);
  }

  destroy(): Promise<void> {
    return this.#inner.destroy();
  }

  #reported<Result>(work: Promise<Result>): Promise<Result> {
    return work.catch((error: unknown) => {
      throw reported(error, this.#onFault);
    });
  }
}

class WatchedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #onFault: OnFault;
  isInTransaction = false;
  /** Error of the last failed statement or commit. */
  fault: unknown;

  constructor(inner: DatabaseConnection, onFault: OnFault) {
    this.inner = inner;
    this.#onFault = onFault;
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.isInTransaction ? this.#execute<Row>(query) : repeated(() => this.#execute<Row>(query));
  }

  async #execute<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      return await this.inner.executeQuery<Row>(query);
    } catch (error) {
      const fault = reported(error, this.#onFault);
      if (fault instanceof StoreFault) fault.isOpen = !this.isInTransaction && leavesOpen(error);
      this.fault = fault;
      throw fault;
    }
  }

  streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    return this.inner.streamQuery<Row>(query, chunkSize);
  }
}

/** Retries work that the database ended in favor of other work. It has had no effect. */
async function repeated<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isOvertaken = error instanceof StoreFault && error.fault === 'serialization';
      if (!isOvertaken || attempt === mostAttempts) throw error;
    }
    await delay(retryPauseMs * attempt);
  }
}

function reported(error: unknown, onFault: OnFault): unknown {
  onFault(faultKindOf(error), error);
  return toStoreFault(error);
}

/**
 * Runs work in a transaction, and retries it if the database ended it in favor of another transaction (SQLSTATE 40001
 * and 40P01), because it has had no effect then. The work must therefore have no effect outside the database.
 * @throws StoreFault, and any error from the work
 */
export function transact<Result>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  return repeated(() => db.transaction().execute(work));
}
