import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import { AppError } from '../errors.ts';
import { signLines } from './backup-signature.ts';
import type { Db, Engine } from './db.ts';
import { openingFailure } from './engine/faults.ts';
import { refuseLostLog } from './engine/lost-log.ts';
import { type MigrationFile, tablesOf } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect } from './engine/sqlite.ts';
import { findOrMakeFile } from './engine/sqlite-file.ts';
import { watchedDialect } from './engine/watched-dialect.ts';
import { noteDone } from './pruning/leases.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/**
 * A backup is an export of rows in lines of JSON: a header; for each table a line with its columns and then its rows, as
 * arrays; an end with the number of rows of each table; a signature, since format 2. It has the same form on both engines.
 */
export const formatVersion = 2;

/** Bytes of the longest line: a configuration has 4 MiB, and its text in a line twice as many at most. */
export const longestLine = 32 * 1024 * 1024;
/** A line longer than this is read only when it has no more values than a row or a header can have. */
export const shortLine = 64 * 1024;
/** Of such a line. A list of rows in a header is its deepest value. */
export const mostInLine = { depth: 4, elements: 10_000 };

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
  /** The version of the program that made it. */
  version: z.string(),
  engine: z.enum(['sqlite', 'postgres']),
  /** The migrations of the database, which say what form its tables have. */
  migrations: z.array(migrationRow).min(1),
});
export const tableLine = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
export const rowLine = z.array(z.union([z.string(), z.number(), z.null()]));
export const endLine = z.object({ end: z.record(z.string(), z.number()) });

export type BackupHeader = z.infer<typeof headerLine>;
export type BackupTable = z.infer<typeof tableLine>;
/** The migrations have columns of these kinds only. */
export type Row = z.infer<typeof rowLine>;
/** Number of rows of each table. */
export type RowCounts = { [table: string]: number };

/**
 * Tables that belong to the processes of one database: what they tell each other, who does which work, and the rests and
 * files of answers, which live for minutes. A restored database begins without.
 */
const tablesOfProcesses = ['changes', 'processes', 'leases', 'answer_pieces', 'files', 'file_chunks'];
/** Tables of what was called, which are most of a database. */
const tablesOfRecords = ['calls', 'call_counts', 'usage_counts', 'captures'];

export type BackupOptions = {
  engine: Engine;
  files: readonly MigrationFile[];
  /** The version of this program. */
  version: string;
  /** Epoch ms. */
  now: () => number;
};

/**
 * The text of a backup. The returned value counts its rows.
 * @throws AppError notFound for a database without our tables, conflict when another version has changed it
 */
export async function* exportTables(
  source: TableSource,
  { engine, files, version, now, leavesOutRecords }: BackupOptions & { leavesOutRecords: boolean },
): AsyncGenerator<string, RowCounts> {
  const migrations = await appliedMigrations(source);
  const unknown = unknownOf(migrations, files);
  if (unknown.length > 0) {
    throw new AppError(
      'conflict',
      `this version of toolhost, ${version}, does not know the migrations ${unknown.join(', ')} of the database; make the backup with the version that made them`,
    );
  }
  const header: BackupHeader = {
    toolhost_backup: formatVersion,
    made_at: new Date(now()).toISOString(),
    version,
    engine,
    migrations,
  };
  yield lineOf(header);
  const leftOut = new Set([...tablesOfProcesses, ...(leavesOutRecords ? tablesOfRecords : [])]);
  const counts: RowCounts = {};
  for (const table of tablesOf(files).filter((name) => source.tables.includes(name) && !leftOut.has(name))) {
    let text = '';
    for await (const row of source.rows(table)) {
      const columns = Object.keys(row);
      if (counts[table] === undefined) text = lineOf({ table, columns });
      counts[table] = (counts[table] ?? 0) + 1;
      text += lineOf(columns.map((column) => cellOf(row, column)));
      if (text.length < writtenTogether) continue;
      yield text;
      text = '';
    }
    yield text;
  }
  yield lineOf({ end: counts });
  return counts;
}

/** Adds a signature to the text of a backup, if there is a master key to sign with. */
export async function* signed(text: AsyncIterable<string>, keyring: Keyring | undefined): AsyncGenerator<string> {
  const hash = createHash('sha256');
  for await (const lines of text) {
    hash.update(lines);
    yield lines;
  }
  if (keyring) yield lineOf(signLines(hash, keyring));
}

/** Characters of rows that are written together. */
const writtenTogether = 100_000;

/** @throws Error for a line that no restore would read */
function lineOf(value: unknown): string {
  const line = `${JSON.stringify(value)}\n`;
  if (line.length > shortLine && Buffer.byteLength(line) > longestLine)
    throw new Error(`a row is longer than ${longestLine} bytes, which no backup can hold`);
  return line;
}

