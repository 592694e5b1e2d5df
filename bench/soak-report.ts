import { formatTable, getMachineItems } from './report.ts';
import { median } from './rounds.ts';
import type { PhaseResult } from './soak-load.ts';

export type MemorySample = { minute: number; residentMb: number };
/** Result of a phase. `busyCores` is the CPU time of the service, in cores. */
export type Phase = PhaseResult & { busyCores: number };
type ResourceUsage = { residentMb: number; sockets: number };

export type SoakFacts = {
  minutes: number;
  workspaces: number;
  servers: number;
  callers: number;
  honestPerSecond: number;
  /** Attack loads with their rates per second. */
  attackLoads: readonly string[];
  attackTools: readonly string[];
  results: readonly Phase[];
  samples: readonly MemorySample[];
  before: ResourceUsage;
  maxSockets: number;
  after: ResourceUsage;
  /** Metrics of the service for pools and upstream connections at the end. */
  outboundAfter: readonly string[];
  isReady: boolean;
  /** Number of log lines of the service that cast doubt on the figures. */
  complaints: number;
};

/** Share of the first samples that the memory slope ignores, because a process with newly filled caches still grows. */
const settlingShare = 0.25;

/** Returns the complete report as Markdown. */
export function formatSoakReport(facts: SoakFacts): string {
  const load = [
    `${facts.servers} servers in ${facts.workspaces} workspaces, ${facts.callers} callers, half with an API key and half with their own token`,
    `${facts.honestPerSecond} calls/s of all workspaces except the adversarial one at all times; in every second phase also, per second: ${facts.attackLoads.join(', ')}`,
    `upstream behavior for the tool calls of the adversarial workspace: ${facts.attackTools.join(', ')}`,
  ];
  return [
    `# Soak: ${facts.minutes} minutes with an adversarial workspace`,
    [...getMachineItems(), ...load].map((item) => `- ${item}`).join('\n'),
    formatLatencyTable(facts),
    formatResourceTable(facts),
    formatSummary(facts),
  ].join('\n\n');
}

function formatLatencyTable({ results }: SoakFacts): string {
  const phases = (isAttack: boolean) => results.filter((result) => result.isAttack === isAttack);
  const line = (name: string, selected: readonly Phase[]) => [
    name,
    selected.reduce((sum, { honestCalls }) => sum + honestCalls, 0).toLocaleString('en'),
    String(selected.reduce((sum, { failures }) => sum + failures, 0)),
    median(selected.map(({ p50Ms }) => p50Ms)).toFixed(1),
    median(selected.map(({ p99Ms }) => p99Ms)).toFixed(1),
    Math.max(...selected.map(({ maxMs }) => maxMs)).toFixed(0),
    median(selected.map(({ directP99Ms }) => directP99Ms)).toFixed(1),
    median(selected.map(({ generatorLagP99Ms }) => generatorLagP99Ms)).toFixed(1),
    median(selected.map(({ busyCores }) => busyCores)).toFixed(2),
  ];
  const head = [
    'honest workspaces',
    'calls',
    'failed',
    'p50 ms',
    'p99 ms',
    'max ms',
    'direct upstream p99 ms',
    'load generator lag p99 ms',
    'CPU cores used by the service',
  ];
  return formatTable(head, [line('alone', phases(false)), line('during the attack', phases(true))]);
}

function formatResourceTable(facts: SoakFacts): string {
  const { before, after, samples, maxSockets } = facts;
  const settled = samples.slice(Math.floor(samples.length * settlingShare));
  const all = samples.map(({ residentMb }) => residentMb);
  const rows = [
    ['resident memory before the load', `${before.residentMb.toFixed(0)} MB`],
    ['peak resident memory', `${Math.max(...all).toFixed(0)} MB`],
    ['resident memory after the load', `${after.residentMb.toFixed(0)} MB`],
    ['memory slope, without the first quarter', `${getSlope(settled).toFixed(2)} MB per minute`],
    ['p99 ratio of honest calls, during the attack / alone (goal: ≤ 2)', getP99Ratio(facts).toFixed(2)],
    ['sockets before, maximum, after', `${before.sockets}, ${maxSockets}, ${after.sockets}`],
    ['upstream pools and connections after the load', facts.outboundAfter.join(', ')],
    ...formatResponseRows(facts),
  ];
  return formatTable(['measurement', 'figure'], rows);
}

/** Returns the median ratio over pairs of a phase without the attack and the next phase with it. */
function getP99Ratio({ results }: SoakFacts): number {
  const pairs = results.flatMap((result, n) => {
    const alone = results[n - 1];
    return result.isAttack && alone ? [result.p99Ms / alone.p99Ms] : [];
  });
  return median(pairs);
}

/** Returns one row per attack load. */
function formatResponseRows({ results }: SoakFacts): string[][] {
  const sums = new Map<string, Map<string, number>>();
  for (const [load, answers] of results.flatMap(({ attackResponses }) => Object.entries(attackResponses))) {
    const sum = sums.get(load) ?? new Map<string, number>();
    sums.set(load, sum);
    for (const [outcome, count] of Object.entries(answers)) sum.set(outcome, (sum.get(outcome) ?? 0) + count);
  }
  return [...sums].map(([load, answers]) => [
    `responses to ${load}`,
    [...answers].map(([outcome, count]) => `${count.toLocaleString('en')} × ${outcome}`).join(', '),
  ]);
}

/** Returns the slope by least squares, in MB per minute. */
function getSlope(samples: readonly MemorySample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const at = mean(samples.map(({ minute }) => minute));
  const level = mean(samples.map(({ residentMb }) => residentMb));
  let numerator = 0;
  let denominator = 0;
  for (const { minute, residentMb } of samples) {
    numerator += (minute - at) * (residentMb - level);
    denominator += (minute - at) ** 2;
  }
  return numerator / denominator;
}

function formatSummary({ isReady, complaints }: SoakFacts): string {
  const lines = [`After the load, the service ${isReady ? 'is' : 'is NOT'} ready.`];
  if (complaints > 0) lines.push(`Its log has ${complaints} lines that cast doubt on the figures.`);
  return `${lines.join('\n')}\n`;
}
