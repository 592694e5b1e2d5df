import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { getErrorMessage } from '@toolhost/errors/errors';
import { CompiledQuery, type Dialect, Kysely, sql } from 'kysely';
import { type CallWriter, createCallWriter, toValuesText } from './calls/call-writer.ts';
import type { Engine } from './db.ts';
import { type DatabaseErrorKind, databaseErrorKinds, toOpenError } from './engine/database-errors.ts';
import { createMark, removeMark } from './engine/log-mark.ts';
import { rejectLostLog } from './engine/lost-log.ts';
import { migrate } from './engine/migrate.ts';
import type { PoolLoad, PoolPurpose, PostgresLimits, PostgresLocation } from './engine/postgres.ts';
import { createSqliteDialect, createThreadDialect, createWriteLock } from './engine/sqlite.ts';
import { createPrivateDataFolder, createPrivateFile, findOrCreateFile } from './engine/sqlite-file.ts';
import {
  awaitLockFile,
  getRescuedPath,
  lockSqlite,
  rejectEmptied,
  rejectNextToRescued,
  rejectOrphanedLog,
  type SqliteLock,
  watchSqlite,
} from './engine/sqlite-guard.ts';
import { type OnDatabaseError, toWatchedDialect } from './engine/watched-dialect.ts';
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
  /** Number of errors since the database was opened, by kind. */
  errorCounts: { readonly [kind in DatabaseErrorKind]: number };
  /**
   * Resolves with a sentence when this process must stop using the database, because its file was deleted or replaced,
   * or because another process serves from it.
   */
  databaseLost: Promise<string>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  /** Undefined selects the SQLite file. */
  postgres: PostgresLocation | undefined;
  file: string;
  /** Folder that contains the migrations. */
  migrations: string;
  /** Version of this program. */
  version: string;
  /** True for a serving process, which must be the only one that uses a SQLite file. */
  exclusive: boolean;
  /** Undefined selects the defaults. */
  postgresLimits?: PostgresLimits | undefined;
  now: () => number;
  /** Called when an idle PostgreSQL connection is lost. */
  onError: (error: Error) => void;
  onDatabaseError: OnDatabaseError;
  /** Receives a sentence about a problem that the operator should correct. */
  onWarning: (sentence: string) => void;
};

/** Creates a Kysely instance that counts its errors. */
type Connect = (dialect: Dialect) => Kysely<Tables>;

/**
 * Opens the database and migrates its tables.
 * @throws AppError conflict, see `lockSqlite`, `rejectOrphanedLog`, `rejectLostLog` and `migrate`; unavailable if it
 * cannot be opened
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { postgres, file, onDatabaseError } = options;
  const errorCounts = Object.fromEntries(databaseErrorKinds.map((kind) => [kind, 0])) as {
    [kind in DatabaseErrorKind]: number;
  };
  let isOpen = false;
  const countFault: OnDatabaseError = (kind, error) => {
    errorCounts[kind]++;
    // While the database is being opened, the caller receives the error.
    if (isOpen) onDatabaseError(kind, error);
  };
  const connect: Connect = (dialect) => new Kysely<Tables>({ dialect: toWatchedDialect(dialect, countFault) });
  try {
    const opened = await (postgres === undefined
      ? openSqliteDatabase(options, connect)
      : openPostgresDatabase(postgres, options, connect));
    isOpen = true;
    return { ...opened, errorCounts };
  } catch (error) {
    throw toOpenError(error, postgres === undefined ? file : undefined);
  }
}

async function openSqliteDatabase(options: DatabaseOptions, connect: Connect): Promise<Omit<Database, 'errorCounts'>> {
  const { file } = options;
  for (const warning of createPrivateDataFolder(dirname(file))) options.onWarning(warning);
  rejectOrphanedLog(file);
  rejectEmptied(file);
  rejectNextToRescued(file);
  await rejectLostLog(file);
  if (options.exclusive) await awaitLockFile(file);
  const lock = options.exclusive ? lockSqlite(file) : undefined;
  const sqliteFile = findOrCreateFile(file);
  const writeLock = createWriteLock();
  const connectThread = (access: ThreadAccess) => connect(createThreadDialect(sqliteFile, access, writeLock));
  const db = connect(createSqliteDialect(sqliteFile, writeLock));
  const [transactions, records] = [connectThread('transactions'), connectThread('records')];
  const reports = connectThread('read');
  const databaseLost = Promise.withResolvers<string>();
  let watch: { stop(): void } | undefined;
  const close = async () => {
    watch?.stop();
    for (const connection of [transactions, records, reports, db]) await connection.destroy();
    lock?.release();
  };
  try {
    await migrate(db, 'sqlite', { ...options, folder: options.migrations });
    await createMark(db, file);
  } catch (error) {
    await close();
    throw error;
  }
  if (lock) watch = watchFiles(options, lock, db, databaseLost.resolve);
  const calls = createThreadedCallWriter(records);
  return {
    engine: 'sqlite',
    db,
    transactions,
    records,
    calls,
    reports,
    changes: db,
    databaseLost: databaseLost.promise,
    close,
  };
}

function watchFiles(
  { file, onWarning }: DatabaseOptions,
  lock: SqliteLock,
  db: Kysely<Tables>,
  onDatabaseLost: (sentence: string) => void,
): { stop(): void } {
  const consequence = 'so it stops';
  return watchSqlite({
    file,
    lockFile: lock.file,
    relock: lock.relock,
    onWarning,
    onDatabaseLost: (reason) =>
      void rescueData(db, file).then((rescued) => onDatabaseLost(`${reason}, ${consequence}; ${rescued}`)),
  });
}

/** Saves the content that this process still has open after the file was deleted or replaced. */
async function rescueData(db: Kysely<Tables>, file: string): Promise<string> {
  const copy = getRescuedPath(file);
  try {
    createPrivateFile(copy);
    await sql`vacuum into ${copy}`.execute(db);
    // The copy does not need the write-ahead log.
    removeMark(file);
    return `the data that this process had open was saved to ${copy}: move it to ${file} to continue with it, or put the correct file there, then restart`;
  } catch (error) {
    rmSync(copy, { force: true });
    return `the data that this process had open could not be saved (${getErrorMessage(error)}): put the file back or restore a backup, then restart`;
  }
}

