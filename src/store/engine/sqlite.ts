import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
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
import { runningNow } from '../../domain/work/running-time.ts';
import type { ThreadAccess, ThreadAnswer, ThreadData, ThreadQuestion } from '../sqlite-thread.ts';
import { closeLast } from './log-mark.ts';
import { openSqlite, type SqliteFile } from './sqlite-file.ts';

/**
 * A checkpoint blocks the process while the disk syncs. The thread that writes records runs checkpoints much earlier.
 */
const options = { synchronous: 'FULL', busyMs: 0, checkpointPages: 16_000 } as const;
/** Maximum time that a statement waits for another process that writes. */
const patienceMs = 5000;
const longestPauseMs = 16;

/**
 * Creates the Kysely dialect for Node's SQLite. Other connections of the process share the lock, and are closed
 * before this one.
 */
export function sqliteDialect(file: SqliteFile, lock: WriteLock): Dialect {
  const config = {
    async database() {
      const opened = await openSqlite(file, options);
      return { ...opened, close: () => closeLast(opened, file) };
    },
  };
  return Object.assign(new SqliteDialect(config), {
    createAdapter: () => new PatientAdapter(),
    createDriver: () => new PatientDriver(config, lock),
  });
}

/**
 * The driver itself serializes the use of its only connection, and frees it while a statement waits for another
 * process.
 */
class PatientAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class PatientDriver extends SqliteDriver {
  readonly #lock: WriteLock;
  /** Grants the use of the connection, for one attempt of a statement or for a transaction. */
  readonly #turns = createWriteLock();

  constructor(config: SqliteDialectConfig, lock: WriteLock) {
    super(config);
    this.#lock = lock;
  }

  override async acquireConnection(): Promise<PatientConnection> {
    return new PatientConnection(await super.acquireConnection(), this.#lock, this.#turns);
  }

  override async beginTransaction(connection: PatientConnection): Promise<void> {
    await connection.begin();
  }

  override async releaseConnection(connection?: PatientConnection): Promise<void> {
    connection?.release();
  }
}

/** Matches statements that write nothing. */
const onlyReads = /^\s*(select|pragma|vacuum into)\b/i;

/**
 * Connection that waits for other writers without blocking. Only one process at a time writes to a file. SQLite
 * itself would block the event loop while it waits, so the wait happens here, and others may read in the meantime. A
 * statement that found the file locked has not done anything yet.
 */
class PatientConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  readonly #lock: WriteLock;
  readonly #turns: WriteLock;
  /** Releases the lock and the connection after a transaction. */
  #release: (() => void) | undefined;

  constructor(inner: DatabaseConnection, lock: WriteLock, turns: WriteLock) {
    this.#inner = inner;
    this.#lock = lock;
    this.#turns = turns;
  }

  async begin(): Promise<void> {
    const until = runningNow() + patienceMs;
    const unlock = await this.#lock.take();
    try {
      const { endTurn } = await this.#patiently(CompiledQuery.raw('begin'), until);
      this.#release = () => {
        endTurn();
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
    const until = runningNow() + patienceMs;
    const unlock = onlyReads.test(query.sql) ? undefined : await this.#lock.take();
    try {
      const { result, endTurn } = await this.#patiently<Row>(query, until);
      endTurn();
      return result;
    } finally {
      unlock?.();
    }
  }

  streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    return this.#inner.streamQuery<Row>(query, chunkSize);
  }

  /** Runs a statement and retries it while another process writes. The connection stays reserved after a success. */
  async #patiently<Row>(
    query: CompiledQuery,
    until: number,
  ): Promise<{ result: QueryResult<Row>; endTurn: () => void }> {
    for (let pause = 1; ; pause = Math.min(pause * 2, longestPauseMs)) {
      const endTurn = await this.#turns.take();
      try {
        return { result: await this.#inner.executeQuery<Row>(query), endTurn };
      } catch (error) {
        endTurn();
        if (!isTaken(error) || runningNow() > until) throw error;
      }
      await delay(pause);
    }
  }
}

const sqliteBusy = 5;

/** Returns true if another process is writing. The lowest byte is the kind of error, the higher ones are details. */
function isTaken(error: unknown): boolean {
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === sqliteBusy;
}

/**
 * Creates a Kysely dialect whose connection runs in a separate thread, so that neither a long statement nor the disk
 * delays a call. One thread writes frequent data that no request waits for, and its commits do not wait for the disk.
 * One runs the transactions of operations, which may write megabytes. One reads for reports. A thread starts with its
 * first statement, and accepts text, numbers, and nulls as parameters. The lock is for transactions.
 */
export function threadedSqliteDialect(file: SqliteFile, access: ThreadAccess, lock?: WriteLock): Dialect {
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
    this.#unlock = await this.#lock?.take();
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

type Waiting = { resolve: (answer: ThreadAnswer) => void; reject: (error: unknown) => void };

/**
 * Connection to the thread. It replies in the order of the requests, so a reply belongs to the oldest pending
 * request.
 */
class SqliteThread implements DatabaseConnection {
  isAlive = true;
  #isClosing = false;
  #failure: unknown = new Error('a thread of the database has ended');
  readonly #waiting: Waiting[] = [];
  readonly #worker: Worker;
  readonly #data: ThreadData;

  constructor(data: ThreadData) {
    this.#data = data;
    this.#worker = new Worker(new URL('../sqlite-thread.ts', import.meta.url), {
      workerData: data,
      // Flags such as --input-type apply only to the main program.
      execArgv: [],
    });
    this.#worker.on('message', (answer: ThreadAnswer) => {
      this.#waiting.shift()?.resolve(answer);
      if (this.#waiting.length === 0 && !this.#isClosing) this.#worker.unref();
    });
    this.#worker.on('error', (error) => {
      this.#failure = error;
    });
    this.#worker.on('exit', () => {
      this.isAlive = false;
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
    });
    this.#worker.unref();
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const isLarge = this.#data.access === 'transactions';
    const answer = await this.#ask({ sql, parameters: isLarge ? parameters : JSON.stringify(parameters) });
    if ('failure' in answer) throw Object.assign(new Error(answer.failure.message), answer.failure);
    return { rows: answer.rows as Row[], ...(answer.changes !== undefined && { numAffectedRows: answer.changes }) };
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

  #ask(question: ThreadQuestion): Promise<ThreadAnswer> {
    if (!this.isAlive) return Promise.reject(this.#failure);
    const { promise, resolve, reject } = Promise.withResolvers<ThreadAnswer>();
    // Sent first: a value that cannot be copied throws here, and must not receive the reply to the next request.
    this.#worker.postMessage(question);
    this.#waiting.push({ resolve, reject });
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
  take(): Promise<() => void>;
};

export function createWriteLock(): WriteLock {
  let last: Promise<void> = Promise.resolve();
  return {
    async take() {
      const given = Promise.withResolvers<void>();
      const before = last;
      last = given.promise;
      await before;
      return given.resolve;
    },
  };
}
