import { type Kysely, sql } from 'kysely';
import { AppError } from '../../errors.ts';
import type { Db, Engine } from '../db.ts';
import type { Tables } from '../schema.ts';
import { isAtLeast, type MigrationFile, readMigrations, tablesOf } from './migration-files.ts';

export type MigrateOptions = {
  /** The folder of the migrations. */
  folder: string;
  /** The version of this program, which is recorded with what it applies. */
  version: string;
  /** Epoch ms. */
  now: () => number;
};

type Applied = Tables['migrations'];

/** Any number; the same in every replica, so that only one of them migrates at a time. */
const advisoryLock = 7_236_491;
/** "tool" in ASCII: the application id that marks our SQLite files. */
const applicationId = 0x746f6f6c;
/** Columns that were added to the table of migrations later. */
const laterColumns = ['checksum', 'version', 'readable_by'] as const;

/**
 * Applies the pending files of the folder, in the order of their names, all in one transaction. Forward only: an applied
 * file is never changed.
 * @throws AppError conflict when the database belongs to a newer version or another application, or when a file that
 * was applied has changed
 */
export async function migrate(db: Kysely<Tables>, engine: Engine, options: MigrateOptions): Promise<void> {
  const files = readMigrations(options.folder);
  if (await isCurrent(db, engine, files, options.version)) return;
  await db.transaction().execute((transaction) => migrateWithin(transaction, engine, files, options));
}

/** The same for these files, as a part of a transaction. @throws AppError conflict */
export async function migrateWithin(
  transaction: Db,
  engine: Engine,
  files: readonly MigrationFile[],
  options: Pick<MigrateOptions, 'version' | 'now'>,
): Promise<void> {
  if (engine === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
  const applied = await prepareTable(transaction, engine, files);
  refuseStrangers(files, applied, options.version);
  const known = new Map(applied.map((row) => [row.name, row]));
  for (const file of files) {
    const row = known.get(file.name);
    if (!row) await apply(transaction, file, options);
    else if (row.checksum === null) await fillChecksum(transaction, file);
  }
}

async function isCurrent(db: Db, engine: Engine, files: readonly MigrationFile[], version: string): Promise<boolean> {
  const columns = await columnsOf(db, engine);
  if (!laterColumns.every((column) => columns.has(column))) return false;
  const applied = await db.selectFrom('migrations').selectAll().execute();
  refuseStrangers(files, applied, version);
  const checked = new Set(applied.filter((row) => row.checksum !== null).map((row) => row.name));
  return files.every((file) => checked.has(file.name));
}

/** Makes or updates the table of migrations, and returns its rows. */
async function prepareTable(db: Db, engine: Engine, files: readonly MigrationFile[]): Promise<Applied[]> {
  const columns = await columnsOf(db, engine);
  if (columns.size === 0) await refuseForeignTables(db, engine, files);
  else if (!columns.has('name') || !columns.has('applied_at')) throw foreign(['migrations']);
  await sql`create table if not exists migrations (name text primary key, applied_at bigint not null)`.execute(db);
  for (const column of laterColumns) {
    if (!columns.has(column)) await sql`alter table migrations add column ${sql.id(column)} text`.execute(db);
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

/** Adds the checksum of a file that was applied before checksums were recorded. */
async function fillChecksum(db: Db, { name, checksum }: MigrationFile): Promise<void> {
  await db.updateTable('migrations').set({ checksum }).where('name', '=', name).where('checksum', 'is', null).execute();
}

/** The columns of the table of migrations; none when there is no such table. */
async function columnsOf(db: Db, engine: Engine): Promise<Set<string>> {
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from pragma_table_info('migrations')`
      : sql<{ name: string }>`select attname as name from pg_attribute
          where attrelid = to_regclass('migrations') and attnum > 0 and not attisdropped`;
  return new Set((await query.execute(db)).rows.map(({ name }) => name));
}

/** A SQLite file is ours or empty. A PostgreSQL database may hold other tables, as long as the names do not clash. */
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

function foreign(tables: readonly string[]): AppError {
  const found = tables.length === 0 ? 'its own mark' : `tables named ${tables.slice(0, 5).join(', ')}`;
  return new AppError(
    'conflict',
    `the database belongs to another application: it has ${found}, which toolhost did not make; give toolhost an empty database, with another DATA_DIR or DATABASE_URL`,
  );
}

/**
 * Checks the applied migrations: this version must know each of them, unchanged, except those that declare that older
 * versions work without knowing them.
 */
function refuseStrangers(files: readonly MigrationFile[], applied: readonly Applied[], version: string): void {
  const own = new Map(files.map((file) => [file.name, file]));
  const unknown = applied.filter(
    ({ name, readable_by }) => !own.has(name) && !(readable_by !== null && isAtLeast(version, readable_by)),
  );
  if (unknown.length > 0) throw newerDatabase(unknown, version);
  const changed = applied.filter(({ name, checksum }) => {
    const file = own.get(name);
    return file !== undefined && checksum !== null && checksum !== file.checksum;
  });
  if (changed.length > 0) throw changedFiles(changed);
}

function newerDatabase(unknown: readonly Applied[], version: string): AppError {
  const names = unknown.map(({ name }) => name).join(', ');
  const writers = [...new Set(unknown.flatMap((row) => row.version ?? []))];
  const newest = writers.reduce<string | undefined>((a, b) => (a !== undefined && isAtLeast(a, b) ? a : b), undefined);
  const by = newest === undefined ? 'a newer version' : newest === version ? 'a later build' : `version ${newest}`;
  return new AppError(
    'conflict',
    `the database was changed by ${by} of toolhost, and this is ${version}, which does not know its migrations ${names}; start ${newest === undefined || newest === version ? 'that one' : `version ${newest}`} or a newer one, or restore a backup from before the upgrade`,
  );
}

function changedFiles(changed: readonly Applied[]): AppError {
  const list = changed.map(({ name, version }) => (version === null ? name : `${name} (by version ${version})`));
  return new AppError(
    'conflict',
    `these migrations were applied to the database with another text than this installation has: ${list.join(', ')}; a migration that was applied is never changed, so reinstall toolhost from its release`,
  );
}
