import { mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError, messageOf } from '../errors.ts';

/**
 * Writes a file atomically: no reader sees half of it, and the previous file survives a full disk. A symbolic link is
 * kept, and its target is replaced. `ownMode` sets the file mode and creates the folder accessible to this user only.
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
  // Left behind by an earlier process with the same ID.
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: mode & 0o777, flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
