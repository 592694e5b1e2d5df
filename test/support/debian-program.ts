import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const installMs = 300_000;

/**
 * Where a program is that a test needs: the first of the paths that exists. When there is none and this process is root
 * on Debian, the package is installed, which brings the first path.
 * @throws Error that says what to install
 */
export async function needProgram(paths: readonly [string, ...string[]], debianPackage: string): Promise<string> {
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new Error(
      `These tests need ${debianPackage}. Install it, on Debian with "apt-get install ${debianPackage}", so that one of these files exists: ${paths.join(', ')}`,
    );
  }
  const run = promisify(execFile);
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: installMs };
  await run('apt-get', ['update'], options);
  const wait = ['-o', 'DPkg::Lock::Timeout=120'];
  await run('apt-get', [...wait, 'install', '-y', '--no-install-recommends', debianPackage], options);
  return paths[0];
}
