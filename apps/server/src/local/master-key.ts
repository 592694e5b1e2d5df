import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDataFolder } from '../data-folder.ts';
import { parseMasterKeys } from '../master-keys.ts';

const keyFileName = 'master.key';

/** Master keys of local mode. */
export type LocalMasterKeys = {
  keys: Buffer[];
  file: string;
  /** Deletes the file if it was just created, so that the user can put the right file in its place. */
  removeIfCreated(): void;
};

/** Reads the keys from a file next to the database, readable by its owner only. Creates the file at the first start. */
export function readOrCreateLocalMasterKeys(dataDir: string): LocalMasterKeys {
  const file = join(dataDir, keyFileName);
  const isCreated = !existsSync(file) && createKeyFile(dataDir, file);
  return {
    keys: parseMasterKeys(readFileSync(file, 'utf8')),
    file,
    removeIfCreated: () => isCreated && rmSync(file, { force: true }),
  };
}

/** Reads the keys without creating the file. */
export function readLocalMasterKeys(dataDir: string): Buffer[] | undefined {
  const file = join(dataDir, keyFileName);
  return existsSync(file) ? parseMasterKeys(readFileSync(file, 'utf8')) : undefined;
}

/** Creates the key file. Returns false if another process has just created it. */
function createKeyFile(dataDir: string, file: string): boolean {
  createDataFolder(dataDir);
  try {
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}
