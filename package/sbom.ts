/**
 * `npm run sbom`: prints the software bill of materials of the package in CycloneDX, of the locked versions.
 * `npm sbom --omit dev` leaves out packages that a development dependency needs too, so npm is given a project that
 * has none.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Manifest = { name: string; devDependencies?: unknown };
type Lock = { packages: Record<string, { dev?: boolean; devDependencies?: unknown }> };

const root = join(import.meta.dirname, '..');
const read = (name: string): unknown => JSON.parse(readFileSync(join(root, name), 'utf8'));
const { devDependencies: _, ...manifest } = read('package.json') as Manifest;
const lock = read('package-lock.json') as Lock;
const packages = Object.fromEntries(
  Object.entries(lock.packages)
    .filter(([, { dev }]) => !dev)
    .map(([path, { devDependencies: _development, ...rest }]) => [path, rest]),
);

const base = mkdtempSync(join(tmpdir(), 'toolhost-sbom-'));
try {
  // npm calls the project by the name of its folder.
  const folder = join(base, manifest.name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
  execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
} finally {
  rmSync(base, { recursive: true, force: true });
}
