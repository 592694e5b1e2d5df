import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import { scanJson } from '../domain/json/json-scan.ts';
import { AppError } from '../errors.ts';
import type { Db, Engine } from './db.ts';
import { openingFailure } from './engine/faults.ts';
import { type MigrationFile, migrateWithin, tablesOf } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect } from './engine/sqlite.ts';
import { findOrMakeFile, makeDataFolderPrivate } from './engine/sqlite-file.ts';
import { lockSqlite } from './engine/sqlite-guard.ts';
import { watchedDialect } from './engine/watched-dialect.ts';
import { noteDone } from './pruning/leases.ts';
import type { Tables } from './schema.ts';

/**
 * A backup is an export of rows in lines of JSON: a header; for each table a line with its columns and then its rows, as
 * arrays; an end with the number of rows of each table. It has the same form on both engines.
 */
const formatVersion = 1;

/** Bytes of the longest line: a configuration has 4 MiB, and its text in a line twice as many at most. */
export const longestLine = 32 * 1024 * 1024;
/** A line longer than this is read only when it has no more values than a row or a header can have. */
const shortLine = 64 * 1024;
/** Of such a line. A list of rows in a header is its deepest value. */
const mostInLine = { depth: 4, elements: 10_000 };

const migrationRow = z.object({
  name: z.string(),
  applied_at: z.number(),
  checksum: z.string(),
  version: z.string(),
  readable_by: z.string().nullable(),
});
const headerLine = z.object({
  toolhost_backup: z.number(),
  made_at: z.iso.datetime(),
  /** The version of the program that made it. */
  version: z.string(),
  engine: z.enum(['sqlite', 'postgres']),
  /** The migrations of the database, which say what form its tables have. */
  migrations: z.array(migrationRow),
});
const tableLine = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
const rowLine = z.array(z.union([z.string(), z.number(), z.null()]));
const endLine = z.object({ end: z.record(z.string(), z.number()) });

export type BackupHeader = z.infer<typeof headerLine>;
type BackupTable = z.infer<typeof tableLine>;
/** The migrations have columns of these kinds only. */
type Row = z.infer<typeof rowLine>;
/** Number of rows of each table. */
export type RowCounts = { [table: string]: number };

/**
 * Tables that belong to the processes of one database: what they tell each other, who does which work, and the rests and
 * files of answers, which live for minutes. A restored database begins without.
 */
const tablesOfProcesses = ['changes', 'processes', 'leases', 'answer_pieces', 'files', 'file_chunks'];
/** Tables of what was called, which are most of a database. */
const tablesOfRecords = ['calls', 'call_counts', 'captures'];

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
  const { data } = z.array(migrationRow).min(1).safeParse(rows);
  if (data) return data.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  throw new AppError(
    'notFound',
    'the database has no tables of toolhost; set DATABASE_URL or DATA_DIR to that of the service',
  );
}

