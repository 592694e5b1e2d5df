/** Compares the start of the bundled program with that of a commit: CPU time, time, and idle memory, as ratios. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Checkout, checkOutCommit, checkOutWorkingTree } from './checkouts.ts';
import { cores, getCpuMs, getResidentMb, startChild } from './processes.ts';
import { computeRatio } from './ratio.ts';
import { formatTable, getMachineItems } from './report.ts';
import { median } from './rounds.ts';
import type { Size } from './sizes.ts';
import { ready } from './toolhost-process.ts';

const rows = [
  ['CPU time until ready', 'ms'],
  ['time until ready', 'ms'],
  ['resident memory, idle', 'MB'],
] as const;

/** One value of each row. */
type Start = readonly number[];

/** Returns the report as Markdown. Each round starts both programs, and every second one in the other order. */
export async function compareStarts(
  folder: string,
  commit: string,
  { rounds, idleMs }: Size['startComparison'],
): Promise<string> {
  const before = checkOutCommit(commit, join(folder, 'commit'));
  const after = checkOutWorkingTree(join(folder, 'tree'));
  const starts = new Map<Checkout, Start[]>([before, after].map((checkout) => [checkout, []]));
  for (const checkout of starts.keys()) {
    const bin = join(checkout.folder, 'node_modules', '.bin');
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
    execFileSync('npm', ['run', 'build'], { cwd: checkout.folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
    // Creates the database and fills the compile cache.
    await measureStart(checkout, 0);
  }
  for (let round = 0; round < rounds; round++) {
    for (const [checkout, list] of round % 2 === 0 ? starts : [...starts].toReversed())
      list.push(await measureStart(checkout, idleMs));
  }
  const lines = rows.map(([name, unit], row) => {
    const [baseline, changed] = [before, after].map((checkout) =>
      starts.get(checkout)?.map((start) => start[row] ?? 0),
    );
    const { ratio, low, high } = computeRatio(baseline ?? [], changed ?? []);
    const formatFigure = (values: readonly number[] = []) =>
      `${median(values).toFixed()} ${unit} (${Math.min(...values).toFixed()})`;
    const interval = `${low.toFixed(2)} to ${high.toFixed(2)}`;
    return [name, formatFigure(baseline), formatFigure(changed), ratio.toFixed(2), interval];
  });
  return [
    `# Start of ${after.name} against ${before.name}`,
    '',
    ...[...getMachineItems(), `${rounds} alternating starts each, memory after ${idleMs} ms`].map(
      (item) => `- ${item}`,
    ),
    '',
    formatTable(
      ['', `${before.name}, median (minimum)`, `${after.name}, median (minimum)`, 'ratio', 'interval'],
      lines,
    ),
    '',
  ].join('\n');
}

/** Starts the program of the package with the data and the compile cache of the checkout, and stops it. */
async function measureStart({ folder }: Checkout, idleMs: number): Promise<Start> {
  const env = {
    DATA_DIR: `${folder}-data`,
    NODE_COMPILE_CACHE: `${folder}-cache`,
    PORT: '0',
    DEMO: '0',
    LOG_LEVEL: 'warn',
  };
  const startedAt = performance.now();
  const program = [join(folder, 'node_modules', '.bin', 'node'), join(folder, 'bin', 'toolhost.js'), 'serve'];
  const child = await startChild(program, { core: cores.service, env, ready });
  const readyMs = performance.now() - startedAt;
  const cpuMs = getCpuMs(child.pid);
  await delay(idleMs);
  const residentMb = getResidentMb(child.pid);
  await child.stop();
  return [cpuMs, readyMs, residentMb];
}
