import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';

/** The released version before the sources of this checkout, as an installation of its own. */
export type PreviousVersion = {
  commit: string;
  /** Its `bin/toolhost`. */
  program: string;
  remove(): Promise<void>;
};

type Declared = { version: string; commit: string };
type Locked = { packages: Record<string, { version?: string; dev?: boolean }> };

const run = promisify(execFile);
const file = 'test/upgrades/previous.json';
/** What a process of the service is made of. */
const parts = ['bin', 'src', 'migrations', 'examples', 'package.json', 'package-lock.json'];

/** Installs the version that `test/upgrades/previous.json` declares. Rejects with what to do when it is not to be had. */
export async function installPreviousVersion(): Promise<PreviousVersion> {
  const { version, commit } = await readJson<Declared>(join(root, file));
  await fetchCommit(version, commit);
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
  return { commit, program: join(folder, 'bin', 'toolhost'), remove };
}

/** A clone of the newest commit only, as in many pipelines, gets the older commit from where it was cloned from. */
async function fetchCommit(version: string, commit: string): Promise<void> {
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
    `the test of upgrades needs the sources of version ${version}, commit ${commit} (${file}), and this clone does not have them; run "git fetch --unshallow", or clone with the whole history ("fetch-depth: 0" of actions/checkout)`,
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
