import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const installTimeoutMs = 300_000;
const lockFile = join(tmpdir(), 'toolhost-apt-get.lock');

/**
 * Returns the path of a program that a test needs: the first path that exists. If none exists and this process is root
 * on Debian, installs the package, which provides the first path.
 * @throws Error that says what to install
 */
export async function ensureProgram(paths: readonly [string, ...string[]], debianPackage: string): Promise<string> {
  const existingPath = paths.find((path) => existsSync(path));
  if (existingPath !== undefined) return existingPath;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    throw new Error(
      `These tests need ${debianPackage}. Install it, on Debian with "apt-get install ${debianPackage}", so that one of these files exists: ${paths.join(', ')}`,
    );
  }
  const run = promisify(execFile);
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: installTimeoutMs };
  // Other test processes may install a program at the same time, and apt-get refuses to run twice.
  const aptGet = (...args: string[]) => run('flock', [lockFile, 'apt-get', ...args], options);
  await aptGet('update');
  const lockOptions = ['-o', 'DPkg::Lock::Timeout=120'];
  await aptGet(...lockOptions, 'install', '-y', '--no-install-recommends', debianPackage);
  return paths[0];
}
