import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The mode bits that give access to the group and to all other users. */
const othersMask = 0o077;
const privateFolderMode = 0o700;
const privateFileMode = 0o600;

/** Names of the files that this service writes into its data folder. */
const ownNames = /^(toolhost\.sqlite|projects-example\.sqlite|master\.key|unwritten-calls)/;

/**
 * Makes the data folder, or takes over an existing one, so that only its owner reads the service's files. Our files are
 * closed to others; the folder itself only when it holds nothing else.
 * Returns sentences for the log about files that other users of the machine can still read.
 */
export function makeDataFolderPrivate(folder: string): string[] {
  mkdirSync(folder, { recursive: true, mode: privateFolderMode });
  const names = readdirSync(folder);
  const own = names.filter((name) => ownNames.test(name));
  const open = own.filter((name) => !closeToOthers(join(folder, name))).map((name) => join(folder, name));
  const isOurs = own.length === names.length;
  if (isOpen(folder) && !(isOurs && closeToOthers(folder))) open.unshift(folder);
  return open.map((path) => `other users of this machine may read ${path}; close it with: chmod go= ${path}`);
}

/** Makes an empty file that only its owner reads, unless it exists. SQLite gives the files beside it the same mode. */
export function makePrivateFile(file: string): void {
  closeSync(openSync(file, 'a', privateFileMode));
}

/** Closes a path to everyone except its owner. False for a path of another owner, which stays as it is. */
function closeToOthers(path: string): boolean {
  try {
    if (!isOpen(path)) return true;
    const { mode, uid } = statSync(path);
    if (uid !== process.getuid?.()) return false;
    chmodSync(path, mode & ~othersMask & 0o7777);
    return true;
  } catch (error) {
    // SQLite deletes its files beside the database when the last process closes it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    if ((error as NodeJS.ErrnoException).code === 'EROFS') return false;
    throw error;
  }
}

/** Windows has no such bits. */
function isOpen(path: string): boolean {
  return process.getuid !== undefined && (statSync(path).mode & othersMask) !== 0;
}
