/** Compares the working tree with a commit: CPU time per call and resident memory, as ratios. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Checkout, checkOutCommit, checkOutWorkingTree } from './checkouts.ts';
import { type LoadGenerator, loadGenerator } from './load.ts';
import { type Child, cores, node, startChild } from './processes.ts';
import { computeRatio } from './ratio.ts';
import { formatTable, getMachineItems } from './report.ts';
import {
  type Contestant,
  type Disturbed,
  measureQuietRound,
  median,
  type RoundPlan,
  type WarmUp,
  warmUp,
} from './rounds.ts';
import type { MeasuredService } from './service.ts';
import type { Size } from './sizes.ts';

type RowName = keyof MeasuredService['targets'];

const rows: readonly [RowName, string][] = [
  ['call_1kb_key', 'tools/call, 1 KB, API key'],
  ['call_1kb_token', "tools/call, 1 KB, caller's token"],
  ['call_20kb_key', 'tools/call, 20 KB, API key'],
  ['list_200_tools', 'tools/list, 200 tools'],
];
const memory = 'peak resident memory';

/** Checkout with its figures: one value per round for each row and for memory. */
type Side = { checkout: Checkout; cacheFolder: string; figures: Map<string, number[]> };
type Started = { side: Side; child: Child; service: MeasuredService };

/** Returns the report as Markdown. Each round restarts both services, because processes of the same code differ too. */
export async function compareWithCommit(folder: string, commit: string, size: Size): Promise<string> {
  const { minRounds, budgetMs, measurements, seconds, quietWaitMs } = size.against;
  if (!(Number.isInteger(minRounds) && minRounds >= 2)) throw new Error('--rounds requires an integer of at least 2');
  const sides = [
    toSide(checkOutCommit(commit, join(folder, 'commit'))),
    toSide(checkOutWorkingTree(join(folder, 'tree'))),
  ];
  const load = loadGenerator(seconds);
  const upstream = await startChild([node, join(import.meta.dirname, 'upstream.ts')], {
    core: cores.load,
    ready: /^ready (\S+)$/m,
  });
  const start = (round: number) =>
    Promise.all(sides.map((side) => startSide(side, upstream.ready, `${side.checkout.folder}-data-${round}`)));
  // Fills the compile caches, which are empty at the first start of a checkout.
  await stop(await start(0));
  const disturbed = { repeated: 0, countedDisturbed: 0 };
  let roundMs = 0;
  for (let round = 1; round <= minRounds || performance.now() + roundMs < budgetMs; round++) {
    const startedAt = performance.now();
    const started = await start(round);
    await warmUpAll(started, load, size);
    const plan: RoundPlan = { ...size, seconds, quietWaitUntil: performance.now() + quietWaitMs };
    await measureRound(started, load, plan, { measurements, round, disturbed });
    await stop(started);
    roundMs = performance.now() - startedAt;
    console.log(`round ${round} took ${Math.round(roundMs / 1000)} s`);
  }
  return formatReport(sides, load, size, disturbed);
}

const toSide = (checkout: Checkout): Side => ({
  checkout,
  cacheFolder: `${checkout.folder}-cache`,
  figures: new Map(),
});

/** Starts the service with the bench of its own checkout, which knows the names of its variables and fields. */
async function startSide(side: Side, upstream: string, dataDir: string): Promise<Started> {
  const { folder } = side.checkout;
  const serviceScript = join(folder, 'bench', 'service.ts');
  const script = existsSync(serviceScript) ? serviceScript : join(import.meta.dirname, 'service-of-48122a62.ts');
  const args = [upstream, dataDir, String(cores.service), folder];
  const env = { NODE_COMPILE_CACHE: side.cacheFolder };
  const child = await startChild([join(folder, 'node_modules', '.bin', 'node'), script, ...args], {
    core: cores.load,
    env,
    ready: /^(\{.*\})$/m,
  });
  return { side, child, service: JSON.parse(child.ready) as MeasuredService };
}

