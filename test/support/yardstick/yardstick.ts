import { fork } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../files.ts';
import type { RequestCounts } from './count-requests.ts';

/** A number that may only fall. */
export type Measure = { name: string; now: number; budget: number };

type Budgets = { [name: string]: number };

const file = join(root, 'test', 'yardstick.json');

/** Measures what costs a reader of the code: how much of it a request runs, and how long it is. */
export async function measureAll(): Promise<Measure[]> {
  const budgets = JSON.parse(readFileSync(file, 'utf8')) as Budgets;
  const numbers = [
    ...Object.entries(await countRequests()).flatMap(([name, { files, functions }]): [string, number][] => [
      [`${name}: files`, files],
      [`${name}: functions`, functions],
    ]),
    ...['src', 'web/src', 'test'].map((folder): [string, number] => [`lines of ${folder}`, linesOf(folder)]),
  ];
  return numbers.map(([name, now]) => ({ name, now, budget: budgets[name] ?? 0 }));
}

async function countRequests(): Promise<RequestCounts> {
  // What counts does not depend on the settings of this process: its environment, its flags, a cache of compiled code.
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
  if (counts === undefined) throw new Error(`the count of the requests ended with ${code}`);
  return counts;
}

/** Ends of lines in the TypeScript files below a folder, which are those in git: nothing else is made there. */
function linesOf(folder: string): number {
  return globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root })
    .map((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1)
    .reduce((sum, lines) => sum + lines, 0);
}

/** What to do about each number that is above its budget. */
export function tooMuch(measures: readonly Measure[]): string[] {
  return measures
    .filter(({ now, budget }) => now > budget)
    .map(
      ({ name, now, budget }) =>
        `${name} rose from ${budget} to ${now}: remove something else, or raise the budget in test/yardstick.json and give the reason in the commit.`,
    );
}

/** A budget that is higher by more than this share no longer keeps anything from growing back. */
const mostSlack = 0.01;

export function isSlack({ now, budget }: Measure): boolean {
  return budget - now > budget * mostSlack;
}

/** Lowers the budgets to what is measured, and raises none. */
export function lowerBudgets(measures: readonly Measure[]): void {
  const budgets: Budgets = Object.fromEntries(
    measures.map(({ name, now, budget }) => [name, Math.min(now, budget || now)]),
  );
  writeFileSync(file, `${JSON.stringify(budgets, undefined, 2)}\n`);
}