/** Migrates on a separate connection, because it may have to wait for another process that is migrating. */
async function openPostgresDatabase(
  location: PostgresLocation,
  options: DatabaseOptions,
  connect: Connect,
): Promise<Omit<Database, 'errorCounts'>> {
  // The driver is loaded only when needed, like pg itself.
  const { createPostgresDialect, Renewal } = await import('./engine/postgres.ts');
  const { createPostgresCallWriter } = await import('./calls/postgres-call-writer.ts');
  const renewal = new Renewal();
  const createDialect = (purpose: PoolPurpose) =>
    createPostgresDialect(location, options.onError, purpose, renewal, options.postgresLimits);
  const migrationDb = connect(createDialect('migrations'));
  try {
    await migrate(migrationDb, 'postgres', { ...options, folder: options.migrations });
  } finally {
    await migrationDb.destroy();
  }
  const requests = createDialect('requests');
  const [reports, changes] = [connect(createDialect('reports')), connect(createDialect('changes'))];
  const db = connect(requests);
  const close = async () => {
    for (const connection of [reports, changes, db]) await connection.destroy();
  };
  const databaseLost = new Promise<string>(() => undefined);
  return {
    engine: 'postgres',
    db,
    transactions: db,
    records: db,
    calls: createPostgresCallWriter(db),
    reports,
    changes,
    connections: requests.load,
    databaseLost,
    close,
  };
}

/** Creates a writer of call records that runs in the thread, so that it takes no time from calls. */
function createThreadedCallWriter(db: Kysely<Tables>): CallWriter {
  const statement: WriteCalls = 'call write_calls';
  return createCallWriter(toValuesText, async (batches) => {
    // No client waits for records. The connection is taken after the wait, because calls wait for other statements on
    // it.
    await whenIdle();
    await db.executeQuery(
      CompiledQuery.raw(
        statement,
        batches.map(({ content }) => content),
      ),
    );
  });
}

/** Idle time of the event loop, in ms per check, that counts as idle. */
const minIdleMs = 0.3;
/** Maximum wait in ms if the event loop never becomes idle. */
const maxWaitMs = 10;

let idleWait: Promise<void> | undefined;

/**
 * Waits until the event loop has been idle, for about 10 ms at most. Only then is long work handed to another thread.
 * If both threads share a core and the sender continues to work, Linux gives the core to the woken thread for a whole
 * slice (4 ms at 250 Hz), regardless of their priorities. A sender that sleeps gets the core back for the next call.
 */
function whenIdle(): Promise<void> {
  idleWait ??= waitUntilIdle().finally(() => {
    idleWait = undefined;
  });
  return idleWait;
}

async function waitUntilIdle(): Promise<void> {
  const deadline = performance.now() + maxWaitMs;
  let idleBefore: number;
  do {
    idleBefore = getIdleMs();
    await new Promise((resolve) => setTimeout(resolve, 1));
  } while (getIdleMs() - idleBefore < minIdleMs && performance.now() < deadline);
}

/** Returns the time that the event loop has been idle since it started. */
function getIdleMs(): number {
  return performance.eventLoopUtilization().idle;
}
