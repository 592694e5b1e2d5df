import { existsSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { AppError, getErrorMessage } from '@toolhost/errors/errors';
import { resourceFolder } from './resource-folder.ts';
import { commit } from './version.ts';

const relativeFolder = './data';

/** Returns the default of DATA_DIR. A checkout has its own folder, so that several checkouts do not share a database. */
export function getDefaultDataDir(): string {
  const folder = process.cwd();
  // Only a compiled program has a commit.
  const isInCheckout = commit === undefined && `${folder}${sep}`.startsWith(join(resourceFolder, sep));
  if (isInCheckout) return folder === resourceFolder ? relativeFolder : join(resourceFolder, relativeFolder);
  return isFolder(relativeFolder) ? relativeFolder : getUserDataFolder();
}

/** Returns the folder for this program in the user's data folder of the operating system. */
function getUserDataFolder(): string {
  const { env, platform } = process;
  const home = env.HOME || homedir();
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'Toolhost');
  if (platform === 'win32') return join(env.LOCALAPPDATA || join(home, 'AppData', 'Local'), 'Toolhost');
  return join(env.XDG_DATA_HOME || join(home, '.local', 'share'), 'toolhost');
}

const folderErrors: { readonly [code: string]: string } = {
  EACCES: 'cannot be created, because this user has no permission',
  EEXIST: 'is a file',
  ENOENT: 'cannot be created, because its file system does not allow new folders',
  ENOTDIR: 'is below a file',
  EPERM: 'cannot be created, because this user has no permission',
  EROFS: 'cannot be created, because the file system is read-only',
};

/** Creates the folder of DATA_DIR for its owner only. @throws AppError unavailable */
export function createDataFolder(dataDir: string): void {
  try {
    createFolder(resolve(dataDir));
  } catch (error) {
    const problem = folderErrors[String((error as NodeJS.ErrnoException).code)];
    throw new AppError(
      'unavailable',
      `${dataDir} ${problem ?? `cannot be created (${getErrorMessage(error)})`}; set DATA_DIR or --data-dir to another folder`,
      { cause: error },
    );
  }
}

/**
 * Creates a folder and those above it. The recursive `mkdirSync` of Node.js never returns on a file system that refuses
 * new folders as /proc does.
 */
function createFolder(folder: string): void {
  const parent = dirname(folder);
  if (isFolder(folder)) return;
  if (parent !== folder && !existsSync(parent)) createFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have just created it.
    if (!isFolder(folder)) throw error;
  }
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
