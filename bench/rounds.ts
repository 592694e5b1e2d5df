import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadGenerator, Sample, Target } from './load.ts';
import { cpuMs, residentMb, watchOthers } from './processes.ts';

/** Something that is put under load: a process and the request it gets. */
export type Contestant = {
  name: string;
  pid: number;
  target: Target;
  /** Whether it goes on working after its last answer, as the service does with its call records. */
  settles: boolean;
};

export type Round = Sample & { cpuUsPerCall: number; residentMb: number; othersCores: number };

export type Plan = {
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
  /** No round is repeated after this, on the clock of `performance.now()`. */
  repeatUntil: number;
};

export type Outcome = { rounds: Map<Contestant, Round[]>; repeated: number; keptBusy: number };

/** More than this of one core used by others, and a round is thrown away. */
const busyCores = 0.15;
const attempts = 3;
const settleMs = { least: 600, step: 100, most: 4000, idle: 20 };

/** Measures every contestant in turn, A B C A B C, so that a slow minute of the machine meets all of them. */
export async function measure(contestants: Contestant[], load: LoadGenerator, plan: Plan): Promise<Outcome> {
  const outcome: Outcome = { rounds: new Map(), repeated: 0, keptBusy: 0 };
  for (const contestant of contestants) {
    const bytes = await checkAnswer(contestant);
    const { calls, bytes: got, failures } = await load.run(contestant.target, plan.warmUpSeconds);
    if (failures > 0 || calls === 0) throw new Error(`${contestant.name}: ${failures} of ${calls} answers failed`);
    if (got / calls < bytes) throw new Error(`${contestant.name}: ${got / calls} bytes an answer, not ${bytes}`);
  }
  for (let i = 0; i < plan.rounds; i++) {
    for (const contestant of contestants) {
      const round = await quietRound(contestant, load, plan, outcome);
      if (round.failures > 0) throw new Error(`${contestant.name}: ${round.failures} answers failed`);
      outcome.rounds.set(contestant, [...(outcome.rounds.get(contestant) ?? []), round]);
    }
    console.log(`round ${i + 1} of ${plan.rounds}`);
  }
  return outcome;
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

/** Repeats a round while the machine is busy; the least busy one counts. */
async function quietRound(contestant: Contestant, load: LoadGenerator, plan: Plan, outcome: Outcome): Promise<Round> {
  let best = await oneRound(contestant, load, plan.seconds);
  for (let attempt = 1; attempt < attempts && best.othersCores > busyCores; attempt++) {
    if (performance.now() > plan.repeatUntil) break;
    outcome.repeated++;
    const next = await oneRound(contestant, load, plan.seconds);
    if (next.othersCores < best.othersCores) best = next;
  }
  if (best.othersCores > busyCores) outcome.keptBusy++;
  return best;
}

async function oneRound({ pid, target, settles }: Contestant, load: LoadGenerator, seconds: number): Promise<Round> {
  const others = watchOthers();
  const before = cpuMs(pid);
  const sample = await load.run(target, seconds);
  const othersCores = others();
  const resident = residentMb(pid);
  if (settles) await settle(pid);
  const cpuUsPerCall = ((cpuMs(pid) - before) * 1000) / sample.calls;
  return { ...sample, cpuUsPerCall, residentMb: resident, othersCores };
}

/** What a process does after its answers, such as writing records, belongs to the calls. */
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
