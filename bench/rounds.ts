import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator, Sample, Target } from './load.ts';
import { post } from './post.ts';
import { type Disturbance, getCpuMs, getResidentMb, watchDisturbance } from './processes.ts';

/** Process under load, and the request that it receives. */
export type Contestant = {
  name: string;
  pid: number;
  target: Target;
  /** True if the process continues to work after its last response, as the service does with its call records. */
  hasWorkAfterResponse: boolean;
};

export type Round = Sample & { cpuUsPerCall: number; residentMb: number; disturbance: Disturbance };

export type WarmUp = {
  /** Number of calls to each contestant before its first round. */
  warmUpCalls: number;
  seconds: number;
};

export type RoundPlan = {
  seconds: number;
  /** Maximum share of failed calls in a round. */
  maxFailures: number;
  /** Time (`performance.now()`) after which rounds start without waiting for a quiet machine and are not repeated. */
  quietWaitUntil: number;
};

/** Plan of a measurement. `quietWaitMs` counts from the first round. */
export type Plan = WarmUp & Omit<RoundPlan, 'quietWaitUntil'> & { rounds: number; quietWaitMs: number };

/** Numbers of rounds that were repeated because other programs used the machine, and of disturbed rounds that count. */
export type Disturbed = { repeated: number; countedDisturbed: number };

export type Outcome = Disturbed & { rounds: Map<Contestant, Round[]> };

/** Maximum disturbance of a round, in cores. */
const maxDisturbance: Disturbance = { others: 0.15, stolen: 0.5 };
const maxAttempts = 3;
const quietMs = { interval: 200, max: 5000 };
const settleMs = { min: 600, step: 100, max: 4000, idle: 20 };

/** Measures the contestants in rotation, A B C A B C, so that a slow minute of the machine affects all of them. */
export async function measureRounds(contestants: Contestant[], load: LoadGenerator, plan: Plan): Promise<Outcome> {
  const outcome: Outcome = { rounds: new Map(), repeated: 0, countedDisturbed: 0 };
  for (const contestant of contestants) await warmUp(contestant, load, plan);
  const roundPlan: RoundPlan = { ...plan, quietWaitUntil: performance.now() + plan.quietWaitMs };
  for (let i = 0; i < plan.rounds; i++) {
    for (const contestant of contestants) {
      const round = await measureQuietRound(contestant, load, roundPlan, outcome);
      outcome.rounds.set(contestant, [...(outcome.rounds.get(contestant) ?? []), round]);
    }
    console.log(`round ${i + 1} of ${plan.rounds}`);
  }
  return outcome;
}

/**
 * Sends the calls before the first round. Compares the sizes of all responses with the first one, so that a fast failure
 * does not count as speed.
 */
export async function warmUp(contestant: Pick<Contestant, 'name' | 'target'>, load: LoadGenerator, plan: WarmUp) {
  const bodyBytes = Buffer.byteLength(await post(contestant.target));
  let seconds = plan.seconds;
  let refusals = 0;
  for (let missing = plan.warmUpCalls; missing > 0; ) {
    const sample = await load.run(contestant.target, seconds);
    const succeeded = sample.calls - sample.failures;
    if (succeeded <= 0 && ++refusals === maxAttempts) throw createFailure(contestant, sample);
    if (succeeded <= 0) continue;
    if (sample.bytes < succeeded * bodyBytes)
      throw new Error(`${contestant.name}: ${sample.bytes} bytes in ${succeeded} responses, not ${bodyBytes} in each`);
    missing -= succeeded;
    // A cold contestant becomes faster, so its first second is not a forecast.
    seconds = Math.min(2 * seconds, Math.ceil((missing * sample.seconds) / succeeded));
  }
}

function createFailure({ name }: Pick<Contestant, 'name'>, { calls, failures }: Sample): Error {
  return new Error(`${name}: ${failures} of ${calls} calls failed`);
}

/**
 * Repeats a round that other programs disturbed, and returns the least disturbed one. Always repeats a round with too
 * many failed calls. @throws Error if every attempt had too many failed calls
 */
export async function measureQuietRound(
  contestant: Contestant,
  load: LoadGenerator,
  plan: RoundPlan,
  disturbed: Disturbed,
): Promise<Round> {
  const canWait = () => performance.now() < plan.quietWaitUntil;
  let best: Round | undefined;
  let last: Round | undefined;
  for (let attempt = 0; attempt < maxAttempts && (!best || canWait()); attempt++) {
    if (last) disturbed.repeated++;
    await waitForQuiet(canWait);
    last = await measureRound(contestant, load, plan.seconds);
    if (last.calls === 0 || last.failures > last.calls * plan.maxFailures) continue;
    if (!best || sum(last.disturbance) < sum(best.disturbance)) best = last;
    if (!isDisturbed(best.disturbance)) return best;
  }
  if (!best) throw createFailure(contestant, last as Round);
  disturbed.countedDisturbed++;
  return best;
}

const sum = ({ others, stolen }: Disturbance) => others + stolen;

function isDisturbed({ others, stolen }: Disturbance): boolean {
  return others > maxDisturbance.others || stolen > maxDisturbance.stolen;
}

/** Waits for a limited time until no other program uses the machine. */
async function waitForQuiet(canWait: () => boolean): Promise<void> {
  for (let waited = 0; waited < quietMs.max && canWait(); waited += quietMs.interval) {
    const disturbance = watchDisturbance();
    await sleep(quietMs.interval);
    if (!isDisturbed(disturbance())) return;
  }
}

async function measureRound(
  { pid, target, hasWorkAfterResponse }: Contestant,
  load: LoadGenerator,
  seconds: number,
): Promise<Round> {
  const getDisturbance = watchDisturbance();
  const before = getCpuMs(pid);
  const sample = await load.run(target, seconds);
  const disturbance = getDisturbance();
  const resident = getResidentMb(pid);
  if (hasWorkAfterResponse) await waitUntilIdle(pid);
  const cpuUsPerCall = ((getCpuMs(pid) - before) * 1000) / sample.calls;
  return { ...sample, cpuUsPerCall, residentMb: resident, disturbance };
}

/** Waits until the process is idle, so that work after the responses, such as writing records, counts with the calls. */
async function waitUntilIdle(pid: number): Promise<void> {
  await sleep(settleMs.min);
  for (let waited = settleMs.min; waited < settleMs.max; waited += settleMs.step) {
    const before = getCpuMs(pid);
    await sleep(settleMs.step);
    if (getCpuMs(pid) - before < settleMs.idle) return;
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
