import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '@toolhost/errors/errors';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import { signLines } from './backup-signature.ts';
import type { Db, Engine } from './db.ts';
import { toOpenError } from './engine/database-errors.ts';
import { rejectLostLog } from './engine/lost-log.ts';
import { getTableNames, type MigrationFile } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect } from './engine/sqlite.ts';
import { findOrCreateFile } from './engine/sqlite-file.ts';
import { toWatchedDialect } from './engine/watched-dialect.ts';
import { recordCompletion } from './pruning/leases.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/**
 * Version of the backup format. A backup is an export of rows as lines of JSON: a header; for each table, a line with
 * its columns followed by its rows as arrays; an end line with the number of rows per table; since format 2, a
 * signature. The format is the same for both engines.
 */
export const formatVersion = 2;

/**
 * Maximum length of a line in bytes. A configuration has at most 4 MiB, and its text in a line at most twice as many.
 */
export const maxLineBytes = 32 * 1024 * 1024;
/** A longer line is read only if it has no more values than a row or a header can have. */
export const maxUncheckedLineLength = 64 * 1024;
/** Limits for a line longer than `maxUncheckedLineLength`. The deepest value is a list of rows in a header. */
export const maxLineShape = { depth: 4, elements: 10_000 };

const migrationRow = z.object({
  name: z.string(),
  applied_at: z.number(),
  checksum: z.string(),
  version: z.string(),
  readable_by: z.string().nullable(),
});
export const headerLine = z.object({
  toolhost_backup: z.number(),
  made_at: z.iso.datetime(),
  /** Version of Toolhost that created the backup. */
  version: z.string(),
  engine: z.enum(['sqlite', 'postgres']),
  /** Migrations of the database, which define the form of its tables. */
  migrations: z.array(migrationRow).min(1),
});
export const tableLine = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
export const rowLine = z.array(z.union([z.string(), z.number(), z.null()]));
export const endLine = z.object({ end: z.record(z.string(), z.number()) });

export type BackupHeader = z.infer<typeof headerLine>;
export type BackupTable = z.infer<typeof tableLine>;
/** Row with the only value types that the migrations use for columns. */
export type Row = z.infer<typeof rowLine>;
/** Number of rows in each table. */
export type RowCounts = { [table: string]: number };

/**
 * Tables that belong to the processes of one database: their messages, their leases, and the continuations and files of
 * results, which live for minutes. A restored database starts without them.
 */
const transientTables = ['changes', 'processes', 'leases', 'result_chunks', 'files', 'file_chunks'];
/** Tables of call records, which make up most of a database. */
const callRecordTables = ['calls', 'call_counts', 'usage_counts', 'captures'];

export type BackupOptions = {
  engine: Engine;
  files: readonly MigrationFile[];
  /** Version of this program. */
  version: string;
  /** Epoch ms. */
  now: () => number;
};

/**
 * Generates the text of a backup and returns its row counts.
 * @throws AppError notFound if the database has no Toolhost tables, conflict if another version has changed it
 */
export async function* exportTables(
  source: TableSource,
  { engine, files, version, now, excludesRecords }: BackupOptions & { excludesRecords: boolean },
): AsyncGenerator<string, RowCounts> {
  const migrations = await appliedMigrations(source);
  const unknown = findUnknownMigrations(migrations, files);
  if (unknown.length > 0) {
    throw new AppError(
      'conflict',
      `this version of toolhost, ${version}, does not know the database migrations ${unknown.join(', ')}; create the backup with the version that applied them`,
    );
  }
  const header: BackupHeader = {
    toolhost_backup: formatVersion,
    made_at: new Date(now()).toISOString(),
    version,
    engine,
    migrations,
  };
  yield toLine(header);
  const excluded = new Set([...transientTables, ...(excludesRecords ? callRecordTables : [])]);
  const counts: RowCounts = {};
  for (const table of getTableNames(files).filter((name) => source.tables.includes(name) && !excluded.has(name))) {
    let chunk = '';
    for await (const row of source.rows(table)) {
      const columns = Object.keys(row);
      if (counts[table] === undefined) chunk = toLine({ table, columns });
      counts[table] = (counts[table] ?? 0) + 1;
      chunk += toLine(columns.map((column) => toCell(row, column)));
      if (chunk.length < minChunkLength) continue;
      yield chunk;
      chunk = '';
    }
    yield chunk;
  }
  yield toLine({ end: counts });
  return counts;
}

/** Appends a signature to the text of a backup, if there is a master key to sign with. */
export async function* withSignature(
  text: AsyncIterable<string>,
  keyring: Keyring | undefined,
): AsyncGenerator<string> {
  const hash = createHash('sha256');
  for await (const chunk of text) {
    hash.update(chunk);
    yield chunk;
  }
  if (keyring) yield toLine(signLines(hash, keyring));
}

/** Minimum number of characters of rows per yielded text. */
const minChunkLength = 100_000;

/** @throws Error if the line is too long to be restored */
function toLine(value: unknown): string {
  const line = `${JSON.stringify(value)}\n`;
  if (line.length > maxUncheckedLineLength && Buffer.byteLength(line) > maxLineBytes)
    throw new Error(`a row is longer than ${maxLineBytes} bytes, so it cannot be backed up`);
  return line;
}

