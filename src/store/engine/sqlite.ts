import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type QueryResult,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
} from 'kysely';
import { AppError } from '../../errors.ts';
import { makePrivateFile } from './private-files.ts';
import { isBusy, openSqlite } from './sqlite-file.ts';
import type { WriteLock } from './write-lock.ts';

/** A checkpoint blocks the process while the disk syncs; the thread that writes records runs them much earlier. */
const options = { synchronous: 'FULL', busyMs: 0, checkpointPages: 16_000 } as const;
/** How long a statement may wait for another process that writes. */
const patienceMs = 5000;
const longestPauseMs = 16;

/** Kysely on Node's own SQLite. Other connections of the process that write share the lock. */
export function sqliteDialect(file: string, lock: WriteLock): Dialect {
  const config = { database: () => openSqlite(file, options) };
  return Object.assign(new SqliteDialect(config), { createDriver: () => new PatientDriver(config, lock) });
}

class PatientDriver extends SqliteDriver {
  readonly #lock: WriteLock;
  /** One at a time: Kysely lends the connection of SQLite to one user. */
  #lent: PatientConnection | undefined;

  constructor(config: SqliteDialectConfig, lock: WriteLock) {
    super(config);
    this.#lock = lock;
  }

  override async acquireConnection(): Promise<PatientConnection> {
    this.#lent = new PatientConnection(await super.acquireConnection(), this.#lock);
    return this.#lent;
  }

  override async beginTransaction(connection: PatientConnection): Promise<void> {
    await connection.lock();
    await super.beginTransaction(connection);
  }

  override async releaseConnection(): Promise<void> {
    this.#lent?.unlock();
  }
}

/** Statements that write nothing. */
const onlyReads = /^\s*(select|pragma|vacuum into)\b/i;

/**
 * One of several processes on a file writes at a time. SQLite itself would block the event loop while it waits, so the
 * waiting is done here. A statement that found the file locked has done nothing yet.
 */
class PatientConnection implements DatabaseConnection {
  readonly #inner: DatabaseConnection;
  readonly #lock: WriteLock;
  #unlock: (() => void) | undefined;

  constructor(inner: DatabaseConnection, lock: WriteLock) {
    this.#inner = inner;
    this.#lock = lock;
  }

  async lock(): Promise<void> {
    this.#unlock = await this.#lock.take();
  }

  unlock(): void {
    this.#unlock?.();
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    // Held until the connection is released.
    if (!this.#unlock && !onlyReads.test(query.sql)) await this.lock();
    const until = performance.now() + patienceMs;
    for (let pause = 1; ; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        return await this.#inner.executeQuery<Row>(query);
      } catch (error) {
        if (!isTaken(error) || performance.now() > until) throw error;
      }
      await delay(pause);
    }
  }

  streamQuery<Row>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<Row>> {
    return this.#inner.streamQuery<Row>(query, chunkSize);
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
