import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator, Sample, Target } from './load.ts';
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

export type Plan = {
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
  /** After this time rounds start without waiting for a quiet moment, and none is repeated; on the clock of `performance.now()`. */
  patientUntil: number;
};

export type Outcome = { rounds: Map<Contestant, Round[]>; repeated: number; keptDisturbed: number };

/** A round with more than this, in cores, is thrown away. */
const tolerable: Disturbance = { others: 0.15, stolen: 0.5 };
/** Share of failures that a round may have: a service without processor time for a moment refuses some calls. */
const tolerableFailures = 0.01;
const attempts = 3;
const quietMs = { look: 200, most: 5000 };
const settleMs = { least: 600, step: 100, most: 4000, idle: 20 };

/** Measures every contestant in turn, A B C A B C, so that a slow minute of the machine affects all of them. */
export async function measure(contestants: Contestant[], load: LoadGenerator, plan: Plan): Promise<Outcome> {
  const outcome: Outcome = { rounds: new Map(), repeated: 0, keptDisturbed: 0 };
  for (const contestant of contestants) {
    const bytes = await checkAnswer(contestant);
    const { calls, bytes: got, failures } = await load.run(contestant.target, plan.warmUpSeconds);
    if (calls === 0 || failures > calls * tolerableFailures) throw failed(contestant, failures, calls);
    if (got / calls < bytes) throw new Error(`${contestant.name}: ${got / calls} bytes an answer, not ${bytes}`);
  }
  for (let i = 0; i < plan.rounds; i++) {
    for (const contestant of contestants) {
      const round = await quietRound(contestant, load, plan, outcome);
      if (round.failures > round.calls * tolerableFailures) throw failed(contestant, round.failures, round.calls);
      outcome.rounds.set(contestant, [...(outcome.rounds.get(contestant) ?? []), round]);
    }
    console.log(`round ${i + 1} of ${plan.rounds}`);
  }
  return outcome;
}

function failed({ name }: Contestant, failures: number, calls: number): Error {
  return new Error(`${name}: ${failures} of ${calls} answers failed`);
}

/** One answer in full, so that a fast failure is not taken for speed. Returns the size of its body. */
async function checkAnswer({ name, target }: Contestant): Promise<number> {
  const response = await fetch(target.url, { method: 'POST', headers: target.headers, body: target.body });
  const text = await response.text();
  if (response.status !== 200 || text.includes('"isError":true')) {
    throw new Error(`${name}: ${response.status} ${text.slice(0, 500)}`);
  }
  return Buffer.byteLength(text);
}

/** Repeats a round that was disturbed; the least disturbed one counts. */
async function quietRound(contestant: Contestant, load: LoadGenerator, plan: Plan, outcome: Outcome): Promise<Round> {
  const isPatient = () => performance.now() < plan.patientUntil;
  let best: Round | undefined;
  for (let attempt = 0; attempt < attempts && (!best || isPatient()); attempt++) {
    if (best) outcome.repeated++;
    await quietMoment(isPatient);
    const next = await oneRound(contestant, load, plan.seconds);
    if (!best || sum(next.disturbance) < sum(best.disturbance)) best = next;
    if (!isDisturbed(best.disturbance)) return best;
  }
  outcome.keptDisturbed++;
  return best as Round;
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
