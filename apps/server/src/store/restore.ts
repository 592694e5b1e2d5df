import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '@toolhost/errors/errors';
import { scanJson } from '@toolhost/json/json-scan';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import { programName } from '../version.ts';
import {
  type BackupHeader,
  type BackupOptions,
  type BackupTable,
  endLine,
  findUnknownMigrations,
  formatVersion,
  headerLine,
  listTables,
  maxLineShape,
  maxUncheckedLineLength,
  noop,
  openPostgresForMigrations,
  type Row,
  type RowCounts,
  rowLine,
  tableLine,
} from './backup.ts';
import { type SignatureLine, type SignatureState, signatureLine, verifyLines } from './backup-signature.ts';
import type { Db, Engine } from './db.ts';
import { toOpenError } from './engine/database-errors.ts';
import { removeMark } from './engine/log-mark.ts';
import { getTableNames, type MigrationFile, migrateInTransaction } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect } from './engine/sqlite.ts';
import { createPrivateDataFolder, findOrCreateFile, syncToDisk } from './engine/sqlite-file.ts';
import { lockSqlite } from './engine/sqlite-guard.ts';
import { toWatchedDialect } from './engine/watched-dialect.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/** Empty database into which a backup is restored. */
export type EmptyDatabase = {
  engine: Engine;
  db: Kysely<Tables>;
  /** Commits the restored data as the database. Without this call, `close` leaves nothing behind. */
  commit(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens a SQLite file under a temporary name. It receives its final name when it is complete, so that an interrupted
 * restore leaves no partial database.
 * @throws AppError conflict if a database already exists
 */
export async function openEmptySqlite(file: string): Promise<EmptyDatabase> {
  const temporaryFile = `${file}.restoring`;
  const names = (path: string) => [path, `${path}-wal`, `${path}-shm`];
  const clear = () => {
    for (const path of names(temporaryFile)) rmSync(path, { force: true });
  };
  try {
    createPrivateDataFolder(dirname(file));
    const existingFile = names(file).find((path) => existsSync(path));
    if (existingFile !== undefined) {
      throw new AppError(
        'conflict',
        `${existingFile} already exists; to overwrite nothing, restore into an empty folder (DATA_DIR), or stop the service and move its database away`,
      );
    }
    // Prevents a service from creating its own database in the meantime, and another restore of the same database.
    const lock = lockSqlite(file);
    clear();
    const dialect = toWatchedDialect(sqliteDialect(findOrCreateFile(temporaryFile), createWriteLock()), noop);
    const db = new Kysely<Tables>({ dialect });
    return {
      engine: 'sqlite',
      db,
      async commit() {
        await sql`pragma wal_checkpoint(truncate)`.execute(db);
        await db.destroy();
        syncToDisk(temporaryFile);
        removeMark(file);
        renameSync(temporaryFile, file);
        syncToDisk(dirname(file));
      },
      async close() {
        await db.destroy();
        clear();
        lock.release();
      },
    };
  } catch (error) {
    throw toOpenError(error, file);
  }
}

/**
 * Opens a PostgreSQL database. `importTables` rejects a database that has Toolhost tables, and restores into it in one
 * transaction.
 */
export async function openEmptyPostgres(location: PostgresLocation): Promise<EmptyDatabase> {
  const db = await openPostgresForMigrations(location);
  try {
    await sql`select 1`.execute(db);
  } catch (error) {
    await db.destroy();
    throw toOpenError(error, undefined);
  }
  return { engine: 'postgres', db, commit: async () => undefined, close: () => db.destroy() };
}

/** Maximum number of values in a statement. PostgreSQL allows 65,535, SQLite 32,766. */
const maxValuesPerStatement = 30_000;
/** Number of rows, and of their bytes, that are collected before an insert. */
const maxBatch = { rows: 500, bytes: 1_000_000 };

type RestoreOptions = BackupOptions & {
  /** Master keys that can verify the signature. */
  keyring: Keyring | undefined;
  /** Accepts a backup whose signature is missing, wrong, or from a key that is not configured here. */
  unverified: boolean;
};

/** `key` is the id of the master key that signed the backup. */
type ImportedBackup = {
  header: BackupHeader;
  counts: RowCounts;
  signature: SignatureState;
  key: string | undefined;
};

/**
 * Restores a backup into an empty database in one transaction: creates the tables as they were at the time of the
 * backup, inserts the rows, and applies the migrations that are newer than the backup.
 * @throws AppError conflict if the database has Toolhost tables or the backup is from a newer version; invalid if the
 * backup is damaged or cannot be verified
 */
export async function importTables(
  db: Kysely<Tables>,
  lines: AsyncIterable<Buffer>,
  options: RestoreOptions,
): Promise<ImportedBackup> {
  const { engine, files } = options;
  return db.transaction().execute(async (transaction) => {
    const ownTables = new Set(getTableNames(files));
    const hash = createHash('sha256');
    let trailer: SignatureLine | undefined;
    const counts: RowCounts = {};
    let header: BackupHeader | undefined;
    let table: BackupTable | undefined;
    let hasEnded = false;
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
      if (hasEnded) {
        const { data } = signatureLine.safeParse(value);
        if (!data || trailer) throw damagedBackup('data follows its end line');
        trailer = data;
        continue;
      }
      hash.update(line).update('\n');
      if (!header) {
        header = parseHeader(value);
        await rejectNonEmpty(transaction, engine, files);
        await migrateInTransaction(transaction, engine, findMigrationFiles(header, options), options);
      } else if (Array.isArray(value)) {
        rows.push(parseRow(value, table));
        bytes += line.length;
        if (rows.length >= maxBatch.rows || bytes >= maxBatch.bytes) await insert();
      } else {
        await insert();
        const end = endLine.safeParse(value).data?.end;
        hasEnded = end !== undefined;
        if (end && !isDeepStrictEqual(end, counts)) throw damagedBackup('rows are missing');
        if (!end) table = parseTable(value, ownTables, counts);
      }
    }
    if (!header || !hasEnded) throw damagedBackup(header ? 'its end line is missing' : 'it is empty');
    const signature = verifyLines(hash, trailer, options.keyring);
    if (signature !== 'valid' && !options.unverified) throw unverifiedError(signature, trailer?.key);
    await restoreMigrationHistory(transaction, header);
    await migrateInTransaction(transaction, engine, files, options);
    if (engine === 'sqlite') await rejectBrokenReferences(transaction);
    return { header, counts, signature, key: trailer?.key };
  });
}

function parseLine(line: Buffer): unknown {
  try {
    if (line.length > maxUncheckedLineLength && isTooComplex(line)) throw new SyntaxError();
    return JSON.parse(line.toString()) as unknown;
  } catch {
    throw damagedBackup('a line is not the JSON of a row, a table, or a header');
  }
}

/** Returns true if the values of a line would take far more memory and time than its text. */
function isTooComplex(line: Buffer): boolean {
  const scan = scanJson(line, maxLineShape.depth);
  return !scan || scan.depth > maxLineShape.depth || scan.elements > maxLineShape.elements;
}

function parseHeader(value: unknown): BackupHeader {
  const backupFormat = z.object({ toolhost_backup: z.number() }).safeParse(value).data?.toolhost_backup;
  if (backupFormat === undefined) throw damagedBackup('it does not start with a backup header');
  if (backupFormat > formatVersion) {
    throw new AppError(
      'conflict',
      `the backup has format ${backupFormat}, and this version reads up to ${formatVersion}; restore it with the toolhost version that created it or a newer one`,
    );
  }
  const header = headerLine.safeParse(value);
  if (!header.success) throw damagedBackup('its header is incomplete');
  return header.data;
}

/** Parses the start of the next table. From then on, its rows are counted in `counts`. */
function parseTable(value: unknown, ownTables: ReadonlySet<string>, counts: RowCounts): BackupTable {
  const { data } = tableLine.safeParse(value);
  if (!data) throw damagedBackup('a line is neither a table nor a row');
  const { table } = data;
  if (!ownTables.has(table)) throw damagedBackup(`it contains the unknown table ${table}`);
  if (Object.hasOwn(counts, table)) throw damagedBackup(`table ${table} occurs twice`);
  counts[table] = 0;
  return data;
}

function parseRow(value: readonly unknown[], table: BackupTable | undefined): Row {
  if (!table) throw damagedBackup('a row precedes the first table');
  const { data } = rowLine.safeParse(value);
  if (data?.length !== table.columns.length)
    throw damagedBackup(`a row of table ${table.table} does not match its columns`);
  return data;
}

/** Returns the files of the migrations in the backup. @throws AppError conflict */
function findMigrationFiles(
  { migrations, version }: BackupHeader,
  { files, version: ownVersion }: BackupOptions,
): MigrationFile[] {
  const filesByName = new Map(files.map((file) => [file.name, file]));
  const unknownNames = findUnknownMigrations(migrations, files);
  if (unknownNames.length > 0) {
    throw new AppError(
      'conflict',
      `the backup was created by toolhost ${version}, but this version, ${ownVersion}, does not know its migrations ${unknownNames.join(', ')}; restore it with version ${version} or a newer one`,
    );
  }
  const changedMigrations = migrations.filter(({ name, checksum }) => checksum !== filesByName.get(name)?.checksum);
  if (changedMigrations.length > 0) {
    throw new AppError(
      'conflict',
      `the migrations ${changedMigrations.map(({ name }) => name).join(', ')} of the backup differ from those of this installation; restore it with the official release of toolhost ${version}`,
    );
  }
  const applied = new Set(migrations.map(({ name }) => name));
  return files.filter(({ name }) => applied.has(name));
}

/** @throws AppError conflict if a Toolhost table exists */
async function rejectNonEmpty(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<void> {
  const ownTables = new Set(['migrations', ...getTableNames(files)]);
  const existingTables = (await listTables(db, engine)).filter((name) => ownTables.has(name));
  if (existingTables.length === 0) return;
  throw new AppError(
    'conflict',
    `the database is not empty: it has the tables ${existingTables.slice(0, 5).join(', ')}; restore into an empty database to overwrite nothing`,
  );
}

async function insertRows(db: Db, { table, columns }: BackupTable, rows: readonly Row[]): Promise<void> {
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const rowsPerStatement = Math.max(1, Math.floor(maxValuesPerStatement / columns.length));
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    const values = rows.slice(start, start + rowsPerStatement).map((row) => sql`(${sql.join([...row])})`);
    try {
      await sql`insert into ${sql.table(table)} (${names}) values ${sql.join(values)}`.execute(db);
    } catch (error) {
      if (isConstraintViolation(error))
        throw damagedBackup(`rows of table ${table} violate a constraint or a column type`);
      throw error;
    }
  }
}

const sqliteConstraint = 19;

/** Returns true if a row cannot be stored because of its values: SQLSTATE class 23 (constraint) or 22 (data type). */
function isConstraintViolation(error: unknown): boolean {
  const { code, errcode = 0 } = error as { code?: unknown; errcode?: number };
  return /^2[23]\w{3}$/.test(String(code)) || (errcode & 0xff) === sqliteConstraint;
}

/** Restores when each migration was applied, and by which version. */
async function restoreMigrationHistory(db: Db, { migrations }: BackupHeader): Promise<void> {
  for (const { name, applied_at, version } of migrations) {
    await db.updateTable('migrations').set({ applied_at, version }).where('name', '=', name).execute();
  }
}

/** Rejects references to missing rows in SQLite. PostgreSQL has already checked each inserted row. */
async function rejectBrokenReferences(db: Db): Promise<void> {
  const { rows } = await sql<{ table: string }>`select "table" from pragma_foreign_key_check limit 1`.execute(db);
  if (rows[0]) throw damagedBackup(`a row of table ${rows[0].table} references a missing row`);
}

function unverifiedError(signature: Exclude<SignatureState, 'valid'>, key = ''): AppError {
  const reasons = {
    missing: 'The backup is not signed, so anyone who can write the file may have changed it.',
    changed: 'The backup was changed after it was signed.',
    unknown_key: `The backup is signed with the master key ${key}, which is not configured here. Set MASTER_KEY or MASTER_KEY_FILE, or put master.key into DATA_DIR.`,
  };
  return new AppError(
    'invalid',
    `${reasons[signature]} Nothing was restored. To restore it without verification, add --unverified.`,
  );
}

export function damagedBackup(reason: string): AppError {
  return new AppError(
    'invalid',
    `the backup is damaged: ${reason}; use another backup, and check it with "${programName} verify"`,
  );
}
