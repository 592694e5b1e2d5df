import { createHash, type Hash } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '@toolhost/errors/errors';
import { scanJson } from '@toolhost/json/json-scan';
import { type Kysely, sql } from 'kysely';
import { z } from 'zod';
import { programName } from '../version.ts';
import {
  type BackupHeader,
  type BackupOptions,
  type BackupTable,
  type DatabaseLocation,
  endLine,
  findUnknownMigrations,
  formatVersion,
  headerLine,
  type RowCounts,
  rowLine,
  type SignatureLine,
  signatureLine,
  signaturePurpose,
  tableLine,
  withConnection,
} from './backup.ts';
import type { Db, Engine } from './db.ts';
import { getDatabaseErrorKind, toOpenError } from './engine/database-errors.ts';
import { removeMark } from './engine/log-mark.ts';
import { getTableNames, hasMigrationsTable, migrateInTransaction } from './engine/migrate.ts';
import { createPrivateDataFolder, syncToDisk } from './engine/sqlite-file.ts';
import { lockSqlite } from './engine/sqlite-guard.ts';
import type { Tables } from './schema.ts';
import type { Keyring } from './sealing/sealing.ts';

/**
 * Opens an empty database for `fill`, which should use `importTables`. A SQLite file has a temporary name until it is
 * complete, so that an interrupted restore leaves no partial database.
 * @throws AppError conflict if a SQLite database already exists; unavailable; any error from `fill`
 */
export async function fillEmptyDatabase<Result>(
  { postgres, file }: DatabaseLocation,
  fill: (db: Kysely<Tables>, engine: Engine) => Promise<Result>,
): Promise<Result> {
  if (postgres) return withConnection({ postgres, file }, (db) => fill(db, 'postgres'));
  const lock = lockEmptyLocation(file);
  const temporaryFile = `${file}.restoring`;
  const clear = () => {
    for (const path of getSqliteFiles(temporaryFile)) rmSync(path, { force: true });
  };
  try {
    clear();
    const result = await withConnection({ postgres, file: temporaryFile }, async (db) => {
      const filled = await fill(db, 'sqlite');
      await sql`pragma wal_checkpoint(truncate)`.execute(db);
      return filled;
    });
    syncToDisk(temporaryFile);
    removeMark(file);
    renameSync(temporaryFile, file);
    syncToDisk(dirname(file));
    return result;
  } finally {
    clear();
    lock.release();
  }
}

const getSqliteFiles = (path: string) => [path, `${path}-wal`, `${path}-shm`];

/**
 * Prevents a service from creating its own database in the meantime, and another restore of the same database.
 * @throws AppError conflict if a database already exists; unavailable
 */
function lockEmptyLocation(file: string): { release(): void } {
  try {
    createPrivateDataFolder(dirname(file));
    const existingFile = getSqliteFiles(file).find((path) => existsSync(path));
    if (existingFile === undefined) return lockSqlite(file);
    throw createConflict(
      `${existingFile} already exists; to overwrite nothing, restore into an empty folder (DATA_DIR), or stop the service and move its database away`,
    );
  } catch (error) {
    throw toOpenError(error, file);
  }
}

/** `unknown_key`: the master key that signed the backup is not configured here, so the backup cannot be verified. */
export type SignatureState = 'valid' | 'changed' | 'unknown_key' | 'missing';

/** Contents of a backup that was read completely. */
export type ImportedBackup = Pick<BackupHeader, 'made_at' | 'version' | 'engine'> & {
  rows: RowCounts;
  signature: SignatureState;
  /** Id of the master key that signed it. */
  signed_with?: string;
};

/**
 * Restores a backup into an empty database in one transaction: creates the tables as they were at the time of the
 * backup, inserts the rows, and applies the migrations that are newer than the backup. `unverified` accepts a backup
 * whose signature is missing, wrong, or from a key that is not configured here.
 * @throws AppError conflict if the database has Toolhost tables or the backup is from a newer version; invalid if the
 * backup is damaged or cannot be verified
 */
