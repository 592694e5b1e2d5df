/** A real document of FastAPI, which is installed from PyPI into the cache. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type JsonObject, toObject } from '../json.ts';

const run = promisify(execFile);
const packages = ['fastapi==0.165.0', 'python-multipart==0.0.34'];

/** @throws Error where there is no Python, or no registry that has the packages */
export async function readFastapi(cache: string): Promise<JsonObject> {
  const folder = join(cache, 'python');
  const python = join(folder, 'bin', 'python');
  const mark = join(folder, packages.join(' '));
  if (!existsSync(mark)) {
    await run('python3', ['-m', 'venv', '--clear', folder]);
    await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]);
    await writeFile(mark, '');
  }
  const { stdout } = await run(python, [join(import.meta.dirname, 'fastapi_app.py')], { maxBuffer: 16 * 1024 * 1024 });
  return toObject(JSON.parse(stdout));
}
