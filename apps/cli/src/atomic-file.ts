import { mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { explainFileError } from './file-errors.ts';

/**
 * Writes a file atomically: no reader sees half of it, and the previous file survives a full disk. A symbolic link
 * stays, and its target is replaced. With `mode`, sets the file mode and creates a missing folder for this user only.
 * @throws AppError unavailable
 */
export function writeFileAtomically(path: string, text: string, mode?: number): void {
  try {
    if (mode !== undefined) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const existing = statSync(path, { throwIfNoEntry: false });
    // A device or a pipe, such as /dev/stdout, must not be replaced by a file.
    if (existing && !existing.isFile()) writeFileSync(path, text);
    else replaceFile(existing ? realpathSync(path) : path, text, mode ?? existing?.mode);
  } catch (error) {
    throw new AppError('unavailable', `${path}: cannot be written: ${explainFileError(error)}`);
  }
}

function replaceFile(path: string, text: string, mode = 0o666): void {
  const temporaryFile = join(dirname(path), `.${basename(path)}.${process.pid}.draft`);
  // Removes a file that an earlier process with the same ID left behind.
  rmSync(temporaryFile, { force: true });
  try {
    writeFileSync(temporaryFile, text, { flag: 'wx', mode: mode & 0o777, flush: true });
    renameSync(temporaryFile, path);
  } catch (error) {
    rmSync(temporaryFile, { force: true });
    throw error;
  }
}
