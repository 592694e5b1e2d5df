/**
 * `npm run build`: creates `lib/`, which together with `bin/toolhost.js` makes up the package and the image. Program
 * files are two levels below `lib/`, because sources that locate the dashboard or the migrations are two levels below
 * the root.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeBundle } from './bundle.ts';
import {
  buildBillOfMaterials,
  collectComponents,
  formatNotice,
  readDashboardComponents,
  sortAndDeduplicate,
} from './third-party.ts';

const root = join(import.meta.dirname, '..', '..');
const lib = join(root, 'lib');

/** Returns the commit of the sources. `TOOLHOST_COMMIT` names it if there is no repository, as in the image build. */
function getSourceCommit(): string {
  const commitFromEnvironment = process.env.TOOLHOST_COMMIT?.trim();
  if (commitFromEnvironment) return commitFromEnvironment;
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changes = git('status', '--porcelain', '--untracked-files=no');
    return `${git('rev-parse', 'HEAD')}${changes === '' ? '' : '-modified'}`;
  } catch {
    return 'unknown';
  }
}

rmSync(lib, { recursive: true, force: true });
const files = await writeBundle(join(lib, 'apps', 'server', 'program'), getSourceCommit());
for (const path of ['migrations', 'dist/web', 'examples/projects/server.json']) {
  cpSync(join(root, path), join(lib, path), { recursive: true });
}
const components = sortAndDeduplicate([...collectComponents(files), ...readDashboardComponents()]);
writeFileSync(join(lib, 'NOTICE'), formatNotice(components));
writeFileSync(join(lib, 'sbom.cdx.json'), buildBillOfMaterials(components));
