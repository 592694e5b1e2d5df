import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
  SqliteAdapter,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
} from 'kysely';
import { runningNow } from '../../domain/work/running-time.ts';
import { AppError } from '../../errors.ts';
import { makePrivateFile } from './private-files.ts';
import { isBusy, openSqlite, type SqliteFile } from './sqlite-file.ts';
import { createWriteLock, type WriteLock } from './write-lock.ts';

/** A checkpoint blocks the process while the disk syncs; the thread that writes records runs them much earlier. */
const options = { synchronous: 'FULL', busyMs: 0, checkpointPages: 16_000 } as const;
/** How long a statement may wait for another process that writes. */
const patienceMs = 5000;
const longestPauseMs = 16;

/** Kysely on Node's own SQLite. Other connections of the process that write share the lock. */
export function sqliteDialect(file: SqliteFile, lock: WriteLock): Dialect {
  const config = { database: () => openSqlite(file, options) };
  return Object.assign(new SqliteDialect(config), {
    createAdapter: () => new PatientAdapter(),
    createDriver: () => new PatientDriver(config, lock),
  });
}

/** The driver itself takes turns on its only connection, and not while a statement waits for another process. */
class PatientAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class PatientDriver extends SqliteDriver {
  readonly #lock: WriteLock;
  /** The right to use the connection: for one attempt of a statement, or for a transaction. */
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

/** Statements that write nothing. */
const onlyReads = /^\s*(select|pragma|vacuum into)\b/i;

/**
 * One of several processes on a file writes at a time. SQLite itself would block the event loop while it waits, so the
 * waiting is done here, and others may read meanwhile. A statement that found the file locked has done nothing yet.
 */
class PatientConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  readonly #lock: WriteLock;
  readonly #turns: WriteLock;
  /** Gives back the lock and the turn of a transaction. */
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

  /** Runs a statement, again while another process writes. The turn stays taken after a success. */
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

/** Whether another process writes. The lowest byte is the kind of error, the higher ones are details. */
function isTaken(error: unknown): boolean {
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === sqliteBusy;
}

export type SqliteLock = {
  readonly file: string;
  /** Takes the lock again, on a new file after the old one was deleted. @throws AppError conflict */
  again(): void;
  release(): void;
};

/**
 * Locks a file for one serving process. The lock is SQLite's own, so it ends with the process in any case.
 * @throws AppError conflict when another process serves from the file
 */
export function lockSqlite(file: string): SqliteLock {
  const lockFile = `${file}.lock`;
  let lock = takeLock(file, lockFile);
  return {
    file: lockFile,
    again() {
      const next = takeLock(file, lockFile);
      lock.close();
      lock = next;
    },
    release: () => lock.close(),
  };
}

function takeLock(file: string, lockFile: string): DatabaseSync {
  makePrivateFile(lockFile);
  const lock = new DatabaseSync(lockFile);
  try {
    lock.exec('pragma busy_timeout = 0; begin exclusive');
    return lock;
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new AppError(
      'conflict',
      `another toolhost process serves from ${file}; stop it, or give this one its own DATA_DIR or a PostgreSQL DATABASE_URL`,
    );
  }
}

/** A little longer than a serving process takes to notice that its lock file is gone. */
const noticedMs = 2500;
const lookMs = 50;

/**
 * Waits for a serving process to make its lock file again: a database that is in use, or was left by a crash, and has no
 * lock file may belong to a serving process whose lock file was deleted.
 */
export async function awaitLockFile(file: string): Promise<void> {
  const until = performance.now() + noticedMs;
  while (existsSync(`${file}-wal`) && !existsSync(`${file}.lock`) && performance.now() < until) await delay(lookMs);
}
