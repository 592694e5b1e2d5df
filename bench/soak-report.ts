import { machineItems, table } from './report.ts';
import { median } from './rounds.ts';
import type { PhaseResult } from './soak-load.ts';

export type MemorySample = { minute: number; residentMb: number };
/** Result of a phase. `busy` is the CPU time of the service, in cores. */
export type Phase = PhaseResult & { busy: number };
type Standing = { residentMb: number; sockets: number };

export type SoakFacts = {
  minutes: number;
  workspaces: number;
  servers: number;
  callers: number;
  honestPerSecond: number;
  /** Attack loads with their rates per second. */
  hostileLoads: readonly string[];
  hostileTools: readonly string[];
  results: readonly Phase[];
  samples: readonly MemorySample[];
  before: Standing;
  mostSockets: number;
  after: Standing;
  /** Metrics of the service for pools and upstream connections at the end. */
  outboundAfter: readonly string[];
  isReady: boolean;
  /** Number of log lines of the service that cast doubt on the figures. */
  complaints: number;
};

/** Share of the first samples that the memory slope ignores, because a process with newly filled caches still grows. */
const settlingShare = 0.25;

/** Returns the complete report as Markdown. */
export function soakText(facts: SoakFacts): string {
  const load = [
    `${facts.servers} servers in ${facts.workspaces} workspaces, ${facts.callers} callers, half with an API key and half with their own token`,
    `${facts.honestPerSecond} calls/s of all workspaces except the adversarial one at all times; in every second phase also, per second: ${facts.hostileLoads.join(', ')}`,
    `upstream behavior for the tool calls of the adversarial workspace: ${facts.hostileTools.join(', ')}`,
  ];
  return [
    `# Soak: ${facts.minutes} minutes with an adversarial workspace`,
    [...machineItems(), ...load].map((item) => `- ${item}`).join('\n'),
    latencyTable(facts),
    standingTable(facts),
    closing(facts),
  ].join('\n\n');
}

function latencyTable({ results }: SoakFacts): string {
  const phases = (hostile: boolean) => results.filter((result) => result.hostile === hostile);
  const line = (name: string, of: readonly Phase[]) => [
    name,
    of.reduce((sum, { honestCalls }) => sum + honestCalls, 0).toLocaleString('en'),
    String(of.reduce((sum, { failures }) => sum + failures, 0)),
    median(of.map(({ p50Ms }) => p50Ms)).toFixed(1),
    median(of.map(({ p99Ms }) => p99Ms)).toFixed(1),
    Math.max(...of.map(({ highestMs }) => highestMs)).toFixed(0),
    median(of.map(({ directP99Ms }) => directP99Ms)).toFixed(1),
    median(of.map(({ loadLagP99Ms }) => loadLagP99Ms)).toFixed(1),
    median(of.map(({ busy }) => busy)).toFixed(2),
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
  return table(head, [line('alone', phases(false)), line('during the attack', phases(true))]);
}

function standingTable(facts: SoakFacts): string {
  const { before, after, samples, mostSockets } = facts;
  const settled = samples.slice(Math.floor(samples.length * settlingShare));
  const all = samples.map(({ residentMb }) => residentMb);
  const rows = [
    ['resident memory before the load', `${before.residentMb.toFixed(0)} MB`],
    ['peak resident memory', `${Math.max(...all).toFixed(0)} MB`],
    ['resident memory after the load', `${after.residentMb.toFixed(0)} MB`],
    ['memory slope, without the first quarter', `${slope(settled).toFixed(2)} MB per minute`],
    ['p99 ratio of honest calls, during the attack / alone (goal: ≤ 2)', p99Ratio(facts).toFixed(2)],
    ['sockets before, maximum, after', `${before.sockets}, ${mostSockets}, ${after.sockets}`],
    ['upstream pools and connections after the load', facts.outboundAfter.join(', ')],
    ...answersOf(facts),
  ];
  return table(['measurement', 'figure'], rows);
}

/** Returns the median ratio over pairs of a phase without the attack and the next phase with it. */
function p99Ratio({ results }: SoakFacts): number {
  const pairs = results.flatMap((result, n) => {
    const alone = results[n - 1];
    return result.hostile && alone ? [result.p99Ms / alone.p99Ms] : [];
  });
  return median(pairs);
}

/** Returns one row per attack load. */
function answersOf({ results }: SoakFacts): string[][] {
  const sums = new Map<string, Map<string, number>>();
  for (const [load, answers] of results.flatMap(({ hostileAnswers }) => Object.entries(hostileAnswers))) {
    const sum = sums.get(load) ?? new Map<string, number>();
    sums.set(load, sum);
    for (const [what, count] of Object.entries(answers)) sum.set(what, (sum.get(what) ?? 0) + count);
  }
  return [...sums].map(([load, answers]) => [
    `responses to ${load}`,
    [...answers].map(([what, count]) => `${count.toLocaleString('en')} × ${what}`).join(', '),
  ]);
}

/** Returns the slope by least squares, in MB per minute. */
function slope(samples: readonly MemorySample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const at = mean(samples.map(({ minute }) => minute));
  const level = mean(samples.map(({ residentMb }) => residentMb));
  let above = 0;
  let below = 0;
  for (const { minute, residentMb } of samples) {
    above += (minute - at) * (residentMb - level);
    below += (minute - at) ** 2;
  }
  return above / below;
}

function closing({ isReady, complaints }: SoakFacts): string {
  const lines = [`After the load, the service ${isReady ? 'is' : 'is NOT'} ready.`];
  if (complaints > 0) lines.push(`Its log has ${complaints} lines that cast doubt on the figures.`);
  return `${lines.join('\n')}\n`;
}
