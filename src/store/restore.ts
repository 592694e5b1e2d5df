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

type RestoreOptions = BackupOptions & {
  /** The master keys to verify the signature with. */
  keyring: Keyring | undefined;
  /** Accepts a backup whose signature is missing, wrong, or of a key that is not here. */
  unverified: boolean;
};

/** `key`: id of the master key that signed the backup. */
type ImportedBackup = {
  header: BackupHeader;
  counts: RowCounts;
  signature: SignatureState;
  key: string | undefined;
};

/**
 * Fills an empty database with the lines of a backup, in one transaction: makes the tables as they were then, fills them,
 * and applies the migrations that are newer than the backup.
 * @throws AppError conflict when the database has our tables or the backup is of a newer version; invalid when the backup
 * is damaged or cannot be verified
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
        if (!data || signedBy) throw damaged('something follows its end');
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
    if (!header || !isEnded) throw damaged(header ? 'its end is missing' : 'it is empty');
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

function unverified(signature: Exclude<SignatureState, 'valid'>, key = ''): AppError {
  const reasons = {
    missing: 'The backup is not signed, so anyone who can write the file may have changed it.',
    changed: 'The backup was changed after it was signed.',
    unknown_key: `The backup is signed with the master key ${key}, which is not here; set MASTER_KEY or MASTER_KEY_FILE, or put master.key into DATA_DIR.`,
  };
  return new AppError(
    'invalid',
    `${reasons[signature]} Nothing was restored. To restore it without verification, add --unverified.`,
  );
}

export function damaged(reason: string): AppError {
  return new AppError(
    'invalid',
    `this is not a sound backup: ${reason}; take another one, and check it with "${programName} verify"`,
  );
}
