import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator, Sample, Target } from './load.ts';
import { post } from './post.ts';
import { cpuMs, type Disturbance, residentMb, watchDisturbance } from './processes.ts';

/** Process under load, and the request that it receives. */
export type Contestant = {
  name: string;
  pid: number;
  target: Target;
  /** True if the process continues to work after its last response, as the service does with its call records. */
  settles: boolean;
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
  patientUntil: number;
};

/** Plan of a measurement. `patientMs` counts from the first round. */
export type Plan = WarmUp & Omit<RoundPlan, 'patientUntil'> & { rounds: number; patientMs: number };

/** Numbers of rounds that were repeated because other programs used the machine, and of disturbed rounds that count. */
export type Disturbed = { repeated: number; keptDisturbed: number };

export type Outcome = Disturbed & { rounds: Map<Contestant, Round[]> };

/** Maximum disturbance of a round, in cores. */
const tolerable: Disturbance = { others: 0.15, stolen: 0.5 };
const attempts = 3;
const quietMs = { look: 200, most: 5000 };
const settleMs = { least: 600, step: 100, most: 4000, idle: 20 };

/** Measures the contestants in rotation, A B C A B C, so that a slow minute of the machine affects all of them. */
export async function measure(contestants: Contestant[], load: LoadGenerator, plan: Plan): Promise<Outcome> {
  const outcome: Outcome = { rounds: new Map(), repeated: 0, keptDisturbed: 0 };
  for (const contestant of contestants) await warmUp(contestant, load, plan);
  const roundPlan: RoundPlan = { ...plan, patientUntil: performance.now() + plan.patientMs };
  for (let i = 0; i < plan.rounds; i++) {
    for (const contestant of contestants) {
      const round = await quietRound(contestant, load, roundPlan, outcome);
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
    const answered = sample.calls - sample.failures;
    if (answered <= 0 && ++refusals === attempts) throw failed(contestant, sample);
    if (answered <= 0) continue;
    if (sample.bytes < answered * bodyBytes)
      throw new Error(`${contestant.name}: ${sample.bytes} bytes in ${answered} responses, not ${bodyBytes} in each`);
    missing -= answered;
    // A cold contestant becomes faster, so its first second is not a forecast.
    seconds = Math.min(2 * seconds, Math.ceil((missing * sample.seconds) / answered));
  }
}

function failed({ name }: Pick<Contestant, 'name'>, { calls, failures }: Sample): Error {
  return new Error(`${name}: ${failures} of ${calls} calls failed`);
}

/**
 * Repeats a round that other programs disturbed, and returns the least disturbed one. Always repeats a round with too
 * many failed calls. @throws Error if every attempt had too many failed calls
 */
export async function quietRound(
  contestant: Contestant,
  load: LoadGenerator,
  plan: RoundPlan,
  disturbed: Disturbed,
): Promise<Round> {
  const isPatient = () => performance.now() < plan.patientUntil;
  let best: Round | undefined;
  let last: Round | undefined;
  for (let attempt = 0; attempt < attempts && (!best || isPatient()); attempt++) {
    if (last) disturbed.repeated++;
    await quietMoment(isPatient);
    last = await oneRound(contestant, load, plan.seconds);
    if (last.calls === 0 || last.failures > last.calls * plan.maxFailures) continue;
    if (!best || sum(last.disturbance) < sum(best.disturbance)) best = last;
    if (!isDisturbed(best.disturbance)) return best;
  }
  if (!best) throw failed(contestant, last as Round);
  disturbed.keptDisturbed++;
  return best;
}

const sum = ({ others, stolen }: Disturbance) => others + stolen;

function isDisturbed({ others, stolen }: Disturbance): boolean {
  return others > tolerable.others || stolen > tolerable.stolen;
}

/** Waits for a limited time until no other program uses the machine. */
async function quietMoment(isPatient: () => boolean): Promise<void> {
  for (let waited = 0; waited < quietMs.most && isPatient(); waited += quietMs.look) {
    const disturbance = watchDisturbance();
    await sleep(quietMs.look);
    if (!isDisturbed(disturbance())) return;
  }
}

async function oneRound({ pid, target, settles }: Contestant, load: LoadGenerator, seconds: number): Promise<Round> {
  const watched = watchDisturbance();
  const before = cpuMs(pid);
  const sample = await load.run(target, seconds);
  const disturbance = watched();
  const resident = residentMb(pid);
  if (settles) await settle(pid);
  const cpuUsPerCall = ((cpuMs(pid) - before) * 1000) / sample.calls;
  return { ...sample, cpuUsPerCall, residentMb: resident, disturbance };
}

/** Waits until the process is idle, so that work after the responses, such as writing records, counts with the calls. */
async function settle(pid: number): Promise<void> {
  await sleep(settleMs.least);
  for (let waited = settleMs.least; waited < settleMs.most; waited += settleMs.step) {
    const before = cpuMs(pid);
    await sleep(settleMs.step);
    if (cpuMs(pid) - before < settleMs.idle) return;
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
