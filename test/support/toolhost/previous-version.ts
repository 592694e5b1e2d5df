import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';

/** An earlier version, as an installation of its own. */
export type PreviousVersion = {
  /** Its `bin/toolhost`. */
  program: string;
  remove(): Promise<void>;
};

type Locked = { packages: Record<string, { version?: string; dev?: boolean }> };

const run = promisify(execFile);
/** What a process of the service is made of. */
const parts = ['bin', 'src', 'migrations', 'examples', 'package.json', 'package-lock.json'];

/** Installs the version of a commit or tag. Rejects with what to do when it is not to be had. */
export async function installPreviousVersion(commit: string): Promise<PreviousVersion> {
  await fetchCommit(commit);
  const folder = await mkdtemp(join(tmpdir(), 'toolhost-previous-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const archive = join(folder, 'sources.tar');
    await run('git', ['archive', `--output=${archive}`, commit, ...parts], { cwd: root });
    await run('tar', ['-xf', archive, '-C', folder]);
    await installPackages(folder);
  } catch (error) {
    await remove();
    throw error;
  }
  return { program: join(folder, 'bin', 'toolhost'), remove };
}

/** A clone of the newest commit only, as in many pipelines, gets the older commit from where it was cloned from. */
async function fetchCommit(commit: string): Promise<void> {
  const isThere = () =>
    run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).then(
      () => true,
      () => false,
    );
  if (await isThere()) return;
  // Where this fails, too, the error below says what to do.
  await run('git', ['fetch', '--quiet', '--depth=1', 'origin', commit], { cwd: root }).catch(() => undefined);
  if (await isThere()) return;
  throw new Error(
    `this clone does not have commit ${commit}; run "git fetch --unshallow", or clone with the whole history`,
  );
}

/** The packages of this checkout serve it where they have the versions that it was locked to; otherwise it gets its own. */
async function installPackages(folder: string): Promise<void> {
  const [own, theirs] = await Promise.all([root, folder].map((at) => readJson<Locked>(join(at, 'package-lock.json'))));
  const isSame = Object.entries(theirs?.packages ?? {}).every(
    ([path, { version, dev }]) => path === '' || dev || own?.packages[path]?.version === version,
  );
  const modules = join(folder, 'node_modules');
  if (isSame) return symlink(join(root, 'node_modules'), modules);
  await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  await mkdir(modules, { recursive: true });
  await symlink(join(root, 'node_modules', 'node'), join(modules, 'node'));
}

async function readJson<Value>(path: string): Promise<Value> {
  return JSON.parse(await readFile(path, 'utf8')) as Value;
}