/** @throws Error if the format does not support the value type; a migration that needs it must extend the format */
function toCell(row: ReadRow, column: string): Row[number] {
  const value = row[column];
  if (value === null || typeof value === 'string' || typeof value === 'number') return value;
  throw new Error(`column ${column} has a value of type ${typeof value}, which the backup format does not support`);
}

async function appliedMigrations(source: TableSource): Promise<BackupHeader['migrations']> {
  const rows: ReadRow[] = [];
  if (source.tables.includes('migrations')) for await (const row of source.rows('migrations')) rows.push(row);
  const { data } = headerLine.shape.migrations.safeParse(rows);
  if (data) return data.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  throw new AppError(
    'notFound',
    'the database has no toolhost tables; set DATABASE_URL or DATA_DIR to the value that the service uses',
  );
}

/** Returns the names of migrations that this version does not have. It would not know the tables that they created. */
export function findUnknownMigrations(
  migrations: BackupHeader['migrations'],
  files: readonly MigrationFile[],
): string[] {
  return migrations.map(({ name }) => name).filter((name) => !files.some((file) => file.name === name));
}

type ReadRow = { [column: string]: unknown };

/** Snapshot of a database. It does not change while it is read, and it blocks no writer. */
type TableSource = {
  tables: readonly string[];
  /** Reads the rows of one table. The column order is always the same. */
  rows(table: string): AsyncIterable<ReadRow> | Iterable<ReadRow>;
  /**
   * Stores the time of the backup in epoch ms, for `toolhost_leader_job_success_timestamp_seconds`. No rows can be read
   * afterward.
   * @throws Error from the database if this reader may not write
   */
  recordBackupTime(at: number): Promise<void>;
  close(): Promise<void>;
};

const busyTimeoutMs = 5000;

/**
 * Reads a SQLite file on a separate connection, within one transaction. In WAL mode, writers continue in the meantime,
 * and the write-ahead log grows until the transaction ends.
 * @throws AppError conflict, see `rejectLostLog`; unavailable if the file cannot be opened
 */
export async function openSqliteSource(file: string): Promise<TableSource> {
  try {
    await rejectLostLog(file);
    const database = new DatabaseSync(file, { readOnly: true });
    database.exec(`pragma busy_timeout = ${busyTimeoutMs}; begin`);
    // The first read fixes the snapshot of this transaction.
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    return {
      tables: tables.map(({ name }) => name as string),
      rows: (table) => database.prepare(`select * from ${table}`).iterate(),
      async recordBackupTime(at) {
        database.close();
        const db = new Kysely<Tables>({ dialect: sqliteDialect(findOrCreateFile(file), createWriteLock()) });
        try {
          await recordCompletion(db, 'backup', at);
        } finally {
          await db.destroy();
        }
      },
      async close() {
        if (database.isOpen) database.close();
      },
    };
  } catch (error) {
    throw toOpenError(error, file);
  }
}

/** Number of rows per fetch. One row may have several megabytes. */
const rowsPerFetch = 100;

/**
 * Reads the given PostgreSQL tables, as far as they exist, in one transaction with one snapshot. A migration waits for
 * its end, because it would change the tables. No other work waits.
 */
export async function openPostgresSource(
  location: PostgresLocation,
  requestedTables: readonly string[],
): Promise<TableSource> {
  const db = await openPostgresForMigrations(location);
  try {
    const existingTables = await listTables(db, 'postgres');
    const tables = requestedTables.filter((name) => existingTables.includes(name));
    const transaction = await db.startTransaction().execute();
    await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
    const names = tables.map((table) => sql.table(table));
    if (names.length > 0) await sql`lock table ${sql.join(names)} in access share mode`.execute(transaction);
    return {
      tables,
      async *rows(table) {
        await sql`declare backup_rows no scroll cursor for select * from ${sql.table(table)}`.execute(transaction);
        for (;;) {
          const { rows } = await sql<ReadRow>`fetch ${sql.lit(rowsPerFetch)} from backup_rows`.execute(transaction);
          if (rows.length === 0) break;
          yield* rows;
        }
        await sql`close backup_rows`.execute(transaction);
      },
      async recordBackupTime(at) {
        await transaction.rollback().execute();
        await recordCompletion(db, 'backup', at);
      },
      async close() {
        if (!transaction.isRolledBack) await transaction.rollback().execute();
        await db.destroy();
      },
    };
  } catch (error) {
    await db.destroy();
    throw toOpenError(error, undefined);
  }
}

export async function listTables(db: Db, engine: Engine): Promise<string[]> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  return (await query.execute(db)).rows.map(({ name }) => name);
}

export async function openPostgresForMigrations(location: PostgresLocation): Promise<Kysely<Tables>> {
  const { postgresDialect } = await import('./engine/postgres.ts');
  return new Kysely<Tables>({ dialect: toWatchedDialect(postgresDialect(location, noop, 'migrations'), noop) });
}

export const noop = () => undefined;
