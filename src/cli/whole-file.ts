import { mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError, messageOf } from '../errors.ts';

/**
 * Writes a file in one step: no reader sees half of it, and a full disk leaves the one before. A link stays one, and its
 * target is replaced. With `ownMode` the file has these permissions, and its folder is made for this person only.
 * @throws AppError unavailable
 */
export function writeWholeFile(path: string, text: string, ownMode?: number): void {
  try {
    if (ownMode !== undefined) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const before = statSync(path, { throwIfNoEntry: false });
    // A device or a pipe, such as /dev/stdout, must not be replaced by a file.
    if (before && !before.isFile()) writeFileSync(path, text);
    else replace(before ? realpathSync(path) : path, text, ownMode ?? before?.mode);
  } catch (error) {
    throw new AppError('unavailable', `${path}: cannot be written: ${messageOf(error)}`);
  }
}

function replace(path: string, text: string, mode = 0o666): void {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}.draft`);
  // One that a process of the same id left behind.
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: mode & 0o777, flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