/** @throws Error for a kind of value that the format does not have; a migration that needs one extends the format */
function cellOf(row: ReadRow, column: string): Row[number] {
  const value = row[column];
  if (value === null || typeof value === 'string' || typeof value === 'number') return value;
  throw new Error(`the column ${column} has a value of the type ${typeof value}, which backups cannot hold`);
}

async function appliedMigrations(source: TableSource): Promise<BackupHeader['migrations']> {
  const rows: ReadRow[] = [];
  if (source.tables.includes('migrations')) for await (const row of source.rows('migrations')) rows.push(row);
  const { data } = headerLine.shape.migrations.safeParse(rows);
  if (data) return data.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  throw new AppError(
    'notFound',
    'the database has no tables of toolhost; set DATABASE_URL or DATA_DIR to that of the service',
  );
}

/** The names of migrations that this version does not have: it would not know which tables they have made. */
export function unknownOf(migrations: BackupHeader['migrations'], files: readonly MigrationFile[]): string[] {
  return migrations.map(({ name }) => name).filter((name) => !files.some((file) => file.name === name));
}

type ReadRow = { [column: string]: unknown };

/** One state of a database, which does not change while it is read, and which nobody waits for. */
type TableSource = {
  tables: readonly string[];
  /** The rows of one of the tables; their columns are always in the same order. */
  rows(table: string): AsyncIterable<ReadRow> | Iterable<ReadRow>;
  /**
   * Stores when a backup was made, epoch ms, for `toolhost_work_done_timestamp_seconds`. The rows cannot be read after it.
   * @throws Error of the database where this reader may not write
   */
  noteMade(at: number): Promise<void>;
  close(): Promise<void>;
};

const busyMs = 5000;

/**
 * Reads a SQLite file on a connection of its own, within one transaction. In WAL mode writers go on meanwhile; the
 * write-ahead log grows until the transaction ends.
 * @throws AppError conflict, see `refuseLostLog`; unavailable when it cannot be opened
 */
export async function openSqliteSource(file: string): Promise<TableSource> {
  try {
    await refuseLostLog(file);
    const database = new DatabaseSync(file, { readOnly: true });
    database.exec(`pragma busy_timeout = ${busyMs}; begin`);
    // The first read fixes the state that this transaction sees.
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    return {
      tables: tables.map(({ name }) => name as string),
      rows: (table) => database.prepare(`select * from ${table}`).iterate(),
      async noteMade(at) {
        database.close();
        const db = new Kysely<Tables>({ dialect: sqliteDialect(findOrMakeFile(file), createWriteLock()) });
        try {
          await noteDone(db, 'backup', at);
        } finally {
          await db.destroy();
        }
      },
      async close() {
        if (database.isOpen) database.close();
      },
    };
  } catch (error) {
    throw openingFailure(error, file);
  }
}

/** Rows that are fetched together; one of them may have several megabytes. */
const fetchedTogether = 100;

/**
 * Reads these tables of PostgreSQL, where they exist, in one transaction that sees one state. A migration waits for its
 * end, because it would change the tables; nothing else does.
 */
export async function openPostgresSource(location: PostgresLocation, wanted: readonly string[]): Promise<TableSource> {
  const db = await openPostgres(location);
  try {
    const present = await tablesIn(db, 'postgres');
    const tables = wanted.filter((name) => present.includes(name));
    const transaction = await db.startTransaction().execute();
    await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
    const names = tables.map((table) => sql.table(table));
    if (names.length > 0) await sql`lock table ${sql.join(names)} in access share mode`.execute(transaction);
    return {
      tables,
      async *rows(table) {
        await sql`declare backup_rows no scroll cursor for select * from ${sql.table(table)}`.execute(transaction);
        for (;;) {
          const { rows } = await sql<ReadRow>`fetch ${sql.lit(fetchedTogether)} from backup_rows`.execute(transaction);
          if (rows.length === 0) break;
          yield* rows;
        }
        await sql`close backup_rows`.execute(transaction);
      },
      async noteMade(at) {
        await transaction.rollback().execute();
        await noteDone(db, 'backup', at);
      },
      async close() {
        if (!transaction.isRolledBack) await transaction.rollback().execute();
        await db.destroy();
      },
    };
  } catch (error) {
    await db.destroy();
    throw openingFailure(error, undefined);
  }
}

export async function tablesIn(db: Db, engine: Engine): Promise<string[]> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  return (await query.execute(db)).rows.map(({ name }) => name);
}

export async function openPostgres(location: PostgresLocation): Promise<Kysely<Tables>> {
  const { postgresDialect } = await import('./engine/postgres.ts');
  return new Kysely<Tables>({ dialect: watchedDialect(postgresDialect(location, ignore, 'migrations'), ignore) });
}

export const ignore = () => undefined;
