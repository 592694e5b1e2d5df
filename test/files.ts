import { globSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Returns the paths of all test files, relative to the repository: those in `test/`, and unit tests next to the code. */
export function testFiles(): string[] {
  return globSync('{test,packages,apps}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules'] }).toSorted();
}
