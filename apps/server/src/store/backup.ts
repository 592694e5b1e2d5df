import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '@toolhost/errors/errors';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import type { Db, Engine } from './db.ts';
import { toOpenError } from './engine/database-errors.ts';
import { rejectLostLog } from './engine/lost-log.ts';
import { getTableNames, type MigrationFile } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createSqliteDialect, createWriteLock } from './engine/sqlite.ts';
import { findOrCreateFile } from './engine/sqlite-file.ts';
import { toWatchedDialect } from './engine/watched-dialect.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/**
 * Version of the backup format. A backup is an export of rows as lines of JSON: a header; for each table, a line with
 * its columns followed by its rows as arrays; an end line with the number of rows per table; since format 2, a
 * signature. The format is the same for both engines.
 */
export const formatVersion = 2;

/** Maximum length of a line in bytes. A configuration has at most 4 MiB, and escaping at most doubles its text. */
export const maxLineBytes = 32 * 1024 * 1024;

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
/** Authenticates all previous lines with the master key that has this id. */
export const signatureLine = z.strictObject({ mac: z.string(), key: z.string().regex(/^[0-9a-f]{8}$/) });

export type BackupHeader = z.infer<typeof headerLine>;
export type SignatureLine = z.infer<typeof signatureLine>;
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
  /** Migrations of this version. */
  files: readonly MigrationFile[];
  /** Version of this program. */
  version: string;
  /** Epoch ms. */
  now: () => number;
  /** Master keys that sign a backup and can verify a signature; undefined without a master key. */
  keyring: Keyring | undefined;
};

/** `rows` receives the number of rows in each table. */
type ExportOptions = BackupOptions & { excludesRecords: boolean; rows: RowCounts };

/** Keeps MACs of backups apart from MACs of other texts. */
export const signaturePurpose = 'backup';
/** Minimum number of characters per yielded text. */
const minChunkLength = 100_000;

/**
 * Generates the text of a backup.
 * @throws AppError notFound if the database has no Toolhost tables, conflict if another version has changed it; Error if
 * a line is too long to be restored
 */
