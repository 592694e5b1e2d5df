/**
 * Runs the test files whose names contain one of the given words, without the checks and without the rest:
 * `npm run test:one -- limits`. A word with a slash is a path, and options such as `--test-name-pattern=…` go on to Node.
 */
import { spawnSync } from 'node:child_process';
import { root, testFiles } from './files.ts';

const wanted = process.argv.slice(2);
const words = wanted.filter((word) => !word.startsWith('-'));
const options = wanted.filter((word) => word.startsWith('-'));
const files = testFiles().filter((path) => words.some((word) => path.includes(word)));

if (files.length === 0) {
  const found = words.length > 0 ? `no test file has ${words.map((word) => `"${word}"`).join(' or ')} in its path` : '';
  process.stderr.write(`${found || 'say which tests to run'}; for example: npm run test:one -- limits\n`);
  process.exit(2);
}
process.stderr.write(`${files.join('\n')}\n`);
const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
const failed = node('web/build.ts');
process.exit(failed || node('--test', '--test-isolation=none', '--test-reporter=spec', ...options, ...files));
