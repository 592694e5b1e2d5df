import { Kysely, type Transaction } from 'kysely';
import { migrate } from './migrate.ts';
import type { PoolUse } from './postgres.ts';
import type { Tables } from './schema.ts';
import { lockSqlite, sqliteDialect } from './sqlite.ts';
import { type ThreadAccess, threadedSqliteDialect } from './threaded-sqlite.ts';

/** Either the database or a transaction on it; every query function takes one. */
export type Db = Kysely<Tables> | Transaction<Tables>;

export type Engine = 'sqlite' | 'postgres';

export type Database = {
  engine: Engine;
  db: Kysely<Tables>;
  /**
   * For call records and last uses, which nobody was promised: with SQLite a thread of its own writes them, and its
   * commits do not wait for the disk.
   */
  records: Kysely<Tables>;
  /**
   * For lists, statistics and exports, which may take long and are never in the way of a call: a small pool of
   * connections, with SQLite a thread that only reads.
   */
  reports: Kysely<Tables>;
  /** For the look for changes, which must not wait for anybody. */
  changes: Kysely<Tables>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  /** `postgres://…`, or undefined for the SQLite file. */
  url: string | undefined;
  file: string;
  migrations: string;
  /** Whether this process serves and so must be alone on a SQLite file. */
  exclusive: boolean;
  now: () => number;
  onError: (error: Error) => void;
};

/** Opens the database and brings its tables up to date. @throws AppError conflict, see `lockSqlite` */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const engine = options.url === undefined ? 'sqlite' : 'postgres';
  const lock = engine === 'sqlite' && options.exclusive ? lockSqlite(options.file) : undefined;
  const connect = await connectionsTo(options);
  const db = connect('requests');
  const isSqlite = engine === 'sqlite';
  const records = isSqlite ? threaded(options.file, 'write') : db;
  const reports = isSqlite ? threaded(options.file, 'read') : connect('reports');
  const changes = isSqlite ? db : connect('changes');
  const close = async () => {
    for (const each of new Set([records, reports, changes, db])) await each.destroy();
    lock?.release();
  };
  try {
    if (isSqlite) await migrate(db, engine, options.migrations, options.now);
    else await migratePostgres(connect('migrations'), options);
  } catch (error) {
    await close();
    throw error;
  }
  return { engine, db, records, reports, changes, close };
}

function threaded(file: string, access: ThreadAccess): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: threadedSqliteDialect(file, access) });
}

/** How to connect for a use; with SQLite it makes no difference. pg is loaded where it is needed. */
async function connectionsTo({ url, file, onError }: DatabaseOptions): Promise<(use: PoolUse) => Kysely<Tables>> {
  if (url === undefined) return () => new Kysely<Tables>({ dialect: sqliteDialect(file) });
  const { postgresDialect } = await import('./postgres.ts');
  return (use) => new Kysely<Tables>({ dialect: postgresDialect(url, onError, use) });
}

/** On a connection of its own, because it may have to wait for another replica that migrates. */
async function migratePostgres(db: Kysely<Tables>, options: DatabaseOptions): Promise<void> {
  try {
    await migrate(db, 'postgres', options.migrations, options.now);
  } finally {
    await db.destroy();
  }
}
