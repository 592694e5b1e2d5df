import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { CompiledQuery, type Dialect, Kysely, sql } from 'kysely';
import { messageOf } from '../errors.ts';
import { type CallWriter, recordValues } from './calls/call-writer.ts';
import type { Engine } from './db.ts';
import { type FaultKind, faultKinds, openingFailure } from './engine/faults.ts';
import { expectLog, removeMark } from './engine/log-mark.ts';
import { refuseLostLog } from './engine/lost-log.ts';
import { migrate } from './engine/migrate.ts';
import type { PoolLoad, PoolUse, PostgresLimits, PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect, threadedSqliteDialect } from './engine/sqlite.ts';
import { findOrMakeFile, makeDataFolderPrivate, makePrivateFile } from './engine/sqlite-file.ts';
import {
  awaitLockFile,
  lockSqlite,
  refuseBesideRescued,
  refuseEmptied,
  refuseOrphanedLog,
  rescuedCopy,
  type SqliteLock,
  watchSqlite,
} from './engine/sqlite-guard.ts';
import { type OnFault, watchedDialect } from './engine/watched-dialect.ts';
import type { Tables } from './schema.ts';
import type { ThreadAccess, WriteCalls } from './sqlite-thread.ts';

export type Database = {
  engine: Engine;
  db: Kysely<Tables>;
  /**
   * Runs the transactions of operations, which may write megabytes and wait for the disk. With SQLite, a separate
   * thread runs them.
   */
  transactions: Kysely<Tables>;
  /**
   * Writes call records and last uses, which are not acknowledged to any client. With SQLite, a separate thread writes
   * them, and its commits do not wait for the disk.
   */
  records: Kysely<Tables>;
  /** Writes call records through `records`. */
  calls: CallWriter;
  /**
   * Runs lists, statistics, and exports, which may be slow and must not delay a call. Uses a small connection pool, or
   * a read-only thread with SQLite.
   */
  reports: Kysely<Tables>;
  /** Polls for changes. A poll must not wait for other work. */
  changes: Kysely<Tables>;
  /** Load of the connection pool that calls and operations use; undefined with SQLite, which has no pool. */
  connections?: () => PoolLoad;
  /** Number of database errors since it was opened, by kind. */
  faults: { readonly [kind in FaultKind]: number };
  /**
   * Resolves with a sentence when this process must stop using the database, because its file was deleted or replaced,
   * or because another process serves from it.
   */
  lost: Promise<string>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  /** Undefined selects the SQLite file. */
  postgres: PostgresLocation | undefined;
  file: string;
  migrations: string;
  /** Version of this program. */
  version: string;
  /** True for a serving process, which must be the only one that uses a SQLite file. */
  exclusive: boolean;
  /** Undefined selects the defaults. */
  postgresLimits?: PostgresLimits | undefined;
  now: () => number;
  onError: (error: Error) => void;
  onFault: OnFault;
  /** Receives a sentence about a problem that the operator should correct. */
  onWarning: (sentence: string) => void;
};

/** Creates a Kysely instance that counts its errors. */
type Watched = (dialect: Dialect) => Kysely<Tables>;

