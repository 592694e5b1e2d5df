import { dirname } from 'node:path';
import { needNpmProgram } from '../npm.ts';

/**
 * The folder of the program `node` of a version, which the npm package `node` brings.
 * @throws Error that says what could not be installed
 */
export async function needNode(version: string): Promise<string> {
  if (`v${version}` === process.version) return dirname(process.execPath);
  return needNpmProgram({ package: 'node', version, command: 'node' });
}
