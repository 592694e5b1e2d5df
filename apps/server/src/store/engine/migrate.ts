import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { type Kysely, sql } from 'kysely';
import type { Db, Engine } from '../db.ts';
import type { Tables } from '../schema.ts';

type MigrateOptions = {
  /** Folder that contains the migrations. */
  folder: string;
  /** Version of this program, which is recorded with the migrations that it applies. */
  version: string;
  /** Epoch ms. */
  now: () => number;
};

type AppliedMigration = Tables['migrations'];

/** Arbitrary number, identical in every process, so that only one of them migrates at a time. */
const advisoryLock = 7_236_491;
/** "tool" in ASCII: application id of SQLite files that belong to Toolhost. */
const applicationId = 0x746f6f6c;

/**
 * Applies the pending files of the folder, in the order of their names, in one transaction. Migrations are
 * forward-only: an applied file is never changed.
 * @throws AppError conflict if the database belongs to a newer version, another application, or an unreleased build, or
 * if an applied file has changed
 */
export async function migrate(db: Kysely<Tables>, engine: Engine, options: MigrateOptions): Promise<void> {
  const files = readMigrations(options.folder);
  if (await isUpToDate(db, engine, files, options.version)) return;
  await db.transaction().execute((transaction) => migrateInTransaction(transaction, engine, files, options));
}

