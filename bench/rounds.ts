import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator, Sample, Target } from './load.ts';
import { post } from './post.ts';
import { cpuMs, type Disturbance, residentMb, watchDisturbance } from './processes.ts';

/** A process that is put under load, and the request that it gets. */
export type Contestant = {
  name: string;
  pid: number;
  target: Target;
  /** Whether it goes on working after its last answer, as the service does with its call records. */
  settles: boolean;
};

export type Round = Sample & { cpuUsPerCall: number; residentMb: number; disturbance: Disturbance };

export type WarmUp = {
  /** Calls to each contestant before its first round. */
  warmUpCalls: number;
  seconds: number;
};

export type RoundPlan = {
  seconds: number;
  /** Share of calls that may fail in a round. */
  maxFailures: number;
  /** After this time rounds start without waiting for a quiet moment, and none is repeated; on the clock of `performance.now()`. */
  patientUntil: number;
};

/** `patientMs` counts from the first round. */
export type Plan = WarmUp & Omit<RoundPlan, 'patientUntil'> & { rounds: number; patientMs: number };

/** Rounds that were repeated because others used the machine, and rounds that count although others did. */
export type Disturbed = { repeated: number; keptDisturbed: number };

export type Outcome = Disturbed & { rounds: Map<Contestant, Round[]> };

/** A round with more than this, in cores, is thrown away. */
const tolerable: Disturbance = { others: 0.15, stolen: 0.5 };
const attempts = 3;
const quietMs = { look: 200, most: 5000 };
const settleMs = { least: 600, step: 100, most: 4000, idle: 20 };

/** Measures every contestant in turn, A B C A B C, so that a slow minute of the machine affects all of them. */
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
 * Sends the calls that come before the first round. The first response is read in full and the sizes of the others are
 * compared with it, so that a fast failure is not taken for speed.
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
    // A contestant that is still cold becomes faster, so what its first second says is no forecast.
    seconds = Math.min(2 * seconds, Math.ceil((missing * sample.seconds) / answered));
  }
}

function failed({ name }: Pick<Contestant, 'name'>, { calls, failures }: Sample): Error {
  return new Error(`${name}: ${failures} of ${calls} calls failed`);
}

/**
 * Repeats a round that others on the machine disturbed, and counts the least disturbed one. Repeats a round in which
 * too many calls failed in any case. @throws Error when that was so each time
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

/** Waits a limited time while others use the machine. */
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

/** Work after the answers, such as writing records, is counted with the calls. */
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
