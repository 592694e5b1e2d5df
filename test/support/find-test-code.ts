import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const testPath = /\.test\.|(?:^|\/)test\//;

/** Returns the test files below a folder of built code, and the source maps that name one as a source. */
export function findTestCode(folder: string): string[] {
  return globSync('**/*', { cwd: folder, exclude: ['**/node_modules'] }).filter((path) => {
    if (testPath.test(path)) return true;
    if (!path.endsWith('.map')) return false;
    const { sources } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as { sources: string[] };
    return sources.some((source) => testPath.test(source) && !source.includes('node_modules/'));
  });
}
