/**
 * The two sets of tests. `npm test` runs what every change must pass: each rule of `requirements.ts` by at least one
 * test, every operation on one engine, the shared queries on both. `npm run test:all` runs everything.
 */
import type { Engine } from '../src/store/db.ts';

/** Whether everything runs. */
export const isWhole = process.env.TEST_SET === 'all';

/** Files, and folders that end in a slash, below `test/`, which only `npm run test:all` runs. */
const onlyInWhole: readonly string[] = [
  'faults/',
  'import/corpus.test.ts',
  'import/import-bounds.test.ts',
  'import/wire.test.ts',
  'price/',
  'replicas/',
  'request/foreign-text.test.ts',
  'shipping/',
];

/** Whether a test file, a path below `test/`, runs with every change. */
export function runsWithEveryChange(file: string): boolean {
  return !onlyInWhole.some((path) => (path.endsWith('/') ? file.startsWith(path) : file === path));
}

/** For tests that must hold on either engine and rarely differ: with every change they run on one. */
export const engines: readonly Engine[] = isWhole ? ['sqlite', 'postgres'] : ['sqlite'];

/** How often a property is tried, of which `whole` tries find what fewer do not. */
export function tries(whole: number): number {
  return isWhole ? whole : Math.ceil(whole / 10);
}
