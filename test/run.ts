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
import type { RunnerMessage } from './run/reporter.ts';
import { endOfFile } from './run/worker.ts';
import { runsOnEveryChange } from './sets.ts';

/** Number of worker processes: tests mostly wait, so two processes keep a core busy. */
const workerCount = Math.min(2 * availableParallelism(), 8);
/** Time limit of a test, which then fails by name. A file that exceeds its limit fails with its process. */
const testTimeoutMs = 10 * 60_000;
const fileTimeoutMs = 2 * testTimeoutMs;

/** Stores the last duration of each file, in seconds. The slowest files start first, so none is left running at the end. */
const durationsFile = join(root, 'node_modules', '.cache', 'test-times.json');

type FileResult = { file: string; tests: number; failures: number; seconds: number };

const { values, positionals: pathFilters } = parseArgs({
  allowPositionals: true,
  options: { all: { type: 'boolean', default: false }, name: { type: 'string' } },
});
const isFullSuite = values.all || pathFilters.length > 0;
const files = testFiles().filter((file) =>
  pathFilters.length > 0 ? pathFilters.some((filter) => file.includes(filter)) : isFullSuite || runsOnEveryChange(file),
);
if (files.length === 0) {
  process.stderr.write(`No test file has ${pathFilters.map((filter) => `"${filter}"`).join(' or ')} in its path.\n`);
  process.exit(2);
}
process.exitCode = (await runAll(files)) ? 0 : 1;

async function runAll(selectedFiles: readonly string[]): Promise<boolean> {
  const durations = readDurations();
  // The duration of a file that never ran is estimated from its size.
  const getExpectedDuration = (file: string) => durations[file] ?? statSync(join(root, file)).size / 2_000;
  const queue = selectedFiles.toSorted((a, b) => getExpectedDuration(b) - getExpectedDuration(a));
  const startedAt = performance.now();
  const results: FileResult[] = [];
  const failed: string[] = [];
  let running = 0;

  const onFailure = (text: string) => {
    failed.push(text);
    process.stdout.write(text);
  };
  const runQueue = async () => {
    let worker: ChildProcess | undefined;
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      running++;
      worker ??= startWorker();
      const result = await runFile(worker, file, onFailure);
      running--;
      if (!worker.connected) worker = undefined;
      results.push(result);
      durations[file] = result.seconds;
      process.stdout.write(formatResult(result, queue.length + running));
    }
    worker?.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(workerCount, selectedFiles.length) }, runQueue));

  writeDurations(durations);
  process.stdout.write(failed.length > 0 ? `\nfailed:\n${failed.join('')}` : '');
  const tests = results.reduce((sum, end) => sum + end.tests, 0);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stdout.write(
    `\n${results.length} files in ${seconds} s\n${tests - failed.length} passed, ${failed.length} failed\n`,
  );
  return failed.length === 0 && tests > 0;
}

function startWorker(): ChildProcess {
  const names = values.name === undefined ? [] : [values.name, `^${endOfFile}$`];
  return fork(join(import.meta.dirname, 'run', 'worker.ts'), {
    cwd: root,
    execArgv: [
      `--test-reporter=${join(import.meta.dirname, 'run', 'reporter.ts')}`,
      `--test-timeout=${testTimeoutMs}`,
      ...names.map((name) => `--test-name-pattern=${name}`),
    ],
    // Shares the compile cache of bin/toolhost: all workers and the processes that tests start load the same sources.
    env: {
      NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'toolhost'),
      ...process.env,
      ...(isFullSuite && { TEST_SET: 'all' }),
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** Runs one file. Its output is shown when one of its tests fails, or immediately when files were named. */
function runFile(worker: ChildProcess, file: string, onFailure: (text: string) => void): Promise<FileResult> {
  const startedAt = performance.now();
  const outputChunks: Buffer[] = [];
  let failures = 0;
  const reportFailure = (name: string, reason: string) => {
    failures++;
    onFailure(`✖ ${file} › ${name}\n${indent(reason)}\n`);
  };
  return new Promise((resolve) => {
    const onOutput = (chunk: Buffer) =>
      void (pathFilters.length > 0 ? process.stdout.write(chunk) : outputChunks.push(chunk));
    const finish = (tests: number) => {
      clearTimeout(timer);
      worker.off('message', onMessage).off('close', onClose);
      for (const output of [worker.stdout, worker.stderr]) output?.off('data', onOutput);
      if (failures > 0 && outputChunks.length > 0) process.stdout.write(indent(Buffer.concat(outputChunks).toString()));
      resolve({ file, tests, failures, seconds: (performance.now() - startedAt) / 1000 });
    };
    const onMessage = (message: RunnerMessage) =>
      'failure' in message ? reportFailure(message.failure.name, message.failure.reason) : finish(message.tests);
    const onClose = (code: number | null, signal: string | null) => {
      reportFailure('the worker process exited', `exit ${code ?? signal}\n${Buffer.concat(outputChunks)}`);
      finish(1);
    };
    const timer = setTimeout(() => worker.kill('SIGKILL'), fileTimeoutMs);
    worker.on('message', onMessage).on('close', onClose);
    for (const output of [worker.stdout, worker.stderr]) output?.on('data', onOutput);
    worker.send(file);
  });
}

function formatResult({ file, tests, failures, seconds }: FileResult, remaining: number): string {
  const mark = failures > 0 ? '✖' : '✔';
  return `${mark} ${file.padEnd(68)} ${String(tests).padStart(4)} tests ${seconds.toFixed(1).padStart(6)} s, ${remaining} files left\n`;
}

function indent(text: string): string {
  return `${text.trimEnd().replaceAll(/^/gm, '    ')}\n`;
}

function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8')) as Record<string, number>;
  } catch {
    // No run has been recorded yet.
    return {};
  }
}

function writeDurations(durations: Record<string, number>): void {
  mkdirSync(dirname(durationsFile), { recursive: true });
  writeFileSync(durationsFile, JSON.stringify(durations));
}
