import { machineItems, table } from './report.ts';
import { median } from './rounds.ts';
import type { PhaseResult } from './soak-load.ts';

export type MemorySample = { minute: number; residentMb: number };
/** `busy` is the processor time of the service, in cores. */
export type Phase = PhaseResult & { busy: number };
type Standing = { residentMb: number; sockets: number };

export type SoakFacts = {
  minutes: number;
  workspaces: number;
  servers: number;
  callers: number;
  honestPerSecond: number;
  /** Each hostile load with its rate a second. */
  hostileLoads: readonly string[];
  hostileTools: readonly string[];
  results: readonly Phase[];
  samples: readonly MemorySample[];
  before: Standing;
  mostSockets: number;
  after: Standing;
  /** The service's own metrics of pools and connections to upstreams at the end. */
  outboundAfter: readonly string[];
  isReady: boolean;
  /** Log lines of the service that make its figures doubtful. */
  complaints: number;
};

/** The memory of a process that has just filled its caches still grows. */
const settlingShare = 0.25;

/** The whole report as Markdown. */
export function soakText(facts: SoakFacts): string {
  const load = [
    `${facts.servers} servers in ${facts.workspaces} workspaces, ${facts.callers} callers, half with an API key and half with a token of their own`,
    `${facts.honestPerSecond} calls/s of all workspaces but the hostile one all the time; in every second phase also, a second: ${facts.hostileLoads.join(', ')}`,
    `what the tool calls of the hostile workspace get from their upstream: ${facts.hostileTools.join(', ')}`,
  ];
  return [
    `# Soak: ${facts.minutes} minutes with a hostile workspace`,
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
    'the others',
    'calls',
    'failed',
    'p50 ms',
    'p99 ms',
    'highest ms',
    'p99 ms of the upstream itself',
    'p99 lateness of the load ms',
    'cores busy in the service',
  ];
  return table(head, [line('alone', phases(false)), line('beside the hostile one', phases(true))]);
}

function standingTable(facts: SoakFacts): string {
  const { before, after, samples, mostSockets } = facts;
  const settled = samples.slice(Math.floor(samples.length * settlingShare));
  const all = samples.map(({ residentMb }) => residentMb);
  const rows = [
    ['resident memory before the load', `${before.residentMb.toFixed(0)} MB`],
    ['highest', `${Math.max(...all).toFixed(0)} MB`],
    ['after it', `${after.residentMb.toFixed(0)} MB`],
    ['slope of memory, without the first quarter', `${slope(settled).toFixed(2)} MB a minute`],
    ['p99 of the others, beside the hostile one / alone (goal: 2 at most)', p99Ratio(facts).toFixed(2)],
    ['sockets before, at most, after', `${before.sockets}, ${mostSockets}, ${after.sockets}`],
    ['pools and connections to upstreams, after', facts.outboundAfter.join(', ')],
    ...answersOf(facts),
  ];
  return table(['what', 'figure'], rows);
}

/** The median of pairs: a phase without the hostile workspace and the next one with it. */
function p99Ratio({ results }: SoakFacts): number {
  const pairs = results.flatMap((result, n) => {
    const alone = results[n - 1];
    return result.hostile && alone ? [result.p99Ms / alone.p99Ms] : [];
  });
  return median(pairs);
}

/** One row for each hostile load. */
function answersOf({ results }: SoakFacts): string[][] {
  const sums = new Map<string, Map<string, number>>();
  for (const [load, answers] of results.flatMap(({ hostileAnswers }) => Object.entries(hostileAnswers))) {
    const sum = sums.get(load) ?? new Map<string, number>();
    sums.set(load, sum);
    for (const [what, count] of Object.entries(answers)) sum.set(what, (sum.get(what) ?? 0) + count);
  }
  return [...sums].map(([load, answers]) => [
    `what ${load} got`,
    [...answers].map(([what, count]) => `${count.toLocaleString('en')} × ${what}`).join(', '),
  ]);
}

/** Least squares, in MB a minute. */
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
  const lines = [`Afterwards the service ${isReady ? 'is' : 'is NOT'} ready.`];
  if (complaints > 0) lines.push(`It complained in its log ${complaints} times.`);
  return `${lines.join('\n')}\n`;
}
