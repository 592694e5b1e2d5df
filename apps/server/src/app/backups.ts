import { createReadStream, createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { AppError, getErrorMessage } from '@toolhost/errors/errors';
import { type Config, readStoreConfig, type Settings } from '../config.ts';
import {
  type BackupOptions,
  type DatabaseLocation,
  exportTables,
  maxLineBytes,
  type RowCounts,
  readSnapshot,
  withConnection,
} from '../store/backup.ts';
import { getTableNames, readMigrations } from '../store/engine/migrate.ts';
import { syncToDisk } from '../store/engine/sqlite-file.ts';
import { recordCompletion } from '../store/pruning/leases.ts';
import { createDamagedBackupError, fillEmptyDatabase, type ImportedBackup, importTables } from '../store/restore.ts';
import { createKeyring } from '../store/sealing/sealing.ts';
import { version } from '../version.ts';
import { createSealedReport, getMasterKeys, type SealedReport } from './keys/master-keys.ts';
import { getDatabasePath, migrationsFolder } from './open-store.ts';
import { rejectMissingDatabase } from './operator.ts';
import { processClocks } from './runtime-options.ts';

/**
 * Completed backup. `signed_with` is the id of the master key; absent if there was none. `not_noted` is the reason
 * why the database could not store the time of the backup, which a metric shows.
 */
export type BackupResult = {
  file: string;
  engine: Config['engine'];
  rows: RowCounts;
  signed_with?: string;
  not_noted?: string;
};

/** Contents of a backup, and the values in it that this environment's master keys can open. */
export type BackupReport = SealedReport & ImportedBackup & { file: string };

const getLocation = ({ config, secrets }: Settings): DatabaseLocation => ({
  postgres: secrets.postgres,
  file: getDatabasePath(config),
});

function getOptions(engine: Config['engine'], masters: readonly Buffer[]): BackupOptions {
  const keyring = masters.length > 0 ? createKeyring(masters) : undefined;
  return { engine, files: readMigrations(migrationsFolder), version, now: processClocks.now, keyring };
}

/**
 * Writes the database of an environment to a file. The service may be running.
 * @throws ConfigError; AppError notFound if there is no database, conflict if the file exists
 */
export async function createBackup(
  env: NodeJS.ProcessEnv,
  file: string,
  { excludesRecords }: { excludesRecords: boolean },
): Promise<BackupResult> {
  const settings = readStoreConfig(env, readText);
  const { engine } = settings.config;
  rejectMissingDatabase(settings.config);
  const location = getLocation(settings);
  const options = getOptions(engine, getMasterKeys(settings));
  const rows: RowCounts = {};
  const tables = ['migrations', ...getTableNames(options.files)];
  await readSnapshot(location, tables, (source) =>
    writeBackupFile(file, exportTables(source, { ...options, excludesRecords, rows })),
  );
  const reason = await recordBackupTime(location);
  return {
    file,
    engine,
    rows,
    ...(options.keyring && { signed_with: options.keyring.keyIds[0] }),
    ...(reason !== undefined && { not_noted: reason }),
  };
}

/** Stores the time of the backup. Returns the reason if it cannot, for example with a database user that only reads. */
async function recordBackupTime(location: DatabaseLocation): Promise<string | undefined> {
  try {
    await withConnection(location, (db) => recordCompletion(db, 'backup', processClocks.now()));
    return undefined;
  } catch (error) {
    return getErrorMessage(error);
  }
}

/**
 * Restores a backup into the empty database of an environment.
 * @throws ConfigError; AppError conflict if the database is not empty or the backup is from a newer version, invalid
 * if the backup is damaged or, unless `unverified`, not signed with a master key of the environment
 */
export async function restoreBackup(
  env: NodeJS.ProcessEnv,
  file: string,
  { unverified }: { unverified: boolean },
): Promise<BackupReport> {
  const settings = readStoreConfig(env, readText);
  return restoreInto(getLocation(settings), file, getMasterKeys(settings), unverified);
}

/**
 * Restores a backup into a temporary database, and checks its signature and every sealed value with the master keys
 * of the environment.
 * @throws ConfigError, AppError as `restoreBackup`
 */
export async function verifyBackup(env: NodeJS.ProcessEnv, file: string): Promise<BackupReport> {
  const sqliteEnv = { ...env, DATABASE_URL: undefined, DATABASE_URL_FILE: undefined };
  const masters = getMasterKeys(readStoreConfig(sqliteEnv, readText));
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-verify-'));
  try {
    return await restoreInto({ postgres: undefined, file: join(folder, 'toolhost.sqlite') }, file, masters, true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function restoreInto(
  location: DatabaseLocation,
  file: string,
  masters: readonly Buffer[],
  unverified: boolean,
): Promise<BackupReport> {
  return fillEmptyDatabase(location, async (db, engine) => {
    const options = { ...getOptions(engine, masters), unverified };
    const imported = await readBackupFile(file, (lines) => importTables(db, lines, options));
    return { file, ...imported, ...(await createSealedReport(db, masters)) };
  });
}

const readText = (path: string) => readFileSync(path, 'utf8');

/** Path that stands for standard input or standard output. */
const standardStream = '-';

/**
 * Writes the text of a backup, compressed, to a new file that only its owner can read. The file receives its name
 * only when it is complete and on disk.
 * @throws AppError conflict if the file exists
 */
async function writeBackupFile(path: string, text: AsyncIterable<string>): Promise<void> {
  if (path === standardStream) return compress(text, process.stdout, { end: false });
  if (existsSync(path)) {
    throw new AppError('conflict', `${path} already exists; choose another name for the backup`);
  }
  const partFile = `${path}.part`;
  try {
    await compress(text, createWriteStream(partFile, { mode: 0o600, flags: 'wx', flush: true }), { end: true });
    await rename(partFile, path);
    syncToDisk(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new AppError(
        'conflict',
        `${partFile} exists: another backup is writing it or was interrupted; if interrupted, delete the file`,
      );
    }
    await rm(partFile, { force: true });
    throw error;
  }
}

function compress(text: AsyncIterable<string>, output: Writable, options: { end: boolean }): Promise<void> {
  return pipeline(Readable.from(text), createGzip(), output, options);
}

/**
 * Passes the lines of a backup to `read`.
 * @throws AppError notFound if the file does not exist, invalid if it is damaged; any error from `read`
 */
export async function readBackupFile<Result>(
  path: string,
  read: (lines: AsyncIterable<Buffer>) => Promise<Result>,
): Promise<Result> {
  if (path !== standardStream && !existsSync(path)) throw new AppError('notFound', `the file ${path} does not exist`);
  const input = path === standardStream ? process.stdin : createReadStream(path);
  try {
    return await pipeline(input, createGunzip(), (bytes) => read(splitLines(bytes)));
  } catch (error) {
    // Codes that begin with Z_ are errors of zlib.
    if (!/^Z_/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    throw createDamagedBackupError('it is truncated, or not a compressed file');
  }
}

const lineFeed = 0x0a;

/**
 * Splits at line feeds only, not at other Unicode line separators. A line is valid until the next one is requested.
 * @throws AppError invalid as soon as a line is too long, so that memory and time are proportional to the file size
 */
async function* splitLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let lineParts: Buffer[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      yield Buffer.concat([...lineParts, chunk.subarray(start, end)]);
      lineParts = [];
      length = 0;
      start = end + 1;
    }
    lineParts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > maxLineBytes)
      throw createDamagedBackupError(`a line is longer than ${maxLineBytes} bytes, the maximum for a row`);
  }
  if (length > 0) yield Buffer.concat(lineParts);
}
