import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { ThreadAccess, ThreadData, ThreadRequest, ThreadResponse, WriteCalls } from '../sqlite-thread.ts';
import { closeLastConnection } from './log-mark.ts';
import { openSqlite, type SqliteFile } from './sqlite-file.ts';

/**
 * A checkpoint blocks the process while the disk syncs. The thread that writes records runs checkpoints much earlier.
 */
const connectionOptions = { synchronous: 'FULL', busyTimeoutMs: 0, checkpointPages: 16_000 } as const;
/** Maximum time that a statement waits for another process that writes. */
const queueTimeoutMs = 5000;
const maxRetryDelayMs = 16;

/**
 * Creates the Kysely dialect for Node's SQLite. Other connections of the process share the lock, and are closed
 * before this one.
 */
export function createSqliteDialect(file: SqliteFile, lock: WriteLock): Dialect {
  const config = {
    async database() {
      const opened = await openSqlite(file, connectionOptions);
      return { ...opened, close: () => closeLastConnection(opened, file) };
    },
  };
  return Object.assign(new SqliteDialect(config), {
    createAdapter: () => new RetryingAdapter(),
    createDriver: () => new RetryingDriver(config, lock),
  });
}

/** Lets the driver itself serialize its only connection, and free it while a statement waits for another process. */
class RetryingAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class RetryingDriver extends SqliteDriver {
  readonly #lock: WriteLock;
  /** Grants the use of the connection, for one attempt of a statement or for a transaction. */
  readonly #connectionLock = createWriteLock();

  constructor(config: SqliteDialectConfig, lock: WriteLock) {
    super(config);
    this.#lock = lock;
  }

  override async acquireConnection(): Promise<RetryingConnection> {
    return new RetryingConnection(await super.acquireConnection(), this.#lock, this.#connectionLock);
  }

  override async beginTransaction(connection: RetryingConnection): Promise<void> {
    await connection.begin();
  }

  override async releaseConnection(connection?: RetryingConnection): Promise<void> {
    connection?.release();
  }
}

/** Matches statements that write nothing. */
const readOnlyStatement = /^\s*(select|pragma|vacuum into)\b/i;

/**
 * Connection that waits for other writers without blocking. Only one process at a time writes to a file. SQLite
 * itself would block the event loop while it waits, so the wait happens here, and others may read in the meantime. A
 * statement that found the file locked has not done anything yet.
 */
class RetryingConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  readonly #lock: WriteLock;
  readonly #connectionLock: WriteLock;
  /** Releases the lock and the connection after a transaction. */
  #release: (() => void) | undefined;

  constructor(inner: DatabaseConnection, lock: WriteLock, connectionLock: WriteLock) {
    this.#inner = inner;
    this.#lock = lock;
    this.#connectionLock = connectionLock;
  }

  async begin(): Promise<void> {
    const deadline = getRunningTimeMs() + queueTimeoutMs;
    const unlock = await this.#lock.acquire();
    try {
      const { releaseConnection } = await this.#runWithRetry(CompiledQuery.raw('begin'), deadline);
      this.#release = () => {
        releaseConnection();
        unlock();
      };
    } catch (error) {
      unlock();
      throw error;
    }
  }

  release(): void {
    this.#release?.();
    this.#release = undefined;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#release) return this.#inner.executeQuery<Row>(query);
    const deadline = getRunningTimeMs() + queueTimeoutMs;
    const unlock = readOnlyStatement.test(query.sql) ? undefined : await this.#lock.acquire();
    try {
      const { result, releaseConnection } = await this.#runWithRetry<Row>(query, deadline);
      releaseConnection();
      return result;
    } finally {
      unlock?.();
    }
  }

  streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    return this.#inner.streamQuery<Row>(query, chunkSize);
  }

  /** Runs a statement and retries it while another process writes. The connection stays reserved after a success. */
  async #runWithRetry<Row>(
    query: CompiledQuery,
    deadline: number,
  ): Promise<{ result: QueryResult<Row>; releaseConnection: () => void }> {
    for (let delayMs = 1; ; delayMs = Math.min(delayMs * 2, maxRetryDelayMs)) {
      const releaseConnection = await this.#connectionLock.acquire();
      try {
        return { result: await this.#inner.executeQuery<Row>(query), releaseConnection };
      } catch (error) {
        releaseConnection();
        if (!isLockedByOther(error) || getRunningTimeMs() > deadline) throw error;
      }
      await delay(delayMs);
    }
  }
}

/** SQLITE_BUSY. */
const sqliteBusy = 5;

/** Returns true if another process is writing. The lowest byte is the kind of error, the higher ones are details. */
function isLockedByOther(error: unknown): boolean {
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === sqliteBusy;
}