async function stop(started: readonly Started[]): Promise<void> {
  await Promise.all(started.map(({ child }) => child.stop()));
}

function toContestant({ side, service }: Started, row: RowName): Contestant {
  const { [row]: target } = service.targets;
  return { name: `${row} of ${side.checkout.name}`, pid: service.pid, target, hasWorkAfterResponse: true };
}

/** Splits the warm-up calls among the rows of each process, because the rows share most of their code. */
async function warmUpAll(started: readonly Started[], load: LoadGenerator, size: Size): Promise<void> {
  const plan: WarmUp = { warmUpCalls: Math.ceil(size.warmUpCalls / rows.length), seconds: size.against.seconds };
  for (const [row] of rows) {
    for (const each of started) await warmUp(toContestant(each, row), load, plan);
  }
}

/** Measures each row of both services in the order A B B A, starting with the other service in every second round. */
async function measureRound(
  started: readonly Started[],
  load: LoadGenerator,
  plan: RoundPlan,
  { measurements, round, disturbed }: { measurements: number; round: number; disturbed: Disturbed },
): Promise<void> {
  const megabytes = new Map<Side, number>();
  for (const [row] of rows) {
    const usage = new Map<Side, { us: number; calls: number }>();
    for (let n = 0; n < measurements; n++) {
      for (const each of (round + n) % 2 === 0 ? started : started.toReversed()) {
        const sample = await measureQuietRound(toContestant(each, row), load, plan, disturbed);
        const { us, calls } = usage.get(each.side) ?? { us: 0, calls: 0 };
        usage.set(each.side, { us: us + sample.cpuUsPerCall * sample.calls, calls: calls + sample.calls });
        megabytes.set(each.side, Math.max(megabytes.get(each.side) ?? 0, sample.residentMb));
      }
    }
    for (const [{ figures }, { us, calls }] of usage) add(figures, row, us / calls);
  }
  for (const [{ figures }, value] of megabytes) add(figures, memory, value);
}

function add(figures: Side['figures'], row: string, value: number): void {
  figures.set(row, [...(figures.get(row) ?? []), value]);
}

function formatReport(
  sides: readonly Side[],
  load: LoadGenerator,
  { warmUpCalls, against: { measurements, seconds } }: Size,
  disturbed: Disturbed,
): string {
  const [before, after] = sides as [Side, Side];
  const formatLine = (row: string, name: string, unit: string) => {
    const [baseline, changed] = [before, after].map(({ figures }) => figures.get(row) ?? []) as [number[], number[]];
    const { ratio, low, high } = computeRatio(baseline, changed);
    const formatFigure = (values: readonly number[]) => `${median(values).toFixed(unit === 'MB' ? 0 : 1)} ${unit}`;
    return [
      name,
      formatFigure(baseline),
      formatFigure(changed),
      ratio.toFixed(2),
      `${low.toFixed(2)} to ${high.toFixed(2)}`,
    ];
  };
  const rounds = before.figures.get(memory)?.length ?? 0;
  const items = [
    ...getMachineItems(),
    `load: ${load.name}; ${rounds} rounds, each restarts both services, sends ${warmUpCalls.toLocaleString('en')} calls to each, and then alternates ${measurements} × ${seconds} s per row`,
    'CPU time per call and its ratio; the intervals cover all ratios together with 90% confidence',
  ];
  return [
    `# Working tree against ${before.checkout.name}`,
    items.map((item) => `- ${item}`).join('\n'),
    formatTable(
      ['measurement', before.checkout.name, after.checkout.name, 'ratio', '90% interval'],
      [...rows.map(([row, name]) => formatLine(row, name, 'µs')), formatLine(memory, memory, 'MB')],
    ),
    `Measurements repeated because other programs used the CPU: ${disturbed.repeated}. Disturbed measurements that count: ${disturbed.countedDisturbed}.\n`,
  ].join('\n\n');
}
