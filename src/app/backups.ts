import { createReadStream, createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { type Config, readStoreConfig, type Settings } from '../config.ts';
import { AppError, messageOf } from '../errors.ts';
import { findLocalMasterKeys } from '../local/master-key.ts';
import {
  type BackupHeader,
  exportTables,
  longestLine,
  openPostgresSource,
  openSqliteSource,
  type RowCounts,
  signed,
} from '../store/backup.ts';
import type { SignatureState } from '../store/backup-signature.ts';
import { readMigrations, tablesOf } from '../store/engine/migrate.ts';
import { syncToDisk } from '../store/engine/sqlite-file.ts';
import { damaged, type EmptyDatabase, importTables, openEmptyPostgres, openEmptySqlite } from '../store/restore.ts';
import { createKeyring } from '../store/sealing/sealing.ts';
import { version } from '../version.ts';
import { type SealedReport, sealedReport } from './keys/master-keys.ts';
import { databaseFile, migrationsFolder } from './open-store.ts';
import { refuseMissingDatabase } from './operator.ts';
import { processClocks } from './surroundings.ts';

/**
 * Completed backup. `signed_with` is the id of the master key; absent if there was none. `not_noted` is the reason
 * why the database could not store the time of the backup, which a metric shows.
 */
export type MadeBackup = {
  file: string;
  engine: Config['engine'];
  rows: RowCounts;
  signed_with?: string;
  not_noted?: string;
};

/** Contents of a backup that was read completely, and the values in it that this environment's master keys can open. */
export type ReadBackup = SealedReport & {
  file: string;
  made_at: string;
  /** Version of toolhost that created it. */
  version: string;
  engine: BackupHeader['engine'];
  rows: RowCounts;
  signature: SignatureState;
  /** Id of the master key that signed it. */
  signed_with?: string;
};

/** Returns the master keys of an environment; empty if it has none. */
function mastersOf({ config, secrets }: Settings): readonly Buffer[] {
  return secrets.masterKeys ?? findLocalMasterKeys(config.dataDir) ?? [];
}

const keyringOf = (masters: readonly Buffer[]) => (masters.length > 0 ? createKeyring(masters) : undefined);

/**
 * Writes the database of an environment to a file. The service may be running.
 * @throws ConfigError; AppError notFound if there is no database, conflict if the file exists
 */
export async function makeBackup(
  env: NodeJS.ProcessEnv,
  file: string,
  { leavesOutRecords }: { leavesOutRecords: boolean },
): Promise<MadeBackup> {
  const settings = readStoreConfig(env, readText);
  const { config, secrets } = settings;
  refuseMissingDatabase(config);
  const keyring = keyringOf(mastersOf(settings));
  const files = readMigrations(migrationsFolder);
  const source = secrets.postgres
    ? await openPostgresSource(secrets.postgres, ['migrations', ...tablesOf(files)])
    : await openSqliteSource(databaseFile(config));
  let rows: RowCounts = {};
  let notNoted: string | undefined;
  try {
    const options = { engine: config.engine, files, version, now: processClocks.now, leavesOutRecords };
    const counted = async function* () {
      rows = yield* exportTables(source, options);
    };
    await writeBackupFile(file, signed(counted(), keyring));
    // The user who creates backups may have read-only access.
    await source.noteMade(processClocks.now()).catch((error: unknown) => {
      notNoted = messageOf(error);
    });
  } finally {
    await source.close();
  }
  const signedWith = keyring && { signed_with: keyring.keyIds[0] };
  return { file, engine: config.engine, rows, ...signedWith, ...(notNoted !== undefined && { not_noted: notNoted }) };
}

/**
 * Restores a backup into the empty database of an environment.
 * @throws ConfigError; AppError conflict if the database is not empty or the backup is from a newer version, invalid
 * if the backup is damaged or, unless `unverified`, not signed with a master key of the environment
 */
export async function restoreBackup(
  env: NodeJS.ProcessEnv,
  file: string,
  options: { unverified: boolean },
): Promise<ReadBackup> {
  const settings = readStoreConfig(env, readText);
  const { config, secrets } = settings;
  const target = secrets.postgres
    ? await openEmptyPostgres(secrets.postgres)
    : await openEmptySqlite(databaseFile(config));
  return fill(target, file, mastersOf(settings), options);
}

/**
 * Restores a backup into a temporary database, and checks its signature and every sealed value with the master keys
 * of the environment.
 * @throws ConfigError, AppError as `restoreBackup`
 */
export async function verifyBackup(env: NodeJS.ProcessEnv, file: string): Promise<ReadBackup> {
  const own = { ...env, DATABASE_URL: undefined, DATABASE_URL_FILE: undefined };
  const masters = mastersOf(readStoreConfig(own, readText));
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-verify-'));
  try {
    return await fill(await openEmptySqlite(join(folder, 'toolhost.sqlite')), file, masters, { unverified: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(
  target: EmptyDatabase,
  file: string,
  masters: readonly Buffer[],
  { unverified }: { unverified: boolean },
): Promise<ReadBackup> {
  const files = readMigrations(migrationsFolder);
  const options = {
    engine: target.engine,
    files,
    version,
    now: processClocks.now,
    keyring: keyringOf(masters),
    unverified,
  };
  try {
    const imported = await readBackupFile(file, (lines) => importTables(target.db, lines, options));
    const { header, counts, signature, key } = imported;
    const report = await sealedReport(target.db, masters);
    await target.keep();
    const { made_at, version: madeBy, engine } = header;
    const signedWith = key !== undefined && { signed_with: key };
    return { file, made_at, version: madeBy, engine, rows: counts, signature, ...signedWith, ...report };
  } finally {
    await target.close();
  }
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
  const part = `${path}.part`;
  try {
    await compress(text, createWriteStream(part, { mode: 0o600, flags: 'wx', flush: true }), { end: true });
    await rename(part, path);
    syncToDisk(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new AppError(
        'conflict',
        `${part} exists: another backup is writing it or was interrupted; if interrupted, delete the file`,
      );
    }
    await rm(part, { force: true });
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
    return await pipeline(input, createGunzip(), (bytes) => read(linesOf(bytes)));
  } catch (error) {
    if (!/^Z_/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    throw damaged('it is truncated, or not a compressed file');
  }
}

const lineFeed = 0x0a;

/**
 * Splits at line feeds only, not at other Unicode line separators. A line is valid until the next one is requested.
 * @throws AppError invalid as soon as a line is too long, so that memory and time are proportional to the file size
 */
async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)]);
      begun = [];
      length = 0;
      from = end + 1;
    }
    begun.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > longestLine) throw damaged(`a line is longer than ${longestLine} bytes, the maximum for a row`);
  }
  if (length > 0) yield Buffer.concat(begun);
}
