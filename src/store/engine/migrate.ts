import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import { AppError } from '../../errors.ts';
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

type Applied = Tables['migrations'];

/** Arbitrary number, identical in every replica, so that only one of them migrates at a time. */
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
  if (await isCurrent(db, engine, files, options.version)) return;
  await db.transaction().execute((transaction) => migrateWithin(transaction, engine, files, options));
}

/** Applies pending migrations from these files within a transaction. @throws AppError conflict */
export async function migrateWithin(
  transaction: Db,
  engine: Engine,
  files: readonly MigrationFile[],
  options: Pick<MigrateOptions, 'version' | 'now'>,
): Promise<void> {
  if (engine === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
  const applied = await prepareTable(transaction, engine, files);
  refuseStrangers(files, applied, options.version);
  const known = new Set(applied.map(({ name }) => name));
  for (const file of files) if (!known.has(file.name)) await apply(transaction, file, options);
}

async function isCurrent(db: Db, engine: Engine, files: readonly MigrationFile[], version: string): Promise<boolean> {
  if (!(await hasTable(db, engine))) return false;
  const applied = await db.selectFrom('migrations').selectAll().execute();
  refuseStrangers(files, applied, version);
  const known = new Set(applied.map(({ name }) => name));
  return files.every(({ name }) => known.has(name));
}

/** Creates the table of migrations if it does not exist, and returns its rows. */
async function prepareTable(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<Applied[]> {
  if (!(await hasTable(db, engine))) {
    await refuseForeignTables(db, engine, files);
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

async function apply(
  db: Db,
  file: MigrationFile,
  { version, now }: Pick<MigrateOptions, 'version' | 'now'>,
): Promise<void> {
  for (const statement of file.statements) await sql.raw(statement).execute(db);
  const { name, checksum, readableBy = null } = file;
  await db
    .insertInto('migrations')
    .values({ name, applied_at: now(), checksum, version, readable_by: readableBy })
    .execute();
}

/** Returns true if the table of migrations exists. @throws AppError conflict if it does not belong to Toolhost */
async function hasTable(db: Db, engine: Engine): Promise<boolean> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from pragma_table_info('migrations')`
      : sql<{ name: string }>`select attname as name from pg_attribute
          where attrelid = to_regclass('migrations') and attnum > 0 and not attisdropped`;
  const columns = new Set((await query.execute(db)).rows.map(({ name }) => name));
  if (columns.size === 0) return false;
  if (!['name', 'checksum', 'version', 'readable_by'].every((name) => columns.has(name))) throw foreign(['migrations']);
  return true;
}

/**
 * Rejects tables of other applications. A SQLite file must belong to Toolhost or be empty. A PostgreSQL database may
 * contain other tables, unless their names conflict.
 */
async function refuseForeignTables(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<void> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  const present = (await query.execute(db)).rows.map(({ name }) => name);
  const ours = new Set(tablesOf(files));
  const clashing = engine === 'sqlite' ? present : present.filter((name) => ours.has(name));
  if (clashing.length > 0) throw foreign(clashing);
  if (engine === 'postgres') return;
  const { rows } = await sql<{ application_id: number }>`pragma application_id`.execute(db);
  if (![0, applicationId].includes(rows[0]?.application_id ?? 0)) throw foreign([]);
}

const otherDatabase = 'give toolhost an empty database, with another DATA_DIR or DATABASE_URL';

function foreign(tables: readonly string[]): AppError {
  const found = tables.length === 0 ? 'a different application id' : `tables named ${tables.slice(0, 5).join(', ')}`;
  return new AppError(
    'conflict',
    `the database belongs to another application: it has ${found}, which no toolhost release created; ${otherDatabase}`,
  );
}

/**
 * Checks the applied migrations. This version must know each of them, unchanged, except those that declare that older
 * versions work without knowing them.
 */
function refuseStrangers(files: readonly MigrationFile[], applied: readonly Applied[], version: string): void {
  const own = new Map(files.map((file) => [file.name, file]));
  if (applied.length > 0 && !applied.some(({ name }) => name === files[0]?.name)) throw unreleased();
  const unknown = applied.filter(
    ({ name, readable_by }) => !own.has(name) && !(readable_by !== null && isAtLeast(version, readable_by)),
  );
  if (unknown.length > 0) throw newerDatabase(unknown, version);
  const changed = applied.filter(({ name, checksum }) => {
    const file = own.get(name);
    return file !== undefined && checksum !== file.checksum;
  });
  if (changed.length > 0) throw changedFiles(changed);
}

/** Every release includes the first migration. */
function unreleased(): AppError {
  return new AppError(
    'conflict',
    `the database was created by a toolhost build from before the first release, which no release can upgrade; ${otherDatabase}`,
  );
}

function newerDatabase(unknown: readonly Applied[], version: string): AppError {
  const names = unknown.map(({ name }) => name).join(', ');
  const newest = unknown.map((row) => row.version).reduce((a, b) => (isAtLeast(a, b) ? a : b));
  const [by, start] = newest === version ? ['a later build', 'that one'] : [`version ${newest}`, `version ${newest}`];
  return new AppError(
    'conflict',
    `the database was changed by ${by} of toolhost, but this version, ${version}, does not know its migrations ${names}; start ${start} or a newer one, or restore a backup from before the upgrade`,
  );
}

function changedFiles(changed: readonly Applied[]): AppError {
  const list = changed.map(({ name, version }) => `${name} (by version ${version})`);
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
  readableBy: string | undefined;
};

/** Reads the migrations of a folder, sorted by name, which is the order in which they are applied. */
export function readMigrations(folder: string): MigrationFile[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => migrationOf(name, readFileSync(join(folder, name), 'utf8')));
}

function migrationOf(name: string, text: string): MigrationFile {
  const all = statements(text);
  const plain = all.map((statement) => statement.replaceAll(/\s*\n\s*/g, '\n')).join(';\n');
  return {
    name,
    statements: all,
    checksum: createHash('sha256').update(plain).digest('hex'),
    readableBy: /^-- readable-by: (\d+\.\d+\.\d+)\s*$/m.exec(text)?.[1],
  };
}

/** Returns the tables that migrations create, each after the tables that it references. */
export function tablesOf(files: readonly MigrationFile[]): string[] {
  const names = files
    .flatMap((file) => file.statements)
    .map((statement) => /^create table (\w+)/i.exec(statement)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(names)];
}

/** Splits a migration into statements, which end in `;` at the end of a line. Comments have separate lines. */
export function statements(text: string): string[] {
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
