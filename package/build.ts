/**
 * `npm run build`: makes `lib/`, which the package and the image consist of, beside `bin/toolhost.js`. It is laid out as
 * the repository, so every path between files stays as it is. Types are replaced by spaces and `.ts` in imports by `.js`,
 * so lines and columns of a stack trace are those of the sources, without source maps.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const lib = join(root, 'lib');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name: string; version: string };

function compile(path: string): void {
  const code = stripTypeScriptTypes(readFileSync(join(root, path), 'utf8'), { mode: 'strip' });
  const target = join(lib, path.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, code.replaceAll(/(['"])(\.{1,2}\/[^'"\n]+)\.ts\1/g, '$1$2.js$1'));
}

/** The commit of the sources; `TOOLHOST_COMMIT` names it where there is no repository, as in the build of the image. */
function commitOfSources(): string {
  const given = process.env.TOOLHOST_COMMIT?.trim();
  if (given) return given;
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changes = git('status', '--porcelain', '--untracked-files=no');
    return `${git('rev-parse', 'HEAD')}${changes === '' ? '' : '-modified'}`;
  } catch {
    return 'unknown';
  }
}

rmSync(lib, { recursive: true, force: true });
for (const path of globSync(['src/**/*.ts', 'examples/projects/*.ts'], { cwd: root })) compile(path);
for (const path of ['migrations', 'dist/web', 'examples/projects/server.json']) {
  cpSync(join(root, path), join(lib, path), { recursive: true });
}
const { name, version } = manifest;
writeFileSync(
  join(lib, 'package.json'),
  `${JSON.stringify({ name, version, commit: commitOfSources(), type: 'module' }, undefined, 2)}\n`,
);
