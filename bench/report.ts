import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Latency } from './latency.ts';
import { connections } from './load.ts';
import type { ManyServers } from './many-servers.ts';
import { cores, findProgram, isPinned, root } from './processes.ts';
import { type Contestant, median, type Outcome, type Plan, type Round } from './rounds.ts';

/** Line of the main table. The `service` rows of a group are compared with its `relay` and `nginx` rows. */
export type Row = Contestant & { group: string; role: 'service' | 'relay' | 'nginx'; goal: string };

/** Measurements outside the main table. */
export type Facts = {
  generator: string;
  plan: Plan;
  hasNginx: boolean;
  readyMs: number;
  createMs: number;
  idleMb: number;
  latency: Latency;
  /** CPU time per call with two workers, as a multiple of the CPU time with one worker. */
  twoWorkers: number;
  many: ManyServers;
  /** Number of log lines of the service that cast doubt on the figures. */
  complaints: number;
};

/** Returns the complete report as Markdown. */
export function formatReport(rows: readonly Row[], outcome: Outcome, facts: Facts): string {
  return [
    '# Figures',
    formatMachine(facts),
    formatMainTable(rows, outcome),
    formatDetailsTable(rows, outcome, facts),
    formatNotes(outcome, facts),
  ].join('\n\n');
}

/** Returns the date, machine, and versions of a report. */
export function getMachineItems(): string[] {
  const [cpu] = cpus();
  return [
    new Date().toISOString().slice(0, 16).replace('T', ' '),
    `${cpus().length} cores of ${cpu?.model ?? 'an unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}`,
    `Node ${process.versions.node}, Toolhost ${readVersion(root)} (${readCommit()}), undici ${readVersion(join(root, 'node_modules', 'undici'))}`,
    isPinned
      ? `pinned: measured process to core ${cores.service}, load and upstream to core ${cores.load}`
      : 'not pinned: taskset or a second core is missing, so the figures depend on the scheduler',
  ];
}

function formatMachine(facts: Facts): string {
  const { rounds, seconds, warmUpCalls } = facts.plan;
  const items = [
    ...getMachineItems(),
    `load: ${facts.generator}, ${connections} connections; reference: bench/relay.ts${facts.hasNginx ? ` and ${readNginxVersion()}` : '; without nginx, which is not installed'}`,
    `${rounds} interleaved rounds of ${seconds} s, after ${warmUpCalls.toLocaleString('en')} calls per row; every figure is the median of its rounds`,
  ];
  return items.map((item) => `- ${item}`).join('\n');
}

function formatMainTable(rows: readonly Row[], { rounds }: Outcome): string {
  const getRounds = (row: Row) => rounds.get(row) ?? [];
  const lines: string[][] = [];
  for (const row of rows) {
    const cpu = getMedian(getRounds(row), 'cpuUsPerCall');
    const ratio = (role: 'relay' | 'nginx') => {
      const reference = rows.find((candidate) => candidate.group === row.group && candidate.role === role);
      return reference && reference !== row ? getMedianRatio(getRounds(row), getRounds(reference)).toFixed(2) : '';
    };
    const all = getRounds(row).map((round) => round.cpuUsPerCall);
    lines.push([
      row.group,
      row.name,
      Math.round(median(getRounds(row).map(({ calls, seconds }) => calls / seconds))).toLocaleString('en'),
      cpu.toFixed(1),
      `${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)}`,
      ratio('relay'),
      ratio('nginx'),
      getMedian(getRounds(row), 'p50Ms').toFixed(2),
      getMedian(getRounds(row), 'p99Ms').toFixed(2),
      row.goal,
    ]);
  }
  const head = [
    'request',
    'contestant',
    'calls/s',
    'CPU µs per call',
    'range',
    '× relay',
    '× nginx',
    'p50 ms',
    'p99 ms',
    'goal',
  ];
  return formatTable(head, lines);
}

function formatDetailsTable(rows: readonly Row[], { rounds }: Outcome, facts: Facts): string {
  const highestMb = (role: Row['role']) =>
    Math.max(
      ...rows
        .filter((row) => row.role === role)
        .flatMap((row) => rounds.get(row) ?? [])
        .map((round) => round.residentMb),
    );
  const { latency, many } = facts;
  const ms = (value: number) => `${value.toFixed(2)} ms`;
  return formatTable(
    ['measurement', 'figure', 'goal'],
    [
      [
        `p99 at ${latency.perSecond.toLocaleString('en')} calls/s, half of the saturating rate, above the bare relay's`,
        `${ms(latency.serviceMs - latency.relayMs)} (${ms(latency.serviceMs)} and ${ms(latency.relayMs)})`,
        '≤ 2 ms',
      ],
      ['CPU per call with two workers', `${facts.twoWorkers.toFixed(2)} × one worker`, '≤ 1.05 × one worker'],
      [
        `memory growth after calls to more servers than the cache holds, of ${many.servers.toLocaleString('en')}`,
        `${many.addedMb.toFixed(0)} MB`,
        '≤ 100 MB',
      ],
      [
        'first call to one of them, above the second call',
        `${ms(many.coldMs - many.warmMs)} (${ms(many.coldMs)} and ${ms(many.warmMs)})`,
        '≤ 5 ms',
      ],
      ['resident memory, idle after start', `${facts.idleMb.toFixed(0)} MB`, '≤ 90 MB'],
      ['peak resident memory at the end of a round', `${highestMb('service').toFixed(0)} MB`, '≤ 200 MB'],
      ['peak resident memory of the bare relay', `${highestMb('relay').toFixed(0)} MB`, ''],
      ['create a server through the management server', `${facts.createMs.toFixed(1)} ms`, '≤ 10 ms'],
      ['ready after `bin/toolhost serve`, warm', `${facts.readyMs.toFixed(0)} ms`, '≤ 300 ms'],
    ],
  );
}

function formatNotes({ repeated, countedDisturbed }: Outcome, { complaints }: Facts): string {
  const lines = [
    `Rounds repeated because other programs used the CPU: ${repeated}. Disturbed rounds that count: ${countedDisturbed}.`,
  ];
  if (complaints > 0)
    lines.push(
      `The service dropped call records ${complaints} times because it received more calls than it can record.`,
    );
  return `${lines.join('\n')}\n`;
}

function getMedian(rounds: readonly Round[], figure: 'cpuUsPerCall' | 'p50Ms' | 'p99Ms'): number {
  return median(rounds.map((round) => round[figure]));
}

/** Compares round by round, because a slow minute of the machine affects both contestants. */
function getMedianRatio(rounds: readonly Round[], referenceRounds: readonly Round[]): number {
  return median(rounds.map((round, i) => round.cpuUsPerCall / (referenceRounds[i]?.cpuUsPerCall ?? Number.NaN)));
}

export function formatTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...lines.map(line)].join('\n');
}

function readVersion(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
}

function readCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const isChanged = git('status', '--porcelain', '--', 'apps', 'packages').trim() !== '';
    return git('rev-parse', '--short', 'HEAD').trim() + (isChanged ? ' with uncommitted changes' : '');
  } catch {
    return 'no commit';
  }
}

/** nginx writes its version to standard error. */
function readNginxVersion(): string {
  const nginx = findProgram('nginx') ?? 'nginx';
  return execFileSync('sh', ['-c', '"$0" -v 2>&1', nginx], { encoding: 'utf8' })
    .replace(/^.*nginx\//s, 'nginx ')
    .trim();
}
