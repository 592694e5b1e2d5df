import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, readConfig, type Settings } from '../../config.ts';
import { findLocalMasterKeys } from '../../local/master-key.ts';
import type { BackupHeader, RowCounts } from '../../store/backup/backup-lines.ts';
import { exportTables } from '../../store/backup/export-tables.ts';
import { importTables } from '../../store/backup/import-tables.ts';
import { openPostgresSource, openSqliteSource } from '../../store/backup/table-source.ts';
import { type EmptyDatabase, openEmptyPostgres, openEmptySqlite } from '../../store/backup/table-target.ts';
import { readMigrations, tablesOf } from '../../store/engine/migration-files.ts';
import { version } from '../../version.ts';
import { type SealedReport, sealedReport } from '../keys/sealed-report.ts';
import { databaseFile, migrationsFolder } from '../open-store.ts';
import { refuseMissingDatabase } from '../operator.ts';
import { processClocks } from '../surroundings.ts';
import { readBackupFile, writeBackupFile } from './backup-file.ts';

/** A backup that was made. */
export type MadeBackup = { file: string; engine: Config['engine']; rows: RowCounts };

/** A backup that was read to its end: what it holds, and what of it the master keys of this environment open. */
export type ReadBackup = SealedReport & {
  file: string;
  made_at: string;
  /** The version of toolhost that made it. */
  version: string;
  engine: BackupHeader['engine'];
  rows: RowCounts;
};

/**
 * Writes the database of an environment to a file, also while the service runs.
 * @throws ConfigError, AppError notFound without a database, conflict when the file exists
 */
export async function makeBackup(
  env: NodeJS.ProcessEnv,
  file: string,
  { leavesOutRecords }: { leavesOutRecords: boolean },
): Promise<MadeBackup> {
  const { config, secrets } = settingsOf(env);
  refuseMissingDatabase(config);
  const files = readMigrations(migrationsFolder);
  const source = secrets.postgres
    ? await openPostgresSource(secrets.postgres, ['migrations', ...tablesOf(files)])
    : openSqliteSource(databaseFile(config));
  let rows: RowCounts = {};
  try {
    const options = { engine: config.engine, files, version, at: processClocks.now(), leavesOutRecords };
    const counted = async function* () {
      rows = yield* exportTables(source, options);
    };
    await writeBackupFile(file, counted());
  } finally {
    await source.close();
  }
  return { file, engine: config.engine, rows };
}

/**
 * Fills the empty database of an environment with a backup.
 * @throws ConfigError; AppError conflict when the database is not empty or the backup is of a newer version, invalid when
 * the backup is damaged
 */
export async function restoreBackup(env: NodeJS.ProcessEnv, file: string): Promise<ReadBackup> {
  const { config, secrets } = settingsOf(env);
  const masters = secrets.masterKeys ?? findLocalMasterKeys(config.dataDir) ?? [];
  const target = secrets.postgres
    ? await openEmptyPostgres(secrets.postgres)
    : await openEmptySqlite(databaseFile(config));
  return fill(target, file, masters);
}

/**
 * Restores a backup into a database of its own, which is deleted again, and tries every sealed value with the master keys
 * of the environment.
 * @throws ConfigError, AppError as `restoreBackup`
 */
export async function verifyBackup(env: NodeJS.ProcessEnv, file: string): Promise<ReadBackup> {
  const { DATA_DIR, MASTER_KEY, MASTER_KEY_FILE } = env;
  const { config, secrets } = settingsOf({ DATA_DIR, MASTER_KEY, MASTER_KEY_FILE });
  const masters = secrets.masterKeys ?? findLocalMasterKeys(config.dataDir) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-verify-'));
  try {
    return await fill(await openEmptySqlite(join(folder, 'toolhost.sqlite')), file, masters);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(target: EmptyDatabase, file: string, masters: readonly Buffer[]): Promise<ReadBackup> {
  try {
    const options = { engine: target.engine, files: readMigrations(migrationsFolder), version, now: processClocks.now };
    const { header, counts } = await importTables(target.db, readBackupFile(file), options);
    const report = await sealedReport(target.db, masters);
    await target.keep();
    const { made_at, version: madeBy, engine } = header;
    return { file, made_at, version: madeBy, engine, rows: counts, ...report };
  } finally {
    await target.close();
  }
}

function settingsOf({
  DATA_DIR,
  DATABASE_URL,
  DATABASE_CA_FILE,
  MASTER_KEY,
  MASTER_KEY_FILE,
}: NodeJS.ProcessEnv): Settings {
  return readConfig({ DATA_DIR, DATABASE_URL, DATABASE_CA_FILE, MASTER_KEY, MASTER_KEY_FILE }, readText);
}

const readText = (path: string) => readFileSync(path, 'utf8');
