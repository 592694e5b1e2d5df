import { fork } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../files.ts';
import type { RequestCounts } from './count-requests.ts';

/** Measured number that may only decrease. */
export type Measure = { name: string; now: number; budget: number };

type Budgets = { [name: string]: number };

const file = join(root, 'test', 'yardstick.json');

/** Measures the cost of reading the code: how much of it a request executes, and how many lines it has. */
export async function measureAll(): Promise<Measure[]> {
  const budgets = JSON.parse(readFileSync(file, 'utf8')) as Budgets;
  const lines: [string, number][] = ['packages', 'apps/server', 'apps/cli', 'apps/dashboard/src'].map((folder) => [
    `lines of ${folder}`,
    countLines(`${folder}/**/*.{ts,tsx}`, { exclude: ['**/*.test.ts'] }),
  ]);
  const testLines = countLines('test/**/*.ts') + countLines('{packages,apps}/**/*.test.ts');
  const numbers = [
    ...Object.entries(await countRequests()).flatMap(([name, { files, functions }]): [string, number][] => [
      [`${name}: files`, files],
      [`${name}: functions`, functions],
    ]),
    ...lines,
    ['lines of test', testLines] as const,
  ];
  return numbers.map(([name, now]) => ({ name, now, budget: budgets[name] ?? 0 }));
}

async function countRequests(): Promise<RequestCounts> {
  // Isolates the counts from the environment, the flags, and the compile cache of this process.
  const child = fork(join(import.meta.dirname, 'count-requests.ts'), {
    env: {},
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let counts: RequestCounts | undefined;
  child.on('message', (message) => {
    counts = message as RequestCounts;
  });
  const [code] = await once(child, 'close');
  if (counts === undefined) throw new Error(`count-requests.ts exited with ${code} and reported no counts`);
  return counts;
}

/** Counts the lines of the files that match a pattern. All of them are in git; nothing is generated there. */
function countLines(pattern: string, { exclude = [] }: { exclude?: string[] } = {}): number {
  return globSync(pattern, { cwd: root, exclude: ['**/node_modules', ...exclude] })
    .map((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1)
    .reduce((sum, lines) => sum + lines, 0);
}

/** Returns a message for each number above its budget. */
export function describeOverruns(measures: readonly Measure[]): string[] {
  return measures
    .filter(({ now, budget }) => now > budget)
    .map(
      ({ name, now, budget }) =>
        `${name} rose from ${budget} to ${now}. Remove something else, or raise the budget in test/yardstick.json and give the reason in the commit.`,
    );
}

/** Maximum share by which a budget may exceed its number. A looser budget would let the code grow back. */
const maxSlack = 0.01;

export function isSlack({ now, budget }: Measure): boolean {
  return budget - now > budget * maxSlack;
}

/** Lowers the budgets to the measured numbers and raises none. */
export function lowerBudgets(measures: readonly Measure[]): void {
  const budgets: Budgets = Object.fromEntries(
    measures.map(({ name, now, budget }) => [name, Math.min(now, budget || now)]),
  );
  writeFileSync(file, `${JSON.stringify(budgets, undefined, 2)}\n`);
}
