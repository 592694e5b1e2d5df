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
   * For the transactions of operations, which may write megabytes and wait for the disk: with SQLite a separate thread
   * runs them.
   */
  transactions: Kysely<Tables>;
  /**
   * For call records and last uses, which are not acknowledged to any client: with SQLite a separate thread writes them,
   * and its commits do not wait for the disk.
   */
  records: Kysely<Tables>;
  /** Writes call records through `records`. */
  calls: CallWriter;
  /**
   * For lists, statistics and exports, which may take long and must not delay a call: a small pool of connections, with
   * SQLite a thread that only reads.
   */
  reports: Kysely<Tables>;
  /** For the look for changes, which must not wait for other work. */
  changes: Kysely<Tables>;
  /** The pool of connections that calls and operations use; undefined with SQLite, which has none. */
  connections?: () => PoolLoad;
  /** Number of failures of the database since it was opened, by the kind of fault. */
  faults: { readonly [kind in FaultKind]: number };
  /**
   * Resolves with a sentence when this process may no longer serve from the database, because its file was deleted or
   * replaced, or another process serves from it.
   */
  lost: Promise<string>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  /** Undefined for the SQLite file. */
  postgres: PostgresLocation | undefined;
  file: string;
  migrations: string;
  /** The version of this program. */
  version: string;
  /** Whether this process serves, and so must be the only one on a SQLite file. */
  exclusive: boolean;
  /** Undefined: the usual ones. */
  postgresLimits?: PostgresLimits | undefined;
  now: () => number;
  onError: (error: Error) => void;
  onFault: OnFault;
  /** Receives a sentence about something that the operator should correct. */
  onWarning: (sentence: string) => void;
};

/** Makes a Kysely whose faults are counted. */
type Watched = (dialect: Dialect) => Kysely<Tables>;

/**
 * Opens the database and brings its tables up to date.
 * @throws AppError conflict, see `lockSqlite`, `refuseOrphanedLog`, `refuseLostLog` and `migrate`; unavailable when it
 * cannot be opened
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { postgres, file, onFault } = options;
  const faults = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as { [kind in FaultKind]: number };
  let isOpen = false;
  const note: OnFault = (kind, error) => {
    faults[kind]++;
    // While the database is being opened, the caller gets the error.
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

/** Saves the content that is still open in this process after the file was deleted or replaced. */
async function rescue(db: Kysely<Tables>, file: string): Promise<string> {
  const copy = rescuedCopy(file);
  try {
    makePrivateFile(copy);
    await sql`vacuum into ${copy}`.execute(db);
    // The copy needs no log.
    removeMark(file);
    return `what this process had open is in ${copy}: to go on with it, move it to ${file}, or else put the right file there; then start again`;
  } catch (error) {
    rmSync(copy, { force: true });
    return `what this process had open could not be saved (${messageOf(error)}): put the file back or restore a backup, then start again`;
  }
}

/** Migrates on a separate connection, because it may have to wait for another replica that migrates. */
async function openPostgres(
  location: PostgresLocation,
  options: DatabaseOptions,
  watched: Watched,
): Promise<Omit<Database, 'faults'>> {
  // The driver is loaded only where it is needed, like pg itself.
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

/** A writer of call records that works in the thread, so that it takes no time from the calls. */
function threadedCallWriter(db: Kysely<Tables>): CallWriter {
  const statement: WriteCalls = 'call write_calls';
  return {
    async write(rows) {
      // Nobody waits for records. The connection is taken afterwards, because calls wait for other statements on it.
      await whenCalm();
      await db.executeQuery(CompiledQuery.raw(statement, recordValues(rows)));
    },
  };
}

/** How long the event loop must have had nothing to do. */
const calmMs = 0.3;
/** One that never rests holds nothing back for longer. */
const longestMs = 10;

let waiting: Promise<void> | undefined;

/**
 * Waits until the event loop has had nothing to do, for about ten milliseconds at most. Long work is handed to another
 * thread then. Where both threads share a core and the sender goes on working, Linux gives the core to the woken thread for
 * a whole slice (4 ms at 250 Hz), whatever their priorities are. A sender that sleeps gets it back for the next call.
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

/** How long the event loop has slept since it began. */
function idleMs(): number {
  return performance.eventLoopUtilization().idle;
}
