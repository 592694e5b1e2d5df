import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { AppError, messageOf } from '../../errors.ts';

/** Permissions that other people must not have: to change a file, or to do anything with it. */
export const othersMayRead = 0o022;
export const othersMayNothing = 0o077;

/**
 * The text of a file of this person; undefined when there is none. Like ssh, it uses no file that others may change, or
 * read where it holds tokens.
 * @throws AppError forbidden, invalid
 */
export function readOwnFile(path: string, forbidden: number): string | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new AppError('invalid', `${path}: cannot be read: ${messageOf(error)}`);
  }
  try {
    // Windows has no such permissions; there the folder of the person is theirs.
    if (process.platform !== 'win32') checkOwner(path, file, forbidden);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function checkOwner(path: string, file: number, forbidden: number): void {
  const { mode, uid } = fstatSync(file);
  if (uid !== process.getuid?.() && uid !== 0)
    throw new AppError('forbidden', `${path}: belongs to another user of this machine, so it is not used`);
  if ((mode & forbidden) === 0) return;
  const wanted = forbidden === othersMayNothing ? '600' : '644';
  const found = (mode & 0o777).toString(8);
  throw new AppError(
    'forbidden',
    `${path}: has the permissions ${found}, so others could ${forbidden === othersMayNothing ? 'use what it holds' : 'change it'}; it is not used. Allow only yourself: chmod ${wanted} ${path}`,
  );
}

/** A file that will replace another one. It is made before there is anything to lose. */
export type Replacement = {
  /** Writes the text, and puts it in place of the file at once. @throws AppError */
  write(text: string): void;
  /** Removes it when it was not written. */
  discard(): void;
};

/** Opens a new file beside `path`, for this person only. @throws AppError when the folder or the disk takes none */
export function replacementOf(path: string, expectedBytes: number): Replacement {
  const temporary = `${path}.${process.pid}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    rmSync(temporary, { force: true });
    const file = openSync(temporary, 'wx', 0o600);
    // Takes the space on the disk now.
    writeSync(file, Buffer.alloc(expectedBytes, ' '), 0, expectedBytes, 0);
    fsyncSync(file);
    let isOpen = true;
    const close = () => {
      if (isOpen) closeSync(file);
      isOpen = false;
    };
    return {
      write(text) {
        const bytes = Buffer.from(text);
        writeSync(file, bytes, 0, bytes.length, 0);
        ftruncateSync(file, bytes.length);
        fsyncSync(file);
        close();
        renameSync(temporary, path);
      },
      discard() {
        close();
        rmSync(temporary, { force: true });
      },
    };
  } catch (error) {
    throw new AppError('unavailable', `${path}: cannot be written: ${messageOf(error)}`);
  }
}

/** Replaces a file of this person as a whole. @throws AppError */
export function writeOwnFile(path: string, text: string): void {
  const replacement = replacementOf(path, 0);
  try {
    replacement.write(text);
  } finally {
    replacement.discard();
  }
}
