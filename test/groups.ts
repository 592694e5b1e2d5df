import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { root } from './files.ts';

/** A group is large enough that its start costs little, and small enough that no core waits long at the end. */
const filesInGroup = 16;
const mostAtOnce = 4;

/** A test that waits for ever fails with its name, and what it has started does not keep its group from ending. */
const bounds = ['--test-timeout=600000', '--test-force-exit'];

type Ended = { files: readonly string[]; output: string; isPassed: boolean };

/**
 * Runs test files in processes of several files each, as many at once as there are cores. What a group says is shown
 * when it has ended, and its failures once more at the end. Gives the exit code.
 */
export async function runInGroups(files: readonly string[], options: readonly string[]): Promise<number> {
  const count = Math.ceil(files.length / filesInGroup);
  // Neighbours in the alphabet are alike, so each group gets some of each kind.
  const waiting = Array.from({ length: count }, (_, group) => files.filter((_file, index) => index % count === group));
  const ended: Ended[] = [];
  const work = async () => {
    for (let group = waiting.shift(); group; group = waiting.shift()) {
      const end = await runGroup(group, options);
      ended.push(end);
      process.stdout.write(withoutSums(end.output));
      process.stdout.write(`group ${ended.length} of ${count} ${end.isPassed ? 'passed' : 'FAILED'}\n`);
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), mostAtOnce) }, work));
  const failed = ended.filter(({ isPassed }) => !isPassed);
  for (const { output } of failed) process.stdout.write(failuresIn(output));
  process.stdout.write(sumsOf(ended, performance.now() - startedAt));
  return failed.length === 0 ? 0 : 1;
}

async function runGroup(files: readonly string[], options: readonly string[]): Promise<Ended> {
  const args = ['--test', '--test-isolation=none', '--test-reporter=spec', ...bounds, ...options, ...files];
  // Compiled code is kept as by bin/toolhost: each group, and each process that its tests start, loads the same sources.
  const env = { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'toolhost'), ...process.env };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const isPassed = new Promise<boolean>((resolve) => child.once('close', (code) => resolve(code === 0)));
  const output = await text(child.stdout);
  return { files, output, isPassed: await isPassed };
}

/** What failed and why, which the reporter lists at its end; everything where a group broke off before. */
function failuresIn(output: string): string {
  const from = output.lastIndexOf('✖ failing tests:');
  return from < 0 ? withoutSums(output) : output.slice(from);
}

const sumLine = /^ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)\n/gm;

function withoutSums(output: string): string {
  return output.replace(sumLine, '');
}

/** The sums of all groups, as the reporter writes those of one. */
function sumsOf(ended: readonly Ended[], ms: number): string {
  const sums = new Map<string, number>();
  for (const { output } of ended) {
    for (const [, name = '', value] of output.matchAll(sumLine)) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  sums.set('duration_ms', Math.round(ms));
  return [...sums].map(([name, value]) => `ℹ ${name} ${value}\n`).join('');
}
