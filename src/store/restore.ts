import { createHash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Kysely, sql } from 'kysely';
import { z } from 'zod';
import { scanJson } from '../domain/json/json-scan.ts';
import { AppError } from '../errors.ts';
import { programName } from '../version.ts';
import {
  type BackupHeader,
  type BackupOptions,
  type BackupTable,
  endLine,
  formatVersion,
  headerLine,
  ignore,
  mostInLine,
  openPostgres,
  type Row,
  type RowCounts,
  rowLine,
  shortLine,
  tableLine,
  tablesIn,
  unknownOf,
} from './backup.ts';
import { type SignatureLine, type SignatureState, signatureLine, verifyLines } from './backup-signature.ts';
import type { Db, Engine } from './db.ts';
import { openingFailure } from './engine/faults.ts';
import { removeMark } from './engine/log-mark.ts';
import { type MigrationFile, migrateWithin, tablesOf } from './engine/migrate.ts';
import type { PostgresLocation } from './engine/postgres.ts';
import { createWriteLock, sqliteDialect } from './engine/sqlite.ts';
import { findOrMakeFile, makeDataFolderPrivate, syncToDisk } from './engine/sqlite-file.ts';
import { lockSqlite } from './engine/sqlite-guard.ts';
import { watchedDialect } from './engine/watched-dialect.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/** Empty database into which a backup is restored. */
export type EmptyDatabase = {
  engine: Engine;
  db: Kysely<Tables>;
  /** Commits the restored data as the database. Without this call, `close` leaves nothing behind. */
  keep(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens a SQLite file under a temporary name. It receives its final name when it is complete, so that an interrupted
 * restore leaves no partial database.
 * @throws AppError conflict if a database already exists
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
        `${present} already exists; to overwrite nothing, restore into an empty folder (DATA_DIR), or stop the service and move its database away`,
      );
    }
    // Prevents a service from creating its own database in the meantime, and another restore of the same database.
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
        removeMark(file);
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

/**
 * Opens a PostgreSQL database. `importTables` rejects a database that has Toolhost tables, and restores into it in one
 * transaction.
 */
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

/** Maximum number of values in a statement. PostgreSQL allows 65,535, SQLite 32,766. */
const mostValues = 30_000;
/** Number of rows, and of their bytes, that are collected before an insert. */
const mostTogether = { rows: 500, bytes: 1_000_000 };

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
    const ours = new Set(tablesOf(files));
    const hash = createHash('sha256');
    let signedBy: SignatureLine | undefined;
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
      if (isEnded) {
        const { data } = signatureLine.safeParse(value);
        if (!data || signedBy) throw damaged('data follows its end line');
        signedBy = data;
        continue;
      }
      hash.update(line).update('\n');
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
    if (!header || !isEnded) throw damaged(header ? 'its end line is missing' : 'it is empty');
    const signature = verifyLines(hash, signedBy, options.keyring);
    if (signature !== 'valid' && !options.unverified) throw unverified(signature, signedBy?.key);
    await keepHistory(transaction, header);
    await migrateWithin(transaction, engine, files, options);
    if (engine === 'sqlite') await refuseBrokenReferences(transaction);
    return { header, counts, signature, key: signedBy?.key };
  });
}

function parseLine(line: Buffer): unknown {
  try {
    if (line.length > shortLine && hasMany(line)) throw new SyntaxError();
    return JSON.parse(line.toString()) as unknown;
  } catch {
    throw damaged('a line is not the JSON of a row, a table, or a header');
  }
}

/** Returns true if the values of a line would take far more memory and time than its text. */
function hasMany(line: Buffer): boolean {
  const scan = scanJson(line, mostInLine.depth);
  return !scan || scan.depth > mostInLine.depth || scan.elements > mostInLine.elements;
}

function headerOf(value: unknown): BackupHeader {
  const form = z.object({ toolhost_backup: z.number() }).safeParse(value).data?.toolhost_backup;
  if (form === undefined) throw damaged('it does not start with a backup header');
  if (form > formatVersion) {
    throw new AppError(
      'conflict',
      `the backup has format ${form}, and this version reads up to ${formatVersion}; restore it with the toolhost version that created it or a newer one`,
    );
  }
  const header = headerLine.safeParse(value);
  if (!header.success) throw damaged('its header is incomplete');
  return header.data;
}

