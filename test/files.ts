import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Returns the paths of all test files, relative to `test/`. */
export function testFiles(): string[] {
  return readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => relative(import.meta.dirname, join(import.meta.dirname, name)))
    .toSorted();
}
