import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Answer, Question } from './sqlite-thread.ts';

/**
 * Kysely on a connection in a thread of its own, for what is written all the time and waited for by nobody: neither the
 * writing nor the disk holds up a call. Commits do not wait for the disk. The thread starts with the first statement, and
 * takes text, numbers and nulls.
 */
export function threadedSqliteDialect(file: string): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new ThreadDriver(file),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class ThreadDriver implements Driver {
  readonly #file: string;
  #thread: SqliteThread | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    if (!this.#thread?.isAlive) this.#thread = new SqliteThread(this.#file);
    return this.#thread;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#thread?.close();
  }
}

type Waiting = { resolve: (answer: Answer) => void; reject: (error: unknown) => void };

/** The thread answers one question after the other, so the first that waits is the one an answer is for. */
class SqliteThread implements DatabaseConnection {
  isAlive = true;
  #isClosing = false;
  #failure: unknown = new Error('the thread that writes to the database has ended');
  readonly #waiting: Waiting[] = [];
  readonly #worker: Worker;

  constructor(file: string) {
    this.#worker = new Worker(new URL('./sqlite-thread.ts', import.meta.url), {
      workerData: { file },
      // Flags such as --input-type are meant for the program alone.
      execArgv: [],
    });
    this.#worker.on('message', (answer: Answer) => {
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

  // biome-ignore lint/correctness/useYield: a part of the interface that nobody uses here
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('the thread gives its rows all at once');
  }

  /** Ends the thread once what it was asked before is done. */
  async close(): Promise<void> {
    if (!this.isAlive) return;
    this.#isClosing = true;
    const ended = once(this.#worker, 'exit');
    this.#worker.ref();
    this.#worker.postMessage('close');
    await ended;
  }

  #ask(question: Question): Promise<Answer> {
    // A transaction whose thread has ended still rolls back.
    if (!this.isAlive) return Promise.reject(this.#failure);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.push({ resolve, reject });
    // A process may not end while an answer is due.
    this.#worker.ref();
    this.#worker.postMessage(question);
    return promise;
  }
}