/** Applies pending migrations from these files within a transaction. @throws AppError conflict */
export async function migrateInTransaction(
  transaction: Db,
  engine: Engine,
  files: readonly MigrationFile[],
  options: Pick<MigrateOptions, 'version' | 'now'>,
): Promise<void> {
  if (engine === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
  const applied = await ensureMigrationsTable(transaction, engine, files);
  rejectUnknownMigrations(files, applied, options.version);
  const appliedNames = new Set(applied.map(({ name }) => name));
  for (const file of files) if (!appliedNames.has(file.name)) await applyMigration(transaction, file, options);
}

async function isUpToDate(db: Db, engine: Engine, files: readonly MigrationFile[], version: string): Promise<boolean> {
  if (!(await hasMigrationsTable(db, engine))) return false;
  const applied = await db.selectFrom('migrations').selectAll().execute();
  rejectUnknownMigrations(files, applied, version);
  const appliedNames = new Set(applied.map(({ name }) => name));
  return files.every(({ name }) => appliedNames.has(name));
}

/** Creates the table of migrations if it does not exist, and returns its rows. */
async function ensureMigrationsTable(
  db: Db,
  engine: Engine,
  files: readonly MigrationFile[],
): Promise<AppliedMigration[]> {
  if (!(await hasMigrationsTable(db, engine))) {
    await rejectForeignTables(db, engine, files);
    await sql`create table migrations (
      name text primary key,
      applied_at bigint not null,
      checksum text not null,
      version text not null,
      readable_by text
    )`.execute(db);
  }
  if (engine === 'sqlite') await sql`pragma application_id = ${sql.lit(applicationId)}`.execute(db);
  return db.selectFrom('migrations').selectAll().execute();
}

async function applyMigration(
  db: Db,
  file: MigrationFile,
  { version, now }: Pick<MigrateOptions, 'version' | 'now'>,
): Promise<void> {
  for (const statement of file.statements) await sql.raw(statement).execute(db);
  const { name, checksum, minReaderVersion = null } = file;
  await db
    .insertInto('migrations')
    .values({ name, applied_at: now(), checksum, version, readable_by: minReaderVersion })
    .execute();
}

/** Returns true if the table of migrations exists. @throws AppError conflict if it does not belong to Toolhost */
export async function hasMigrationsTable(db: Db, engine: Engine): Promise<boolean> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from pragma_table_info('migrations')`
      : sql<{ name: string }>`select attname as name from pg_attribute
          where attrelid = to_regclass('migrations') and attnum > 0 and not attisdropped`;
  const columns = new Set((await query.execute(db)).rows.map(({ name }) => name));
  if (columns.size === 0) return false;
  if (!['name', 'checksum', 'version', 'readable_by'].every((name) => columns.has(name)))
    throw foreignDatabaseError(['migrations']);
  return true;
}

/**
 * Rejects tables of other applications. A SQLite file must belong to Toolhost or be empty. A PostgreSQL database may
 * contain other tables, unless their names conflict.
 */
async function rejectForeignTables(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<void> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  const existingTables = (await query.execute(db)).rows.map(({ name }) => name);
  const ownTables = new Set(getTableNames(files));
  const conflictingTables = engine === 'sqlite' ? existingTables : existingTables.filter((name) => ownTables.has(name));
  if (conflictingTables.length > 0) throw foreignDatabaseError(conflictingTables);
  if (engine === 'postgres') return;
  const { rows } = await sql<{ application_id: number }>`pragma application_id`.execute(db);
  if (![0, applicationId].includes(rows[0]?.application_id ?? 0)) throw foreignDatabaseError([]);
}

const otherDatabaseAdvice = 'give toolhost an empty database, with another DATA_DIR or DATABASE_URL';

function foreignDatabaseError(tables: readonly string[]): AppError {
  const evidence = tables.length === 0 ? 'a different application id' : `tables named ${tables.slice(0, 5).join(', ')}`;
  return new AppError(
    'conflict',
    `the database belongs to another application: it has ${evidence}, which no toolhost release created; ${otherDatabaseAdvice}`,
  );
}

/**
 * Checks the applied migrations. This version must know each of them, unchanged, except those that declare that older
 * versions work without knowing them.
 */
function rejectUnknownMigrations(
  files: readonly MigrationFile[],
  applied: readonly AppliedMigration[],
  version: string,
): void {
  const filesByName = new Map(files.map((file) => [file.name, file]));
  if (applied.length > 0 && !applied.some(({ name }) => name === files[0]?.name)) throw unreleasedError();
  const unknownMigrations = applied.filter(
    ({ name, readable_by }) => !filesByName.has(name) && !(readable_by !== null && isAtLeast(version, readable_by)),
  );
  if (unknownMigrations.length > 0) throw newerDatabaseError(unknownMigrations, version);
  const changedMigrations = applied.filter(({ name, checksum }) => {
    const file = filesByName.get(name);
    return file !== undefined && checksum !== file.checksum;
  });
  if (changedMigrations.length > 0) throw changedFilesError(changedMigrations);
}

/** Every release includes the first migration. */
function unreleasedError(): AppError {
  return new AppError(
    'conflict',
    `the database was created by a toolhost build from before the first release, which no release can upgrade; ${otherDatabaseAdvice}`,
  );
}

function newerDatabaseError(unknownMigrations: readonly AppliedMigration[], version: string): AppError {
  const names = unknownMigrations.map(({ name }) => name).join(', ');
  const newestVersion = unknownMigrations.map((row) => row.version).reduce((a, b) => (isAtLeast(a, b) ? a : b));
  const [author, versionToStart] =
    newestVersion === version
      ? ['a later build', 'that one']
      : [`version ${newestVersion}`, `version ${newestVersion}`];
  return new AppError(
    'conflict',
    `the database was changed by ${author} of toolhost, but this version, ${version}, does not know its migrations ${names}; start ${versionToStart} or a newer one, or restore a backup from before the upgrade`,
  );
}

function changedFilesError(changedMigrations: readonly AppliedMigration[]): AppError {
  const list = changedMigrations.map(({ name, version }) => `${name} (by version ${version})`);
  return new AppError(
    'conflict',
    `these applied migrations differ from the files of this installation: ${list.join(', ')}; reinstall toolhost from its official release`,
  );
}

/** One file of `migrations/`. */
export type MigrationFile = {
  name: string;
  statements: string[];
  /** SHA-256 of the statements in hex. Comments are excluded, so that they can be improved. */
  checksum: string;
  /** Oldest version that works on a database with this migration without knowing it; undefined if none does. */
  minReaderVersion: string | undefined;
};

/** Reads the migrations of a folder, sorted by name, which is the order in which they are applied. */
export function readMigrations(folder: string): MigrationFile[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => parseMigration(name, readFileSync(join(folder, name), 'utf8')));
}

function parseMigration(name: string, text: string): MigrationFile {
  const allStatements = splitStatements(text);
  const normalized = allStatements.map((statement) => statement.replaceAll(/\s*\n\s*/g, '\n')).join(';\n');
  return {
    name,
    statements: allStatements,
    checksum: createHash('sha256').update(normalized).digest('hex'),
    minReaderVersion: /^-- readable-by: (\d+\.\d+\.\d+)\s*$/m.exec(text)?.[1],
  };
}

/** Returns the tables that migrations create, each after the tables that it references. */
export function getTableNames(files: readonly MigrationFile[]): string[] {
  const names = files
    .flatMap((file) => file.statements)
    .map((statement) => /^create table (\w+)/i.exec(statement)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(names)];
}

/** Splits a migration into statements, which end in `;` at the end of a line. Comments have separate lines. */
export function splitStatements(text: string): string[] {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(/^\s*--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/** Compares versions: returns true if `a` is at least `b`, by their three numbers (Semantic Versioning 2.0.0, 11). */
function isAtLeast(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).slice(0, 3).map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
