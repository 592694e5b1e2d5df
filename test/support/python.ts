import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Installs PyPI packages into a virtual environment, once. Returns its folder of programs, such as `python`.
 * @throws Error that names the packages that could not be installed
 */
export async function needPythonPackages(folder: string, packages: readonly string[]): Promise<string> {
  const bin = join(folder, 'bin');
  const mark = join(folder, packages.join(' '));
  if (existsSync(mark)) return bin;
  try {
    await mkdir(dirname(folder), { recursive: true });
    await run('python3', ['-m', 'venv', '--clear', folder]);
    await run(join(bin, 'python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]);
    await writeFile(mark, '');
  } catch (cause) {
    const advice =
      'Install Python 3 with its venv module (Debian: python3-venv) and give pip a registry that has them.';
    throw new Error(`These tests need the Python packages ${packages.join(' ')}. ${advice}`, { cause });
  }
  return bin;
}
