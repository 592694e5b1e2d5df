import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';

/** A separate installation of an earlier version. */
export type PreviousVersion = {
  /** Path of its `bin/toolhost`. */
  program: string;
  remove(): Promise<void>;
};

type LockFile = { packages: Record<string, { version?: string; dev?: boolean }> };

const execFileAsync = promisify(execFile);
/** Paths in the repository that a process of the service needs. */
const sourcePaths = ['apps', 'bin', 'migrations', 'examples', 'package.json', 'package-lock.json', 'packages'];

/** Installs the version of a commit or tag. Rejects with instructions when the commit is not available. */
export async function installPreviousVersion(commit: string): Promise<PreviousVersion> {
  await fetchCommit(commit);
  const folder = await mkdtemp(join(tmpdir(), 'toolhost-previous-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const archive = join(folder, 'sources.tar');
    await execFileAsync('git', ['archive', `--output=${archive}`, commit, ...sourcePaths], { cwd: root });
    await execFileAsync('tar', ['-xf', archive, '-C', folder]);
    await installPackages(folder);
  } catch (error) {
    await remove();
    throw error;
  }
  return { program: join(folder, 'bin', 'toolhost'), remove };
}

/** Fetches a commit from the clone's origin, because many pipelines clone only the newest commit. */
async function fetchCommit(commit: string): Promise<void> {
  const hasCommit = () =>
    execFileAsync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).then(
      () => true,
      () => false,
    );
  if (await hasCommit()) return;
  // If this fails as well, the error below says what to do.
  await execFileAsync('git', ['fetch', '--quiet', '--depth=1', 'origin', commit], { cwd: root }).catch(() => undefined);
  if (await hasCommit()) return;
  throw new Error(
    `This clone does not have commit ${commit}. Run "git fetch --unshallow", or clone with the whole history.`,
  );
}

/** Shares this checkout's packages if they have the locked versions, and otherwise installs the version's own. */
async function installPackages(folder: string): Promise<void> {
  const [current, previous] = await Promise.all(
    [root, folder].map((at) => readJson<LockFile>(join(at, 'package-lock.json'))),
  );
  const canShareModules = Object.entries(previous?.packages ?? {}).every(
    ([path, { version, dev }]) => path === '' || dev || current?.packages[path]?.version === version,
  );
  const modules = join(folder, 'node_modules');
  if (canShareModules) return symlink(join(root, 'node_modules'), modules);
  await execFileAsync('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  await mkdir(modules, { recursive: true });
  await symlink(join(root, 'node_modules', 'node'), join(modules, 'node'));
}

async function readJson<Value>(path: string): Promise<Value> {
  return JSON.parse(await readFile(path, 'utf8')) as Value;
}