/**
 * Opens the database and migrates its tables.
 * @throws AppError conflict, see `lockSqlite`, `refuseOrphanedLog`, `refuseLostLog` and `migrate`; unavailable if it
 * cannot be opened
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { postgres, file, onFault } = options;
  const faults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as { [kind in FaultKind]: number };
  let isOpen = false;
  const note: OnFault = (kind, error) => {
    faults[kind]++;
    // While the database is being opened, the caller receives the error.
    if (isOpen) onFault(kind, error);
  };
  const watched: Watched = (dialect) => new Kysely<Tables>({ dialect: watchedDialect(dialect, note) });
  try {
    const opened = await (postgres === undefined
      ? openSqlite(options, watched)
      : openPostgres(postgres, options, watched));
    isOpen = true;
    return { ...opened, faults };
  } catch (error) {
    throw openingFailure(error, postgres === undefined ? file : undefined);
  }
}

async function openSqlite(options: DatabaseOptions, watched: Watched): Promise<Omit<Database, 'faults'>> {
  const { file } = options;
  for (const sentence of makeDataFolderPrivate(dirname(file))) options.onWarning(sentence);
  refuseOrphanedLog(file);
  refuseEmptied(file);
  refuseBesideRescued(file);
  await refuseLostLog(file);
  if (options.exclusive) await awaitLockFile(file);
  const lock = options.exclusive ? lockSqlite(file) : undefined;
  const found = findOrMakeFile(file);
  const writing = createWriteLock();
  const threaded = (access: ThreadAccess) => watched(threadedSqliteDialect(found, access, writing));
  const db = watched(sqliteDialect(found, writing));
  const [transactions, records, reports] = [threaded('transactions'), threaded('records'), threaded('read')];
  const lost = Promise.withResolvers<string>();
  let watch: { stop(): void } | undefined;
  const close = async () => {
    watch?.stop();
    for (const each of [transactions, records, reports, db]) await each.destroy();
    lock?.release();
  };
  try {
    await migrate(db, 'sqlite', { ...options, folder: options.migrations });
    await expectLog(db, file);
  } catch (error) {
    await close();
    throw error;
  }
  if (lock) watch = watchFiles(options, lock, db, lost.resolve);
  const calls = threadedCallWriter(records);
  return { engine: 'sqlite', db, transactions, records, calls, reports, changes: db, lost: lost.promise, close };
}

function watchFiles(
  { file, onWarning }: DatabaseOptions,
  lock: SqliteLock,
  db: Kysely<Tables>,
  onLost: (sentence: string) => void,
): { stop(): void } {
  const stops = 'so it stops';
  return watchSqlite({
    file,
    lockFile: lock.file,
    lockAgain: lock.again,
    onWarning,
    onLost: (why) => void rescue(db, file).then((rescued) => onLost(`${why}, ${stops}; ${rescued}`)),
  });
}

/** Saves the content that this process still has open after the file was deleted or replaced. */
async function rescue(db: Kysely<Tables>, file: string): Promise<string> {
  const copy = rescuedCopy(file);
  try {
    makePrivateFile(copy);
    await sql`vacuum into ${copy}`.execute(db);
    // The copy does not need the write-ahead log.
    removeMark(file);
    return `the data that this process had open was saved to ${copy}: move it to ${file} to continue with it, or put the correct file there, then restart`;
  } catch (error) {
    rmSync(copy, { force: true });
    return `the data that this process had open could not be saved (${messageOf(error)}): put the file back or restore a backup, then restart`;
  }
}

/** Migrates on a separate connection, because it may have to wait for another replica that is migrating. */
async function openPostgres(
  location: PostgresLocation,
  options: DatabaseOptions,
  watched: Watched,
): Promise<Omit<Database, 'faults'>> {
  // The driver is loaded only when needed, like pg itself.
  const { postgresDialect, Renewal } = await import('./engine/postgres.ts');
  const { createPostgresCallWriter } = await import('./calls/postgres-call-writer.ts');
  const renewal = new Renewal();
  const dialect = (use: PoolUse) => postgresDialect(location, options.onError, use, renewal, options.postgresLimits);
  const patient = watched(dialect('migrations'));
  try {
    await migrate(patient, 'postgres', { ...options, folder: options.migrations });
  } finally {
    await patient.destroy();
  }
  const requests = dialect('requests');
  const [db, reports, changes] = [watched(requests), watched(dialect('reports')), watched(dialect('changes'))];
  const close = async () => {
    for (const each of [reports, changes, db]) await each.destroy();
  };
  const lost = new Promise<string>(() => undefined);
  return {
    engine: 'postgres',
    db,
    transactions: db,
    records: db,
    calls: createPostgresCallWriter(db),
    reports,
    changes,
    connections: requests.load,
    lost,
    close,
  };
}

/** Creates a writer of call records that runs in the thread, so that it takes no time from calls. */
function threadedCallWriter(db: Kysely<Tables>): CallWriter {
  const statement: WriteCalls = 'call write_calls';
  return {
    async write(rows) {
      // No client waits for records. The connection is taken after the wait, because calls wait for other statements on
      // it.
      await whenCalm();
      await db.executeQuery(CompiledQuery.raw(statement, recordValues(rows)));
    },
  };
}

/** Idle time of the event loop, in ms per check, that counts as idle. */
const calmMs = 0.3;
/** Maximum wait in ms if the event loop never becomes idle. */
const longestMs = 10;

let waiting: Promise<void> | undefined;

/**
 * Waits until the event loop has been idle, for about 10 ms at most. Only then is long work handed to another thread.
 * If both threads share a core and the sender continues to work, Linux gives the core to the woken thread for a whole
 * slice (4 ms at 250 Hz), regardless of their priorities. A sender that sleeps gets the core back for the next call.
 */
function whenCalm(): Promise<void> {
  waiting ??= calm().finally(() => {
    waiting = undefined;
  });
  return waiting;
}

async function calm(): Promise<void> {
  const until = performance.now() + longestMs;
  let before: number;
  do {
    before = idleMs();
    await new Promise((resolve) => setTimeout(resolve, 1));
  } while (idleMs() - before < calmMs && performance.now() < until);
}

/** Returns the time that the event loop has been idle since it started. */
function idleMs(): number {
  return performance.eventLoopUtilization().idle;
}
