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
import {
  DatabaseError,
  type DatabaseErrorKind,
  getDatabaseErrorKind,
  mayHaveExecuted,
  toCommitError,
  toDatabaseError,
} from './database-errors.ts';

/** Called for every database error, with the driver's error. */
export type OnDatabaseError = (kind: DatabaseErrorKind, error: unknown) => void;

/** Maximum number of attempts for work that the database ended in favor of other work. */
const maxAttempts = 4;
/** Pause before the first retry, in ms. */
const retryPauseMs = 5;

/**
 * Wraps a dialect so that its errors are reported and thrown as a `DatabaseError`. A statement outside a transaction
 * that was ended in favor of others (serialization failure, deadlock) has had no effect and is retried.
 */
export function toWatchedDialect(dialect: Dialect, onDatabaseError: OnDatabaseError): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new WatchedDriver(dialect.createDriver(), onDatabaseError),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class WatchedDriver implements Driver {
  readonly #inner: Driver;
  readonly #onDatabaseError: OnDatabaseError;

  constructor(inner: Driver, onDatabaseError: OnDatabaseError) {
    this.#inner = inner;
    this.#onDatabaseError = onDatabaseError;
  }

  init(): Promise<void> {
    return this.#reportErrors(this.#inner.init());
  }

  async acquireConnection(): Promise<WatchedConnection> {
    return new WatchedConnection(await this.#reportErrors(this.#inner.acquireConnection()), this.#onDatabaseError);
  }

  async beginTransaction(connection: WatchedConnection, settings: TransactionSettings): Promise<void> {
    connection.isInTransaction = true;
    await this.#reportErrors(this.#inner.beginTransaction(connection.inner, settings));
  }

  async commitTransaction(connection: WatchedConnection): Promise<void> {
    try {
      await this.#inner.commitTransaction(connection.inner);
    } catch (error) {
      connection.lastError = toCommitError(error);
      this.#onDatabaseError(getDatabaseErrorKind(error), error);
      throw connection.lastError;
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
      throw connection.lastError ?? reportError(error, this.#onDatabaseError);
    }
    connection.isInTransaction = false;
  }

  releaseConnection(connection: WatchedConnection): Promise<void> {
    return this.#inner.releaseConnection(connection.inner);
  }

  destroy(): Promise<void> {
    return this.#inner.destroy();
  }

  #reportErrors<Result>(work: Promise<Result>): Promise<Result> {
    return work.catch((error: unknown) => {
      throw reportError(error, this.#onDatabaseError);
    });
  }
}

class WatchedConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #onDatabaseError: OnDatabaseError;
  isInTransaction = false;
  /** Error of the last failed statement or commit. */
  lastError: unknown;

  constructor(inner: DatabaseConnection, onDatabaseError: OnDatabaseError) {
    this.inner = inner;
    this.#onDatabaseError = onDatabaseError;
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.isInTransaction ? this.#execute<Row>(query) : withRetry(() => this.#execute<Row>(query));
  }

  async #execute<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      return await this.inner.executeQuery<Row>(query);
    } catch (error) {
      const databaseError = reportError(error, this.#onDatabaseError);
      if (databaseError instanceof DatabaseError)
        databaseError.isOutcomeUnknown = !this.isInTransaction && mayHaveExecuted(error);
      this.lastError = databaseError;
      throw databaseError;
    }
  }

  streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    return this.inner.streamQuery<Row>(query, chunkSize);
  }
}

/** Retries work that the database ended in favor of other work. It has had no effect. */
async function withRetry<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isSerializationFailure = error instanceof DatabaseError && error.errorKind === 'serialization';
      if (!isSerializationFailure || attempt === maxAttempts) throw error;
    }
    await delay(retryPauseMs * attempt);
  }
}

function reportError(error: unknown, onDatabaseError: OnDatabaseError): unknown {
  onDatabaseError(getDatabaseErrorKind(error), error);
  return toDatabaseError(error);
}

/**
 * Runs work in a transaction. If the database ended the transaction in favor of another one (SQLSTATE 40001 and 40P01),
 * the work is repeated, so it must have no effect outside the database.
 * @throws DatabaseError, and any error from the work
 */
export function transact<Result>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  return withRetry(() => db.transaction().execute(work));
}