export async function* exportTables(source: TableSource, options: ExportOptions): AsyncGenerator<string> {
  const hash = createHash('sha256');
  let chunk = '';
  for await (const value of exportLines(source, options)) {
    const line = `${JSON.stringify(value)}\n`;
    if (Buffer.byteLength(line) > maxLineBytes)
      throw new Error(`a row is longer than ${maxLineBytes} bytes, so it cannot be backed up`);
    hash.update(line);
    chunk += line;
    if (chunk.length < minChunkLength) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
  const { keyring } = options;
  if (!keyring) return;
  const mac = keyring.mac(hash.digest('base64url'), signaturePurpose);
  yield `${JSON.stringify({ mac, key: keyring.keyIds[0] } satisfies SignatureLine)}\n`;
}

/** Generates the values of all lines except the signature. */
async function* exportLines(
  source: TableSource,
  { engine, files, version, now, excludesRecords, rows: counts }: ExportOptions,
): AsyncGenerator<BackupHeader | BackupTable | Row | z.infer<typeof endLine>> {
  const migrations = await findMigrations(source);
  const unknown = findUnknownMigrations(migrations, files);
  if (unknown.length > 0) {
    throw new AppError(
      'conflict',
      `this version of toolhost, ${version}, does not know the database migrations ${unknown.join(', ')}; create the backup with the version that applied them`,
    );
  }
  yield { toolhost_backup: formatVersion, made_at: new Date(now()).toISOString(), version, engine, migrations };
  const excluded = new Set([...transientTables, ...(excludesRecords ? callRecordTables : [])]);
  for (const table of getTableNames(files).filter((name) => source.tables.includes(name) && !excluded.has(name))) {
    for await (const row of source.rows(table)) {
      const columns = Object.keys(row);
      if (counts[table] === undefined) yield { table, columns };
      counts[table] = (counts[table] ?? 0) + 1;
      yield columns.map((column) => toCell(row, column));
    }
  }
  yield { end: counts };
}

/** @throws Error if the format does not support the value type; a migration that needs it must extend the format */
function toCell(row: ReadRow, column: string): Row[number] {
  const value = row[column];
  if (value === null || typeof value === 'string' || typeof value === 'number') return value;
  throw new Error(`column ${column} has a value of type ${typeof value}, which the backup format does not support`);
}

async function findMigrations(source: TableSource): Promise<BackupHeader['migrations']> {
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
};

/** PostgreSQL database, or the SQLite file if it is undefined. */
export type DatabaseLocation = { postgres: PostgresLocation | undefined; file: string };

/**
 * Passes a snapshot of the database to `read`. `requestedTables` are the tables that it may read.
 * @throws AppError conflict, see `rejectLostLog`; unavailable if the database cannot be opened; any error from `read`
 */
export async function readSnapshot<Result>(
  location: DatabaseLocation,
  requestedTables: readonly string[],
  read: (source: TableSource) => Promise<Result>,
): Promise<Result> {
  if (!location.postgres) return readSqliteSnapshot(location.file, read);
  return withConnection(location, async (db) => {
    const existing = await sql<{ name: string }>`
      select tablename as name from pg_tables where schemaname = current_schema()`.execute(db);
    const tables = requestedTables.filter((table) => existing.rows.some(({ name }) => name === table));
    const names = tables.map((table) => sql.table(table));
    return db.transaction().execute(async (transaction) => {
      await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
      // A migration waits until the lock is released, because it would change the tables. No other work waits.
      if (names.length > 0)
        await sql`lock table ${sql.join(names)} in access share mode`.execute(transaction).catch((error: unknown) => {
          throw toOpenError(error, undefined);
        });
      return read({ tables, rows: (table) => readRows(transaction, table) });
    });
  });
}

/** Number of rows per fetch. One row may have several megabytes. */
const rowsPerFetch = 100;

async function* readRows(transaction: Db, table: string): AsyncGenerator<ReadRow> {
  await sql`declare backup_rows no scroll cursor for select * from ${sql.table(table)}`.execute(transaction);
  for (;;) {
    const { rows } = await sql<ReadRow>`fetch ${sql.lit(rowsPerFetch)} from backup_rows`.execute(transaction);
    if (rows.length === 0) break;
    yield* rows;
  }
  await sql`close backup_rows`.execute(transaction);
}

const busyTimeoutMs = 5000;

/**
 * Reads a SQLite file on a separate connection, within one transaction. In WAL mode, writers continue in the meantime,
 * and the write-ahead log grows until the transaction ends.
 */
async function readSqliteSnapshot<Result>(
  file: string,
  read: (source: TableSource) => Promise<Result>,
): Promise<Result> {
  const { database, tables } = await openSnapshot(file);
  try {
    return await read({ tables, rows: (table) => database.prepare(`select * from ${table}`).iterate() });
  } finally {
    database.close();
  }
}

async function openSnapshot(file: string): Promise<{ database: DatabaseSync; tables: string[] }> {
  try {
    await rejectLostLog(file);
    const database = new DatabaseSync(file, { readOnly: true });
    database.exec(`pragma busy_timeout = ${busyTimeoutMs}; begin`);
    // The first read fixes the snapshot of this transaction.
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    return { database, tables: tables.map(({ name }) => name as string) };
  } catch (error) {
    throw toOpenError(error, file);
  }
}

/**
 * Passes a connection to `work`, without migrating the database. A SQLite file is created.
 * @throws AppError unavailable; any error from `work`
 */
export async function withConnection<Result>(
  { postgres, file }: DatabaseLocation,
  work: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const dialect = postgres
    ? (await import('./engine/postgres.ts')).createPostgresDialect(postgres, noop, 'migrations')
    : createSqliteDialect(findOrCreateFile(file), createWriteLock());
  const db = new Kysely<Tables>({ dialect: toWatchedDialect(dialect, noop) });
  try {
    await sql`select 1`.execute(db).catch((error: unknown) => {
      throw toOpenError(error, postgres ? undefined : file);
    });
    return await work(db);
  } finally {
    await db.destroy();
  }
}

const noop = () => undefined;
