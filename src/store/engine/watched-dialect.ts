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

/** Receives every fault of the database, with the driver's error. */
export type OnFault = (kind: FaultKind, error: unknown) => void;

/** Total attempts of work that the database ends in favour of other work. */
const mostAttempts = 4;
/** Pause before the first repetition, in ms. */
const retryPauseMs = 5;

/**
 * A dialect whose faults are reported and thrown as a `StoreFault`. A statement outside of a transaction that was ended
 * in favour of others (serialisation failure, deadlock) has done nothing and is sent again.
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

  /** A fault often ends the transaction or its connection already. Then the rollback fails, and the first fault is thrown. */
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
  /** The error of the last statement, or commit, that failed. */
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

/** Repeats work that the database ended in favour of other work: nothing of it has happened. */
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
 * Runs work in a transaction, and again when the database ended it in favour of another one (SQLSTATE 40001 and 40P01),
 * because nothing of it has happened then. So the work must have no effect outside of the database.
 * @throws StoreFault, and what the work throws
 */
export function transact<Result>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  return repeated(() => db.transaction().execute(work));
}