export async function importTables(
  db: Kysely<Tables>,
  lines: AsyncIterable<Buffer>,
  options: BackupOptions & { unverified: boolean },
): Promise<ImportedBackup> {
  const { engine, files, keyring, unverified } = options;
  return db.transaction().execute(async (transaction) => {
    const hash = createHash('sha256');
    const ownTables = new Set(getTableNames(files));
    const counts: RowCounts = {};
    let header: BackupHeader | undefined;
    let table: BackupTable | undefined;
    let hasEnded = false;
    let trailer: SignatureLine | undefined;
    for await (const { rows, value } of readParts(lines, hash)) {
      if (!header) {
        header = parseHeader(value);
        await createTables(transaction, header, options);
      } else if (hasEnded) {
        const { data } = signatureLine.safeParse(value);
        if (!data || trailer) throw createDamagedBackupError('data follows its end line');
        trailer = data;
      } else if (rows) {
        if (!table) throw createDamagedBackupError('a row precedes the first table');
        await insertRows(transaction, table, rows);
        counts[table.table] = (counts[table.table] ?? 0) + rows.length;
      } else {
        const end = endLine.safeParse(value).data?.end;
        hasEnded = end !== undefined;
        if (end && !isDeepStrictEqual(end, counts)) throw createDamagedBackupError('rows are missing');
        if (!end) table = parseTable(value, ownTables, counts);
      }
    }
    if (!header || !hasEnded) throw createDamagedBackupError(header ? 'its end line is missing' : 'it is empty');
    const signature = verifyLines(hash, trailer, keyring);
    if (signature !== 'valid' && !unverified) throw createUnverifiedError(signature, trailer?.key);
    // Restores when each migration was applied, and by which version.
    for (const { name, applied_at, version } of header.migrations)
      await transaction.updateTable('migrations').set({ applied_at, version }).where('name', '=', name).execute();
    await migrateInTransaction(transaction, engine, files, options);
    const { made_at, version, engine: sourceEngine } = header;
    const signedWith = trailer && { signed_with: trailer.key };
    return { made_at, version, engine: sourceEngine, rows: counts, signature, ...signedWith };
  });
}

/**
 * Number of rows, and of their bytes, that are inserted together. Tables have at most 20 columns, and SQLite allows
 * 32,766 values in a statement.
 */
const maxBatch = { rows: 500, bytes: 1_000_000 };

/** Value of a line, or consecutive rows of one table. */
type Part = { rows?: unknown[][]; value?: unknown };

