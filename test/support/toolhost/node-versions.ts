import { dirname } from 'node:path';
import { ensureNpmProgram } from '../npm.ts';

/**
 * Returns the folder of the `node` program of a version, from the npm package `node`.
 * @throws Error that names the version that could not be installed
 */
export async function ensureNode(version: string): Promise<string> {
  if (`v${version}` === process.version) return dirname(process.execPath);
  return ensureNpmProgram({ package: 'node', version, command: 'node' });
}
