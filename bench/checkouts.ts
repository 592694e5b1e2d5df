/** Copies the sources of a commit and of the working tree into separate folders and adds their dependencies. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.ts';

export type Checkout = { name: string; folder: string };

/** Checks out a Git revision, such as a hash, a branch, or `HEAD~2`. */
export function checkOutCommit(name: string, folder: string): Checkout {
  const hash = git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`], {
    failure: `Commit ${name} does not exist in this repository. In a shallow clone, fetch it first.`,
  });
  extract(hash, folder);
  return { name: hash.slice(0, 8), folder };
}

/** Copies the current files that Git does not ignore, so that later edits change nothing. */
export function checkOutWorkingTree(folder: string): Checkout {
  const env = { GIT_INDEX_FILE: `${folder}.index` };
  git(['add', '--all'], { env });
  extract(git(['write-tree'], { env }), folder);
  return { name: 'working tree', folder };
}

function git(args: string[], { env = {}, failure }: { env?: Record<string, string>; failure?: string } = {}): string {
  try {
    const options = { cwd: root, encoding: 'utf8', env: { ...process.env, ...env } } as const;
    return execFileSync('git', args, options).trim();
  } catch (cause) {
    throw failure === undefined ? cause : new Error(failure, { cause });
  }
}

function extract(tree: string, folder: string): void {
  const archive = `${folder}.tar`;
  git(['archive', '--format=tar', `--output=${archive}`, tree]);
  mkdirSync(folder);
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  rmSync(archive);
  addDependencies(folder);
}

/** Copies the dependencies of this checkout if the lockfiles are equal, and installs them otherwise. */
function addDependencies(folder: string): void {
  const lockfile = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (lockfile !== readFileSync(join(root, 'package-lock.json'), 'utf8')) {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    return;
  }
  const isOnSameDisk = statSync(root).dev === statSync(folder).dev;
  for (const path of packageFolders(lockfile)) {
    const entries = readdirSync(join(root, path)).filter((entry) => entry !== '.cache');
    mkdirSync(join(folder, path), { recursive: true });
    execFileSync('cp', ['-a', ...(isOnSameDisk ? ['--link'] : []), ...entries, join(folder, path)], {
      cwd: join(root, path),
    });
  }
}

/** Returns every `node_modules` of this checkout. npm creates one in a workspace if versions differ. */
function packageFolders(lockfile: string): string[] {
  const { packages } = JSON.parse(lockfile) as { packages: Record<string, unknown> };
  const folders = Object.keys(packages).flatMap((path) => /^(?:.*?\/)?node_modules(?=\/)/.exec(path)?.[0] ?? []);
  return [...new Set(folders)].filter((path) => existsSync(join(root, path)));
}
