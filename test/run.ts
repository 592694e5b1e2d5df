/**
 * Runs test files in parallel worker processes and prints a summary line when each file ends:
 *
 * - `npm test` runs the tests that every change must pass.
 * - `npm run test:all` runs all tests.
 * - `npm run test:one -- limits` runs the files with "limits" in their path, from both sets.
 *   `--name=pattern` selects tests by name.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, testFiles } from './files.ts';
import type { Word } from './run/reporter.ts';
import { endOfFile } from './run/worker.ts';
import { runsWithEveryChange } from './sets.ts';

/** Number of worker processes: tests mostly wait, so two processes keep a core busy. */
const processes = Math.min(2 * availableParallelism(), 8);
/** Time limit of a test, which then fails by name. A file that exceeds its limit fails with its process. */
const testMs = 10 * 60_000;
const fileMs = 2 * testMs;

/** Stores the last duration of each file, in seconds. The slowest files start first, so none is left running at the end. */
const timesFile = join(root, 'node_modules', '.cache', 'test-times.json');

type Ended = { file: string; tests: number; failures: number; seconds: number };

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'boolean', default: false }, name: { type: 'string' } },
});
const isWhole = values.all || words.length > 0;
const files = testFiles().filter((file) =>
  words.length > 0 ? words.some((word) => file.includes(word)) : isWhole || runsWithEveryChange(file),
);
if (files.length === 0) {
  process.stderr.write(`No test file has ${words.map((word) => `"${word}"`).join(' or ')} in its path.\n`);
  process.exit(2);
}
process.exitCode = (await runAll(files)) ? 0 : 1;

async function runAll(wanted: readonly string[]): Promise<boolean> {
  const times = readTimes();
  // The duration of a file that never ran is estimated from its size.
  const expected = (file: string) => times[file] ?? statSync(join(root, 'test', file)).size / 2_000;
  const waiting = wanted.toSorted((a, b) => expected(b) - expected(a));
  const startedAt = performance.now();
  const ended: Ended[] = [];
  const failed: string[] = [];
  let running = 0;

  const onFailure = (text: string) => {
    failed.push(text);
    process.stdout.write(text);
  };
  const work = async () => {
    let worker: ChildProcess | undefined;
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      running++;
      worker ??= startWorker();
      const end = await runFile(worker, file, onFailure);
      running--;
      if (!worker.connected) worker = undefined;
      ended.push(end);
      times[file] = end.seconds;
      process.stdout.write(lineOf(end, waiting.length + running));
    }
    worker?.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(processes, wanted.length) }, work));

  writeTimes(times);
  process.stdout.write(failed.length > 0 ? `\nfailed:\n${failed.join('')}` : '');
  const tests = ended.reduce((sum, end) => sum + end.tests, 0);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stdout.write(
    `\n${ended.length} files in ${seconds} s\n${tests - failed.length} passed, ${failed.length} failed\n`,
  );
  return failed.length === 0 && tests > 0;
}

function startWorker(): ChildProcess {
  const names = values.name === undefined ? [] : [values.name, `^${endOfFile}$`];
  return fork(join(import.meta.dirname, 'run', 'worker.ts'), {
    cwd: root,
    execArgv: [
      `--test-reporter=${join(import.meta.dirname, 'run', 'reporter.ts')}`,
      `--test-timeout=${testMs}`,
      ...names.map((name) => `--test-name-pattern=${name}`),
    ],
    // Shares the compile cache of bin/toolhost: all workers and the processes that tests start load the same sources.
    env: {
      NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'toolhost'),
      ...process.env,
      ...(isWhole && { TEST_SET: 'all' }),
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** Runs one file. Its output is shown when one of its tests fails, or immediately when files were named. */
function runFile(worker: ChildProcess, file: string, onFailure: (text: string) => void): Promise<Ended> {
  const startedAt = performance.now();
  const printed: Buffer[] = [];
  let failures = 0;
  const fail = (name: string, reason: string) => {
    failures++;
    onFailure(`✖ ${file} › ${name}\n${indented(reason)}\n`);
  };
  return new Promise((resolve) => {
    const onPrinted = (chunk: Buffer) => void (words.length > 0 ? process.stdout.write(chunk) : printed.push(chunk));
    const end = (tests: number) => {
      clearTimeout(timer);
      worker.off('message', onWord).off('close', onClose);
      for (const output of [worker.stdout, worker.stderr]) output?.off('data', onPrinted);
      if (failures > 0 && printed.length > 0) process.stdout.write(indented(Buffer.concat(printed).toString()));
      resolve({ file, tests, failures, seconds: (performance.now() - startedAt) / 1000 });
    };
    const onWord = (word: Word) => ('failure' in word ? fail(word.failure.name, word.failure.reason) : end(word.tests));
    const onClose = (code: number | null, signal: string | null) => {
      fail('the worker process exited', `exit ${code ?? signal}\n${Buffer.concat(printed)}`);
      end(1);
    };
    const timer = setTimeout(() => worker.kill('SIGKILL'), fileMs);
    worker.on('message', onWord).on('close', onClose);
    for (const output of [worker.stdout, worker.stderr]) output?.on('data', onPrinted);
    worker.send(file);
  });
}

function lineOf({ file, tests, failures, seconds }: Ended, left: number): string {
  const mark = failures > 0 ? '✖' : '✔';
  return `${mark} ${file.padEnd(48)} ${String(tests).padStart(4)} tests ${seconds.toFixed(1).padStart(6)} s, ${left} files left\n`;
}

function indented(text: string): string {
  return `${text.trimEnd().replaceAll(/^/gm, '    ')}\n`;
}

function readTimes(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(timesFile, 'utf8')) as Record<string, number>;
  } catch {
    // No run has been recorded yet.
    return {};
  }
}

function writeTimes(times: Record<string, number>): void {
  mkdirSync(dirname(timesFile), { recursive: true });
  writeFileSync(timesFile, JSON.stringify(times));
}
