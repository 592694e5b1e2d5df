/** Reads the OpenAPI document of a real FastAPI application. FastAPI is installed from PyPI into the cache. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensurePythonPackages } from '../../support/python.ts';
import { type JsonObject, toObject } from '../json.ts';

const run = promisify(execFile);
const packages = ['fastapi==0.165.0', 'python-multipart==0.0.34'];

/** @throws Error if Python is missing or no registry has the packages */
export async function readFastapi(cache: string): Promise<JsonObject> {
  const bin = await ensurePythonPackages(join(cache, 'python'), packages);
  const { stdout } = await run(join(bin, 'python'), [join(import.meta.dirname, 'fastapi_app.py')], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return toObject(JSON.parse(stdout));
}