/**
 * Creates a Kysely dialect whose connection runs in a separate thread, so that neither a long statement nor the disk
 * delays a call. One thread writes frequent data that no request waits for, and its commits do not wait for the disk.
 * One runs the transactions of operations, which may write megabytes. One reads for reports. A thread starts with its
 * first statement, and accepts text, numbers, and nulls as parameters. The lock is for transactions.
 */
export function createThreadDialect(file: SqliteFile, access: ThreadAccess, lock?: WriteLock): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ThreadDriver({ file, access }, lock),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class ThreadDriver implements Driver {
  readonly #data: ThreadData;
  readonly #lock: WriteLock | undefined;
  #thread: SqliteThread | undefined;
  /**
   * Releases the lock of the current transaction. There is one at a time, because the adapter makes Kysely assign the
   * SQLite connection to one user until the transaction has ended.
   */
  #unlock: (() => void) | undefined;

  constructor(data: ThreadData, lock: WriteLock | undefined) {
    this.#data = data;
    this.#lock = lock;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (!this.#thread?.isAlive) this.#thread = new SqliteThread(this.#data);
    return this.#thread;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    this.#unlock = await this.#lock?.acquire();
    await connection.executeQuery(CompiledQuery.raw('begin'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async releaseConnection(): Promise<void> {
    this.#unlock?.();
    this.#unlock = undefined;
  }

  async destroy(): Promise<void> {
    await this.#thread?.close();
  }
}

const writeCalls: WriteCalls = 'call write_calls';

/** Maximum MB of a thread's young generation. Statements leave no objects, so a larger one would only take memory. */
const maxYoungGenerationSizeMb = 6;

type PendingRequest = { resolve: (response: ThreadResponse) => void; reject: (error: unknown) => void };

/** Connection to the thread, which replies in order, so a reply belongs to the oldest pending request. */
class SqliteThread implements DatabaseConnection {
  isAlive = true;
  #isClosing = false;
  #failure: unknown = new Error('a thread of the database has ended');
  readonly #pending: PendingRequest[] = [];
  readonly #worker: Worker;
  readonly #data: ThreadData;

  constructor(data: ThreadData) {
    this.#data = data;
    this.#worker = new Worker(new URL('../sqlite-thread.ts', import.meta.url), {
      workerData: data,
      // Flags such as --input-type apply only to the main program.
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb },
    });
    this.#worker.on('message', (response: ThreadResponse) => {
      this.#pending.shift()?.resolve(response);
      if (this.#pending.length === 0 && !this.#isClosing) this.#worker.unref();
    });
    this.#worker.on('error', (error) => {
      this.#failure = error;
    });
    this.#worker.on('exit', () => {
      this.isAlive = false;
      for (const { reject } of this.#pending.splice(0)) reject(this.#failure);
    });
    this.#worker.unref();
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const hasLongTexts = this.#data.access === 'transactions' || sql === writeCalls;
    const response = await this.#send({ sql, parameters: hasLongTexts ? parameters : JSON.stringify(parameters) });
    if ('failure' in response) throw Object.assign(new Error(response.failure.message), response.failure);
    return {
      rows: response.rows as Row[],
      ...(response.changes !== undefined && { numAffectedRows: response.changes }),
    };
  }

  // biome-ignore lint/correctness/useYield: required by the interface, never used here
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('the thread returns all rows together');
  }

  /** Ends the thread after its pending work. */
  async close(): Promise<void> {
    if (!this.isAlive) return;
    this.#isClosing = true;
    const ended = once(this.#worker, 'exit');
    this.#worker.ref();
    this.#worker.postMessage('close');
    await ended;
  }

  #send(request: ThreadRequest): Promise<ThreadResponse> {
    if (!this.isAlive) return Promise.reject(this.#failure);
    const { promise, resolve, reject } = Promise.withResolvers<ThreadResponse>();
    // Sent first: a value that cannot be copied throws here, and must not receive the reply to the next request.
    this.#worker.postMessage(request);
    this.#pending.push({ resolve, reject });
    // The process must not end before a pending reply.
    this.#worker.ref();
    return promise;
  }
}

/**
 * Lock for writing to a SQLite file, shared by the connections of one process. It is granted in the order of the
 * requests. With SQLite's own lock, which is polled, one busy connection could keep another one from writing.
 */
type WriteLock = {
  /** Waits for the lock. The returned function releases it, once. */
  acquire(): Promise<() => void>;
};

export function createWriteLock(): WriteLock {
  let tail: Promise<void> = Promise.resolve();
  return {
    async acquire() {
      const released = Promise.withResolvers<void>();
      const previous = tail;
      tail = released.promise;
      await previous;
      return released.resolve;
    },
  };
}
