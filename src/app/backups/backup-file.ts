import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { AppError } from '../../errors.ts';
import { type BackupPart, damaged, readBackup } from '../../store/backup/backup-lines.ts';

/** In place of a file: standard input or standard output. */
export const standardStream = '-';

/** Of a line, in characters. A configuration has a few megabytes at most. */
const longestLine = 256_000_000;

/**
 * Writes the text of a backup, compressed, to a new file that only its owner reads. The file has its name only when it is
 * complete and on the disk.
 * @throws AppError conflict when the file exists
 */
export async function writeBackupFile(path: string, text: AsyncIterable<string>): Promise<void> {
  if (path === standardStream) return compress(text, process.stdout, { end: false });
  if (existsSync(path)) {
    throw new AppError('conflict', `${path} exists; give the backup another name, so that no earlier one is lost`);
  }
  const part = `${path}.part`;
  try {
    await compress(text, createWriteStream(part, { mode: 0o600, flags: 'wx', flush: true }), { end: true });
    await rename(part, path);
    await syncFolder(dirname(path));
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

/** Makes the new name of a file last through a power cut. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * The parts of a backup, in order.
 * @throws AppError notFound when there is no such file; see `readBackup` for what is wrong in it
 */
export async function* readBackupFile(path: string): AsyncGenerator<BackupPart> {
  if (path !== standardStream && !existsSync(path)) throw new AppError('notFound', `there is no file ${path}`);
  const input = path === standardStream ? process.stdin : createReadStream(path);
  const unzipped = createGunzip();
  // A failure of either stream is thrown where the text is read.
  const read = pipeline(input, unzipped).catch((error: unknown) => unzipped.destroy(error as Error));
  try {
    yield* readBackup(linesOf(unzipped));
    await read;
  } catch (error) {
    if (/^Z_/.test(String((error as NodeJS.ErrnoException).code))) {
      throw damaged('it is cut off, or is no compressed file');
    }
    throw error;
  } finally {
    unzipped.destroy();
    input.destroy();
    await finished(unzipped).catch(() => undefined);
  }
}

/** Lines that end in a line feed, and nothing else that Unicode counts as one. */
async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: false });
  let rest = '';
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > longestLine) throw damaged('a line is too long');
    yield* lines;
  }
  if (rest !== '') yield rest;
}
