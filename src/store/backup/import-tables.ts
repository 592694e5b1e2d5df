import { type Kysely, sql } from 'kysely';
import { AppError } from '../../errors.ts';
import type { Db, Engine } from '../db.ts';
import { migrateWithin } from '../engine/migrate.ts';
import { type MigrationFile, tablesOf } from '../engine/migration-files.ts';
import type { Tables } from '../schema.ts';
import {
  type BackupHeader,
  type BackupPart,
  type BackupTable,
  damaged,
  type Row,
  type RowCounts,
} from './backup-lines.ts';

export type ImportOptions = {
  engine: Engine;
  files: readonly MigrationFile[];
  /** The version of this program. */
  version: string;
  now: () => number;
};

export type Imported = { header: BackupHeader; counts: RowCounts };

/** PostgreSQL takes 65,535 values in a statement, SQLite 32,766. */
const mostValues = 30_000;

/**
 * Fills an empty database with a backup, in one transaction: makes the tables as they were then, fills them, and applies
 * the migrations that are newer than the backup.
 * @throws AppError conflict when the database has our tables or the backup is of a newer version; invalid when the backup
 * is damaged
 */
export async function importTables(
  db: Kysely<Tables>,
  parts: AsyncIterable<BackupPart>,
  options: ImportOptions,
): Promise<Imported> {
  const { engine, files } = options;
  return db.transaction().execute(async (transaction) => {
    let header: BackupHeader | undefined;
    let counts: RowCounts | undefined;
    let table: BackupTable | undefined;
    const ours = new Set(tablesOf(files));
    for await (const part of parts) {
      if ('header' in part) {
        header = part.header;
        await refuseFilled(transaction, engine, files);
        await migrateWithin(transaction, engine, filesOf(header, options), options);
      } else if ('table' in part) {
        if (!ours.has(part.table)) throw damaged(`it has a table ${part.table}, which toolhost does not`);
        table = part;
      } else if ('rows' in part) await insertRows(transaction, table as BackupTable, part.rows);
      else counts = part.end;
    }
    if (!header || !counts) throw damaged('it is empty');
    await keepHistory(transaction, header);
    await migrateWithin(transaction, engine, files, options);
    if (engine === 'sqlite') await refuseBrokenReferences(transaction);
    return { header, counts };
  });
}

/** The files of the migrations that the backup has. @throws AppError conflict */
function filesOf({ migrations, version }: BackupHeader, { files, version: own }: ImportOptions): MigrationFile[] {
  const known = new Map(files.map((file) => [file.name, file]));
  const unknown = migrations.filter(({ name }) => !known.has(name)).map(({ name }) => name);
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
  const query =
    engine === 'sqlite'
      ? sql<{ name: string }>`select name from sqlite_schema where type = 'table'`
      : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
  const ours = new Set(['migrations', ...tablesOf(files)]);
  const found = (await query.execute(db)).rows.map(({ name }) => name).filter((name) => ours.has(name));
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
