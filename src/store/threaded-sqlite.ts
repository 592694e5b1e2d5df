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
import { type CallWriter, recordValues } from './calls/call-writer.ts';
import type { Tables } from './schema.ts';
import type { Procedure, ThreadAccess, ThreadAnswer, ThreadData, ThreadQuestion } from './thread-messages.ts';

/**
 * Kysely on a connection in a thread of its own, so that neither a long statement nor the disk delays a call. One thread
 * writes frequent data that no request waits for, and its commits do not wait for the disk; another one reads for
 * reports. A thread starts with its first statement, and accepts text, numbers and nulls as parameters.
 */
export function threadedSqliteDialect(file: string, access: ThreadAccess): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ThreadDriver({ file, access }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** A writer of call records that works in the thread, so that it takes no time from the calls. */
export function threadedCallWriter(db: Kysely<Tables>): CallWriter {
  const ask = (procedure: Procedure, parameters: readonly unknown[]) =>
    db.executeQuery(CompiledQuery.raw(procedure, [...parameters]));
  return {
    async write(rows) {
      await ask('call write_calls', recordValues(rows));
    },
    countOlder: async (most) => Number((await ask('call count_older_calls', [most])).numAffectedRows),
  };
}

class ThreadDriver implements Driver {
  readonly #data: ThreadData;
  #thread: SqliteThread | undefined;

  constructor(data: ThreadData) {
    this.#data = data;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (!this.#thread?.isAlive) this.#thread = new SqliteThread(this.#data);
    return this.#thread;
  }

  async beginTransaction(): Promise<void> {
    throw new Error('what is asked of the thread meanwhile would be in the transaction too');
  }

  async commitTransaction(): Promise<void> {}

  async rollbackTransaction(): Promise<void> {}

  async releaseConnection(): Promise<void> {}

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

  constructor(data: ThreadData) {
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
    const answer = await this.#ask({ sql, parameters: JSON.stringify(parameters) });
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
    this.#waiting.push({ resolve, reject });
    // The process must not end before a pending answer.
    this.#worker.ref();
    this.#worker.postMessage(question);
    return promise;
  }
}