/** Parses the start of the next table. From then on, its rows are counted in `counts`. */
function tableOf(value: unknown, ours: ReadonlySet<string>, counts: RowCounts): BackupTable {
  const { data } = tableLine.safeParse(value);
  if (!data) throw damaged('a line is neither a table nor a row');
  const { table } = data;
  if (!ours.has(table)) throw damaged(`it contains the unknown table ${table}`);
  if (Object.hasOwn(counts, table)) throw damaged(`table ${table} occurs twice`);
  counts[table] = 0;
  return data;
}

function rowOf(value: readonly unknown[], table: BackupTable | undefined): Row {
  if (!table) throw damaged('a row precedes the first table');
  const { data } = rowLine.safeParse(value);
  if (data?.length !== table.columns.length) throw damaged(`a row of table ${table.table} does not match its columns`);
  return data;
}

/** Returns the files of the migrations in the backup. @throws AppError conflict */
function filesOf({ migrations, version }: BackupHeader, { files, version: own }: BackupOptions): MigrationFile[] {
  const known = new Map(files.map((file) => [file.name, file]));
  const unknown = unknownOf(migrations, files);
  if (unknown.length > 0) {
    throw new AppError(
      'conflict',
      `the backup was created by toolhost ${version}, but this version, ${own}, does not know its migrations ${unknown.join(', ')}; restore it with version ${version} or a newer one`,
    );
  }
  const changed = migrations.filter(({ name, checksum }) => checksum !== known.get(name)?.checksum);
  if (changed.length > 0) {
    throw new AppError(
      'conflict',
      `the migrations ${changed.map(({ name }) => name).join(', ')} of the backup differ from those of this installation; restore it with the official release of toolhost ${version}`,
    );
  }
  const applied = new Set(migrations.map(({ name }) => name));
  return files.filter(({ name }) => applied.has(name));
}

/** @throws AppError conflict if a Toolhost table exists */
async function refuseFilled(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<void> {
  const ours = new Set(['migrations', ...tablesOf(files)]);
  const found = (await tablesIn(db, engine)).filter((name) => ours.has(name));
  if (found.length === 0) return;
  throw new AppError(
    'conflict',
    `the database is not empty: it has the tables ${found.slice(0, 5).join(', ')}; restore into an empty database to overwrite nothing`,
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
      if (isContradiction(error)) throw damaged(`rows of table ${table} violate a constraint or a column type`);
      throw error;
    }
  }
}

const sqliteConstraint = 19;

/** Returns true if a row cannot be stored because of its values: SQLSTATE class 23 (constraint) or 22 (data type). */
function isContradiction(error: unknown): boolean {
  const { code, errcode = 0 } = error as { code?: unknown; errcode?: number };
  return /^2[23]\w{3}$/.test(String(code)) || (errcode & 0xff) === sqliteConstraint;
}

/** Restores when each migration was applied, and by which version. */
async function keepHistory(db: Db, { migrations }: BackupHeader): Promise<void> {
  for (const { name, applied_at, version } of migrations) {
    await db.updateTable('migrations').set({ applied_at, version }).where('name', '=', name).execute();
  }
}

/** Rejects references to missing rows in SQLite. PostgreSQL has already checked each inserted row. */
async function refuseBrokenReferences(db: Db): Promise<void> {
  const { rows } = await sql<{ table: string }>`select "table" from pragma_foreign_key_check limit 1`.execute(db);
  if (rows[0]) throw damaged(`a row of table ${rows[0].table} references a missing row`);
}

function unverified(signature: Exclude<SignatureState, 'valid'>, key = ''): AppError {
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

export function damaged(reason: string): AppError {
  return new AppError(
    'invalid',
    `the backup is damaged: ${reason}; use another backup, and check it with "${programName} verify"`,
  );
}
