import { Kysely, type Transaction } from 'kysely';
import { migrate } from './migrate.ts';
import type { Tables } from './schema.ts';
import { lockSqlite, sqliteDialect } from './sqlite.ts';
import { threadedSqliteDialect } from './threaded-sqlite.ts';

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
  // The driver is loaded where it is needed, like pg itself.
  const dialect =
    options.url === undefined
      ? sqliteDialect(options.file)
      : (await import('./postgres.ts')).postgresDialect(options.url, options.onError);
  const db = new Kysely<Tables>({ dialect });
  const records = options.url === undefined ? new Kysely<Tables>({ dialect: threadedSqliteDialect(options.file) }) : db;
  const close = async () => {
    if (records !== db) await records.destroy();
    await db.destroy();
    lock?.release();
  };
  try {
    if (options.url === undefined) await migrate(db, engine, options.migrations, options.now);
    else await migratePostgres(options.url, options);
  } catch (error) {
    await close();
    throw error;
  }
  return { engine, db, records, close };
}

/** On a connection of its own, because it may have to wait for another replica that migrates. */
async function migratePostgres(url: string, options: DatabaseOptions): Promise<void> {
  const { postgresDialect } = await import('./postgres.ts');
  const db = new Kysely<Tables>({ dialect: postgresDialect(url, options.onError, true) });
  try {
    await migrate(db, 'postgres', options.migrations, options.now);
  } finally {
    await db.destroy();
  }
}
