import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import { build } from 'vite';

const root = resolve(import.meta.dirname, '..', '..');
const stamp = join(root, 'dist', 'web', '.built-from');

/** Returns a hash of all build inputs. */
function fingerprint(): string {
  const hash = createHash('sha256');
  const add = (path: string) => hash.update(relative(root, path)).update(readFileSync(path));
  for (const entry of readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true }).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    if (entry.isFile() && !entry.name.endsWith('.test.ts')) add(join(entry.parentPath, entry.name));
  }
  add(join(root, 'apps', 'server', 'src', 'operations', 'routes.ts'));
  const gallery = join(root, 'examples', 'gallery');
  for (const name of readdirSync(gallery).toSorted()) add(join(gallery, name));
  add(join(root, 'package-lock.json'));
  return hash.digest('hex');
}

/** Writes a Brotli copy (`.br`) next to each file except fonts, which the service sends to clients that accept it. */
async function compressAll(folder: string): Promise<void> {
  const compress = promisify(brotliCompress);
  const compressFile = async (path: string) => writeFileSync(`${path}.br`, await compress(readFileSync(path)));
  const names = readdirSync(folder).filter((name) => !name.endsWith('.woff2'));
  await Promise.all(names.map((name) => compressFile(join(folder, name))));
}

// Builds the dashboard only if its sources have changed since the last build.
const current = fingerprint();
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== current) {
  process.stderr.write('building the dashboard…\n');
  await build({ configFile: join(import.meta.dirname, 'vite.config.ts'), logLevel: 'warn' });
  await compressAll(join(root, 'dist', 'web', 'assets'));
  writeFileSync(stamp, current);
}