/** The names of migrations that this version does not have: it would not know which tables they have made. */
function unknownOf(migrations: BackupHeader['migrations'], files: readonly MigrationFile[]): string[] {
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
 */
export function openSqliteSource(file: string): TableSource {
  try {
    const database = new DatabaseSync(file, { readOnly: true });
    database.exec(`pragma busy_timeout = ${busyMs}; begin`);
    // The first read fixes the state that this transaction sees.
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    return {
      tables: tables.map(({ name }) => name as string),
      rows: (table) => database.prepare(`select * from ${table}`).iterate(),
      async noteMade(at) {
        const db = new Kysely<Tables>({ dialect: sqliteDialect(findOrMakeFile(file), createWriteLock()) });
        try {
          await noteDone(db, 'backup', at);
        } finally {
          await db.destroy();
        }
      },
      close: async () => database.close(),
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

async function tablesIn(db: Db, engine: Engine): Promise<string[]> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  return (await query.execute(db)).rows.map(({ name }) => name);
}

async function openPostgres(location: PostgresLocation): Promise<Kysely<Tables>> {
  const { postgresDialect } = await import('./engine/postgres.ts');
  return new Kysely<Tables>({ dialect: watchedDialect(postgresDialect(location, ignore, 'migrations'), ignore) });
}

const ignore = () => undefined;

/** An empty database that a backup is read into. */
export type EmptyDatabase = {
  engine: Engine;
  db: Kysely<Tables>;
  /** Makes what was read the database; without that, `close` leaves nothing behind. */
  keep(): Promise<void>;
  close(): Promise<void>;
};

/**
 * A SQLite file under another name, which gets its own when everything is in it, so that an interrupted restore leaves no
 * half database.
 * @throws AppError conflict when there is a database already
 */
export async function openEmptySqlite(file: string): Promise<EmptyDatabase> {
  const restoring = `${file}.restoring`;
  const names = (path: string) => [path, `${path}-wal`, `${path}-shm`];
  const clear = () => {
    for (const path of names(restoring)) rmSync(path, { force: true });
  };
  try {
    makeDataFolderPrivate(dirname(file));
    const present = names(file).find((path) => existsSync(path));
    if (present !== undefined) {
      throw new AppError(
        'conflict',
        `${present} is there already; restore into an empty folder (DATA_DIR), or stop the service and move its database away, so that nothing is overwritten`,
      );
    }
    // No service can begin a database of its own meanwhile, and no other restore the same one.
    const lock = lockSqlite(file);
    clear();
    const dialect = watchedDialect(sqliteDialect(findOrMakeFile(restoring), createWriteLock()), ignore);
    const db = new Kysely<Tables>({ dialect });
    return {
      engine: 'sqlite',
      db,
      async keep() {
        await sql`pragma wal_checkpoint(truncate)`.execute(db);
        await db.destroy();
        syncToDisk(restoring);
        renameSync(restoring, file);
        syncToDisk(dirname(file));
      },
      async close() {
        await db.destroy();
        clear();
        lock.release();
      },
    };
  } catch (error) {
    throw openingFailure(error, file);
  }
}

/** Makes a file, or the names in a folder, last through a power cut. */
export function syncToDisk(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** A PostgreSQL database; `importTables` refuses one with tables of ours, and fills it in one transaction. */
export async function openEmptyPostgres(location: PostgresLocation): Promise<EmptyDatabase> {
  const db = await openPostgres(location);
  try {
    await sql`select 1`.execute(db);
  } catch (error) {
    await db.destroy();
    throw openingFailure(error, undefined);
  }
  return { engine: 'postgres', db, keep: async () => undefined, close: () => db.destroy() };
}

/** PostgreSQL takes 65,535 values in a statement, SQLite 32,766. */
const mostValues = 30_000;
/** Rows, and bytes of rows, that are collected before they are inserted. */
const mostTogether = { rows: 500, bytes: 1_000_000 };

/**
 * Fills an empty database with the lines of a backup, in one transaction: makes the tables as they were then, fills them,
 * and applies the migrations that are newer than the backup.
 * @throws AppError conflict when the database has our tables or the backup is of a newer version; invalid when the backup
 * is damaged
 */
export async function importTables(
  db: Kysely<Tables>,
  lines: AsyncIterable<Buffer>,
  options: BackupOptions,
): Promise<{ header: BackupHeader; counts: RowCounts }> {
  const { engine, files } = options;
  return db.transaction().execute(async (transaction) => {
    const ours = new Set(tablesOf(files));
    const counts: RowCounts = {};
    let header: BackupHeader | undefined;
    let table: BackupTable | undefined;
    let isEnded = false;
    let rows: Row[] = [];
    let bytes = 0;
    const insert = async () => {
      if (!table || rows.length === 0) return;
      await insertRows(transaction, table, rows);
      counts[table.table] = (counts[table.table] ?? 0) + rows.length;
      rows = [];
      bytes = 0;
    };
    for await (const line of lines) {
      const value = parseLine(line);
      if (isEnded) throw damaged('something follows its end');
      if (!header) {
        header = headerOf(value);
        await refuseFilled(transaction, engine, files);
        await migrateWithin(transaction, engine, filesOf(header, options), options);
      } else if (Array.isArray(value)) {
        rows.push(rowOf(value, table));
        bytes += line.length;
        if (rows.length >= mostTogether.rows || bytes >= mostTogether.bytes) await insert();
      } else {
        await insert();
        const end = endLine.safeParse(value).data?.end;
        isEnded = end !== undefined;
        if (end && !isDeepStrictEqual(end, counts)) throw damaged('rows are missing');
        if (!end) table = tableOf(value, ours, counts);
      }
    }
    if (!header || !isEnded) throw damaged(header ? 'its end is missing' : 'it is empty');
    await keepHistory(transaction, header);
    await migrateWithin(transaction, engine, files, options);
    if (engine === 'sqlite') await refuseBrokenReferences(transaction);
    return { header, counts };
  });
}

function parseLine(line: Buffer): unknown {
  try {
    if (line.length > shortLine && hasMany(line)) throw new SyntaxError();
    return JSON.parse(line.toString()) as unknown;
  } catch {
    throw damaged('a line is not JSON of a row, a table or a header');
  }
}

/** Whether the values of a line would take far more memory and time than its text. */
function hasMany(line: Buffer): boolean {
  const scan = scanJson(line, mostInLine.depth);
  return !scan || scan.depth > mostInLine.depth || scan.elements > mostInLine.elements;
}

function headerOf(value: unknown): BackupHeader {
  const form = z.object({ toolhost_backup: z.number() }).safeParse(value).data?.toolhost_backup;
  if (form === undefined) throw damaged('it does not begin with the header of one');
  if (form > formatVersion) {
    throw new AppError(
      'conflict',
      `the backup has format ${form}, and this version reads up to ${formatVersion}; restore it with the version of toolhost that made it or a newer one`,
    );
  }
  const header = headerLine.safeParse(value);
  if (!header.success) throw damaged('its first line is not complete');
  return header.data;
}

/** The next table. Its rows are counted in `counts` from then on. */
function tableOf(value: unknown, ours: ReadonlySet<string>, counts: RowCounts): BackupTable {
  const { data } = tableLine.safeParse(value);
  if (!data) throw damaged('a line is neither a table nor a row');
  const { table } = data;
  if (!ours.has(table)) throw damaged(`it has a table ${table}, which toolhost does not`);
  if (Object.hasOwn(counts, table)) throw damaged(`the table ${table} stands in it twice`);
  counts[table] = 0;
  return data;
}

function rowOf(value: readonly unknown[], table: BackupTable | undefined): Row {
  if (!table) throw damaged('a row stands outside of a table');
  const { data } = rowLine.safeParse(value);
  if (data?.length !== table.columns.length) throw damaged(`a row of ${table.table} does not fit its columns`);
  return data;
}

/** The files of the migrations that the backup has. @throws AppError conflict */
function filesOf({ migrations, version }: BackupHeader, { files, version: own }: BackupOptions): MigrationFile[] {
  const known = new Map(files.map((file) => [file.name, file]));
  const unknown = unknownOf(migrations, files);
  if (unknown.length > 0) {
    throw new AppError(
      'conflict',
      `the backup was made by version ${version} of toolhost, and this is ${own}, which does not know its migrations ${unknown.join(', ')}; restore it with version ${version} or a newer one`,
    );
  }
  const changed = migrations.filter(({ name, checksum }) => checksum !== known.get(name)?.checksum);
  if (changed.length > 0) {
    throw new AppError(
      'conflict',
      `the migrations ${changed.map(({ name }) => name).join(', ')} of the backup have another text than those of this installation; restore it with version ${version} of toolhost, from its release`,
    );
  }
  const applied = new Set(migrations.map(({ name }) => name));
  return files.filter(({ name }) => applied.has(name));
}

/** @throws AppError conflict when there is one of our tables */
async function refuseFilled(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<void> {
  const ours = new Set(['migrations', ...tablesOf(files)]);
  const found = (await tablesIn(db, engine)).filter((name) => ours.has(name));
  if (found.length === 0) return;
  throw new AppError(
    'conflict',
    `the database is not empty: it has the tables ${found.slice(0, 5).join(', ')}; restore into an empty database, so that nothing is overwritten`,
  );
}

async function insertRows(db: Db, { table, columns }: BackupTable, rows: readonly Row[]): Promise<void> {
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const together = Math.max(1, Math.floor(mostValues / columns.length));
  for (let from = 0; from < rows.length; from += together) {
    const values = rows.slice(from, from + together).map((row) => sql`(${sql.join([...row])})`);
    try {
      await sql`insert into ${sql.table(table)} (${names}) values ${sql.join(values)}`.execute(db);
    } catch (error) {
      if (isContradiction(error)) throw damaged(`the rows of ${table} contradict each other or their columns`);
      throw error;
    }
  }
}

const sqliteConstraint = 19;

/** Whether a row cannot be stored because of its values: a constraint (class 23) or the kind of a value (class 22). */
function isContradiction(error: unknown): boolean {
  const { code, errcode = 0 } = error as { code?: unknown; errcode?: number };
  return /^2[23]\w{3}$/.test(String(code)) || (errcode & 0xff) === sqliteConstraint;
}

/** Puts back when each migration was applied, and by which version. */
async function keepHistory(db: Db, { migrations }: BackupHeader): Promise<void> {
  for (const { name, applied_at, version } of migrations) {
    await db.updateTable('migrations').set({ applied_at, version }).where('name', '=', name).execute();
  }
}

/** PostgreSQL has checked each row that it was given. */
async function refuseBrokenReferences(db: Db): Promise<void> {
  const { rows } = await sql<{ table: string }>`select "table" from pragma_foreign_key_check limit 1`.execute(db);
  if (rows[0]) throw damaged(`a row of ${rows[0].table} refers to one that is missing`);
}

export function damaged(reason: string): AppError {
  return new AppError(
    'invalid',
    `this is not a sound backup: ${reason}; take another one, and check it with "toolhost verify"`,
  );
}
