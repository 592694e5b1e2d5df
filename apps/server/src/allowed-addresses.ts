import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDataFolder } from './data-folder.ts';

/**
 * Addresses that `toolhost import --serve` allowed in local mode, in addition to EGRESS_ALLOW: a file in the data folder
 * with one entry per line, which only the operator can write.
 */
const fileName = 'egress-allow';

/** Returns the path of the file, and its entries, comma-separated like those of EGRESS_ALLOW. */
export function readAllowedAddresses(
  dataDir: string,
  readFile: (path: string) => string,
): { entries: string; file: string } {
  const file = join(dataDir, fileName);
  const text = existsSync(file) ? readFile(file) : '';
  return { entries: text.trim().replaceAll(/\s*\n\s*/g, ','), file };
}

/** Stores an entry. Returns the path of the file. */
export function storeAllowedAddress(dataDir: string, entry: string): string {
  createDataFolder(dataDir);
  const file = join(dataDir, fileName);
  writeFileSync(file, `${entry}\n`, { flag: 'a', mode: 0o600 });
  return file;
}
