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
 * A backup that was made. `signed_with`: id of the master key; absent if there was none. `not_noted`: why the database could
 * not store when, which a metric shows.
 */
export type MadeBackup = {
  file: string;
  engine: Config['engine'];
  rows: RowCounts;
  signed_with?: string;
  not_noted?: string;
};

/** A backup that was read to its end: what it holds, and what of it the master keys of this environment open. */
export type ReadBackup = SealedReport & {
  file: string;
  made_at: string;
  /** The version of toolhost that made it. */
  version: string;
  engine: BackupHeader['engine'];
  rows: RowCounts;
  signature: SignatureState;
  /** Id of the master key that signed it. */
  signed_with?: string;
};

/** The master keys of an environment, which may have none. */
function mastersOf({ config, secrets }: Settings): readonly Buffer[] {
  return secrets.masterKeys ?? findLocalMasterKeys(config.dataDir) ?? [];
}

const keyringOf = (masters: readonly Buffer[]) => (masters.length > 0 ? createKeyring(masters) : undefined);

/**
 * Writes the database of an environment to a file, also while the service runs.
 * @throws ConfigError, AppError notFound without a database, conflict when the file exists
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
    // Whoever makes backups may have the right to read only.
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
 * Fills the empty database of an environment with a backup.
 * @throws ConfigError; AppError conflict when the database is not empty or the backup is of a newer version, invalid when
 * the backup is damaged or, unless `unverified`, not signed with a master key of the environment
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
 * Restores a backup into a database of its own, which is deleted again, and tries its signature and every sealed value with
 * the master keys of the environment.
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

/** In place of a file: standard input or standard output. */
const standardStream = '-';

/**
 * Writes the text of a backup, compressed, to a new file that only its owner reads. The file has its name only when it is
 * complete and on the disk.
 * @throws AppError conflict when the file exists
 */
async function writeBackupFile(path: string, text: AsyncIterable<string>): Promise<void> {
  if (path === standardStream) return compress(text, process.stdout, { end: false });
  if (existsSync(path)) {
    throw new AppError('conflict', `${path} exists; give the backup another name, so that no earlier one is lost`);
  }
  const part = `${path}.part`;
  try {
    await compress(text, createWriteStream(part, { mode: 0o600, flags: 'wx', flush: true }), { end: true });
    await rename(part, path);
    syncToDisk(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new AppError('conflict', `${part} exists: another backup writes it, or was interrupted; delete it then`);
    }
    await rm(part, { force: true });
    throw error;
  }
}

function compress(text: AsyncIterable<string>, output: Writable, options: { end: boolean }): Promise<void> {
  return pipeline(Readable.from(text), createGzip(), output, options);
}

/**
 * Gives the lines of a backup to `read`.
 * @throws AppError notFound when there is no such file, invalid when it is damaged; what `read` throws
 */
export async function readBackupFile<Result>(
  path: string,
  read: (lines: AsyncIterable<Buffer>) => Promise<Result>,
): Promise<Result> {
  if (path !== standardStream && !existsSync(path)) throw new AppError('notFound', `there is no file ${path}`);
  const input = path === standardStream ? process.stdin : createReadStream(path);
  try {
    return await pipeline(input, createGunzip(), (bytes) => read(linesOf(bytes)));
  } catch (error) {
    if (!/^Z_/.test(String((error as NodeJS.ErrnoException).code))) throw error;
    throw damaged('it is cut off, or is no compressed file');
  }
}

const lineFeed = 0x0a;

/**
 * Lines that end in a line feed, and nothing else that Unicode counts as one. A line is good until the next one is asked for.
 * @throws AppError invalid as soon as a line is too long, so that the memory and time are in proportion to the file
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
    if (length > longestLine) throw damaged(`a line in it is longer than ${longestLine} bytes, which no row is`);
  }
  if (length > 0) yield Buffer.concat(begun);
}
