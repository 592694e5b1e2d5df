import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { whenCalm } from '../domain/work/when-calm.ts';
import { type CallWriter, recordValues } from './calls/call-writer.ts';
import type { SqliteFile } from './engine/sqlite-file.ts';
import type { WriteLock } from './engine/write-lock.ts';
import type { Tables } from './schema.ts';
import type { Procedure, ThreadAccess, ThreadAnswer, ThreadData, ThreadQuestion } from './thread-messages.ts';

/**
 * Kysely on a connection in a thread of its own, so that neither a long statement nor the disk delays a call. One thread
 * writes frequent data that no request waits for, and its commits do not wait for the disk; one runs the transactions of
 * operations, which may write megabytes; one reads for reports. A thread starts with its first statement, and accepts
 * text, numbers and nulls as parameters. The lock is for transactions.
 */
export function threadedSqliteDialect(file: SqliteFile, access: ThreadAccess, lock?: WriteLock): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ThreadDriver({ file, access }, lock),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** A writer of call records that works in the thread, so that it takes no time from the calls. */
export function threadedCallWriter(db: Kysely<Tables>): CallWriter {
  const procedure: Procedure = 'call write_calls';
  return {
    async write(rows) {
      // Nobody waits for records. The connection is taken afterwards, because calls wait for other statements on it.
      await whenCalm();
      await db.executeQuery(CompiledQuery.raw(procedure, recordValues(rows)));
    },
  };
}

class ThreadDriver implements Driver {
  readonly #data: ThreadData;
  readonly #lock: WriteLock | undefined;
  #thread: SqliteThread | undefined;
  /** One at a time: the adapter has Kysely lend the connection of SQLite to one user, until its transaction has ended. */
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

/** The thread answers in the order of the requests, so an answer belongs to the oldest pending one. */
class SqliteThread implements DatabaseConnection {
  isAlive = true;
  #isClosing = false;
  #failure: unknown = new Error('a thread of the database has ended');
  readonly #waiting: Waiting[] = [];
  readonly #worker: Worker;
  readonly #data: ThreadData;

  constructor(data: ThreadData) {
    this.#data = data;
    this.#worker = new Worker(new URL('./sqlite-thread.ts', import.meta.url), {
      workerData: data,
      // Flags such as --input-type are meant only for the main program.
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
    throw new Error('the thread gives its rows all at once');
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
    // Sent first: a value that cannot be copied throws here, and must not take the answer of the next question.
    this.#worker.postMessage(question);
    this.#waiting.push({ resolve, reject });
    // The process must not end before a pending answer.
    this.#worker.ref();
    return promise;
  }
}
