import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execFileAsync = promisify(execFile);

/**
 * Installs PyPI packages into a virtual environment, once. Returns its folder of programs, such as `python`.
 * @throws Error that names the packages that could not be installed
 */
export async function ensurePythonPackages(folder: string, packages: readonly string[]): Promise<string> {
  const bin = join(folder, 'bin');
  const markerFile = join(folder, packages.join(' '));
  if (existsSync(markerFile)) return bin;
  try {
    await mkdir(dirname(folder), { recursive: true });
    await execFileAsync('python3', ['-m', 'venv', '--clear', folder]);
    await execFileAsync(join(bin, 'python'), [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      ...packages,
    ]);
    await writeFile(markerFile, '');
  } catch (cause) {
    const advice =
      'Install Python 3 with its venv module (Debian: python3-venv) and give pip a registry that has them.';
    throw new Error(`These tests need the Python packages ${packages.join(' ')}. ${advice}`, { cause });
  }
  return bin;
}
