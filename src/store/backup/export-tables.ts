import { AppError } from '../../errors.ts';
import type { Engine } from '../db.ts';
import { type MigrationFile, tablesOf } from '../engine/migration-files.ts';
import { type BackupHeader, BackupLines, migrationRow, type RowCounts } from './backup-lines.ts';
import type { TableSource } from './table-source.ts';

/**
 * Tables that belong to the processes of one database: what they tell each other, who does which work, and the rests and files of answers, which live for minutes. A restored database begins without.
 */
export const tablesOfProcesses: readonly string[] = [
  'changes',
  'processes',
  'leases',
  'answer_pieces',
  'files',
  'file_chunks',
];
/** Tables of what was called, which are most of a database. */
export const tablesOfRecords: readonly string[] = ['calls', 'call_counts', 'captures'];

export type ExportOptions = {
  engine: Engine;
  files: readonly MigrationFile[];
  /** The version of this program. */
  version: string;
  /** Epoch ms. */
  at: number;
  /** Without the records of calls. */
  leavesOutRecords: boolean;
};

/**
 * The text of a backup. The returned value counts its rows.
 * @throws AppError notFound for a database without our tables, conflict when another version has changed it
 */
export async function* exportTables(source: TableSource, options: ExportOptions): AsyncGenerator<string, RowCounts> {
  const { engine, files, version, at, leavesOutRecords } = options;
  const lines = new BackupLines();
  const migrations = await appliedMigrations(source);
  refuseUnknown(migrations, files, version);
  yield lines.header({ made_at: new Date(at).toISOString(), version, engine, migrations });
  const leftOut = new Set([...tablesOfProcesses, ...(leavesOutRecords ? tablesOfRecords : [])]);
  for (const table of tablesOf(files).filter((name) => !leftOut.has(name))) {
    const columns = await source.columns(table);
    if (columns.length === 0) continue;
    yield lines.table({ table, columns });
    for await (const rows of source.rows(table, columns)) yield lines.rows(rows);
  }
  const { text, counts } = lines.end();
  yield text;
  return counts;
}

async function appliedMigrations(source: TableSource): Promise<BackupHeader['migrations']> {
  const columns = migrationRow.keyof().options;
  const present = new Set(await source.columns('migrations'));
  if (!columns.every((column) => present.has(column))) {
    throw new AppError(
      'notFound',
      'the database has no tables of toolhost; set DATABASE_URL or DATA_DIR to that of the service',
    );
  }
  const migrations: BackupHeader['migrations'] = [];
  for await (const rows of source.rows('migrations', columns)) {
    for (const row of rows) {
      migrations.push(migrationRow.parse(Object.fromEntries(columns.map((column, index) => [column, row[index]]))));
    }
  }
  return migrations.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** This version would not know which tables newer migrations have made. */
function refuseUnknown(migrations: BackupHeader['migrations'], files: readonly MigrationFile[], version: string): void {
  const own = new Set(files.map(({ name }) => name));
  const unknown = migrations.filter(({ name }) => !own.has(name)).map(({ name }) => name);
  if (unknown.length === 0) return;
  throw new AppError(
    'conflict',
    `this version of toolhost, ${version}, does not know the migrations ${unknown.join(', ')} of the database; make the backup with the version that made them`,
  );
}
