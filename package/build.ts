/**
 * `npm run build`: makes `lib/`, which the package and the image consist of, beside `bin/toolhost.js`. The files of the
 * program are two levels below `lib/`, as the sources that look for the dashboard or the migrations are below the root.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeBundle } from './bundle.ts';
import { billOfMaterials, componentsOf, componentsOfDashboard, noticeOf, sorted } from './third-party.ts';

const root = join(import.meta.dirname, '..');
const lib = join(root, 'lib');

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
const files = await writeBundle(join(lib, 'program', 'files'), commitOfSources());
for (const path of ['migrations', 'dist/web', 'examples/projects/server.json']) {
  cpSync(join(root, path), join(lib, path), { recursive: true });
}
const components = sorted([...componentsOf(files), ...componentsOfDashboard()]);
writeFileSync(join(lib, 'NOTICE'), noticeOf(components));
writeFileSync(join(lib, 'sbom.cdx.json'), billOfMaterials(components));