/** Parses lines and groups rows. `hash` receives all lines except the signature. */
async function* readParts(lines: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Part> {
  let rows: unknown[][] = [];
  let bytes = 0;
  for await (const line of lines) {
    const value = parseLine(line);
    const isRow = Array.isArray(value);
    if (isRow || !signatureLine.safeParse(value).success) hash.update(line).update('\n');
    if (rows.length > 0 && (!isRow || rows.length >= maxBatch.rows || bytes >= maxBatch.bytes)) {
      yield { rows };
      rows = [];
      bytes = 0;
    }
    if (isRow) {
      rows.push(value);
      bytes += line.length;
    } else yield { value };
  }
  if (rows.length > 0) yield { rows };
}

/** Maximum length of a line that is parsed without counting its values, in bytes. */
const maxUncheckedLineLength = 64 * 1024;
/** Limits for a longer line. The deepest value is a list of rows in a header. */
const maxLineShape = { depth: 4, elements: 10_000 };

function parseLine(line: Buffer): unknown {
  try {
    if (line.length > maxUncheckedLineLength && isTooComplex(line)) throw new SyntaxError();
    return JSON.parse(line.toString()) as unknown;
  } catch {
    throw createDamagedBackupError('a line is not the JSON of a row, a table, or a header');
  }
}

/** Returns true if the values of a line would take far more memory and time than its text. */
function isTooComplex(line: Buffer): boolean {
  const scan = scanJson(line, maxLineShape.depth);
  return !scan || scan.depth > maxLineShape.depth || scan.elements > maxLineShape.elements;
}

function parseHeader(value: unknown): BackupHeader {
  const backupFormat = z.object({ toolhost_backup: z.number() }).safeParse(value).data?.toolhost_backup;
  if (backupFormat === undefined) throw createDamagedBackupError('it does not start with a backup header');
  if (backupFormat > formatVersion) {
    throw createConflict(
      `the backup has format ${backupFormat}, and this version reads up to ${formatVersion}; restore it with the toolhost version that created it or a newer one`,
    );
  }
  const header = headerLine.safeParse(value);
  if (!header.success) throw createDamagedBackupError('its header is incomplete');
  return header.data;
}

/** Parses the start of the next table. From then on, its rows are counted in `counts`. */
function parseTable(value: unknown, ownTables: ReadonlySet<string>, counts: RowCounts): BackupTable {
  const { data } = tableLine.safeParse(value);
  if (!data) throw createDamagedBackupError('a line is neither a table nor a row');
  const { table } = data;
  if (!ownTables.has(table)) throw createDamagedBackupError(`it contains the unknown table ${table}`);
  if (Object.hasOwn(counts, table)) throw createDamagedBackupError(`table ${table} occurs twice`);
  counts[table] = 0;
  return data;
}

/** Creates the tables of a backup. @throws AppError conflict if one exists or this version does not know them */
async function createTables(db: Db, { migrations, version }: BackupHeader, options: BackupOptions): Promise<void> {
  const { engine, files } = options;
  if (await hasMigrationsTable(db, engine))
    throw createConflict(
      'the database is not empty: it has toolhost tables; restore into an empty database to overwrite nothing',
    );
  const unknownNames = findUnknownMigrations(migrations, files);
  if (unknownNames.length > 0)
    throw createConflict(
      `the backup was created by toolhost ${version}, but this version, ${options.version}, does not know its migrations ${unknownNames.join(', ')}; restore it with version ${version} or a newer one`,
    );
  const checksums = new Map(migrations.map(({ name, checksum }) => [name, checksum]));
  const appliedFiles = files.filter(({ name }) => checksums.has(name));
  const changedNames = appliedFiles
    .filter((file) => checksums.get(file.name) !== file.checksum)
    .map(({ name }) => name);
  if (changedNames.length > 0)
    throw createConflict(
      `the migrations ${changedNames.join(', ')} of the backup differ from those of this installation; restore it with the official release of toolhost ${version}`,
    );
  await migrateInTransaction(db, engine, appliedFiles, options);
}

async function insertRows(db: Db, { table, columns }: BackupTable, values: readonly unknown[][]): Promise<void> {
  const { data: rows } = z.array(rowLine.length(columns.length)).safeParse(values);
  if (!rows) throw createDamagedBackupError(`a row of table ${table} does not match its columns`);
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const tuples = sql.join(rows.map((row) => sql`(${sql.join(row)})`));
  try {
    await sql`insert into ${sql.table(table)} (${names}) values ${tuples}`.execute(db);
  } catch (error) {
    // SQLSTATE class 22 is a value of the wrong type.
    if (getDatabaseErrorKind(error) !== 'constraint' && !/^22/.test(String((error as { code?: unknown }).code)))
      throw error;
    throw createDamagedBackupError(`rows of table ${table} violate a constraint or a column type`);
  }
}

/** @param hash SHA-256 of all lines before the signature */
function verifyLines(hash: Hash, trailer: SignatureLine | undefined, keyring: Keyring | undefined): SignatureState {
  if (!trailer) return 'missing';
  if (!keyring?.keyIds.includes(trailer.key)) return 'unknown_key';
  return keyring.verifyMac(trailer.mac, hash.digest('base64url'), signaturePurpose) ? 'valid' : 'changed';
}

function createUnverifiedError(signature: Exclude<SignatureState, 'valid'>, key = ''): AppError {
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

const createConflict = (message: string) => new AppError('conflict', message);

export function createDamagedBackupError(reason: string): AppError {
  return new AppError(
    'invalid',
    `the backup is damaged: ${reason}; use another backup, and check it with "${programName} verify"`,
  );
}
