/**
 * Generates the load of the soak: callers at a fixed rate, each with its own connection, and in some phases an
 * adversarial workspace. A latency starts when the call was due, so it includes pauses of the service.
 * Usage: node bench/soak-load.ts <file with a SoakJob>; prints one PhaseResult per line.
 */
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/** Request of the soak. Without a body it is a GET request. */
export type SoakCall = { path: string; headers: Record<string, string>; body?: string };

export type SoakJob = {
  port: number;
  honest: SoakCall[];
  /** Additional loads of the attack phases, each at its own rate. */
  attacks: { name: string; perSecond: number; calls: SoakCall[] }[];
  honestPerSecond: number;
  /** Direct requests to the upstream of the honest calls, which measure delays of the machine itself. */
  direct: { port: number; perSecond: number; path: string };
  phases: { isAttack: boolean; seconds: number }[];
};

export type PhaseResult = {
  isAttack: boolean;
  honestCalls: number;
  /** Number of honest calls with another response than that of their upstream, or with none seconds after the phase. */
  failures: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** 99th percentile of the direct requests to the upstream. */
  directP99Ms: number;
  /** 99th percentile of the event loop delay of this process. */
  generatorLagP99Ms: number;
  /** Number of responses to each attack load by HTTP status, with `tool error` for a 200 with isError. */
  attackResponses: Record<string, Record<string, number>>;
};

type CallResponse = { status: number; isToolError: boolean };

const tickMs = 5;
const drainTimeoutMs = 5000;
const maxPendingAttacks = 5000;
const job = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as SoakJob;
const agents = job.honest.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
const attackAgent = new Agent({ keepAlive: true });
const directAgent = new Agent({ keepAlive: true });

function post(call: SoakCall, agent: Agent, port = job.port): Promise<CallResponse> {
  return new Promise((resolve) => {
    const fail = () => resolve({ status: 0, isToolError: false });
    const { path, headers, body } = call;
    const method = body === undefined ? 'GET' : 'POST';
    const clientRequest = request({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
      readResponseEnd(response).then((responseEnd) => {
        resolve({ status: response.statusCode ?? 0, isToolError: responseEnd.includes('"isError":true') });
      }, fail);
    });
    clientRequest.on('error', fail);
    clientRequest.end(body);
  });
}

/** Reads a complete response and returns its end, which shows if the tool failed. */
async function readResponseEnd(response: IncomingMessage): Promise<string> {
  let tail = '';
  for await (const chunk of response) tail = (tail + (chunk as Buffer).toString('latin1')).slice(-2000);
  return tail;
}

/** Calls `send` at a fixed rate, with the time at which each call was due, until stopped. */
function sendAtRate(perSecond: number, send: (n: number, dueAt: number) => void): () => void {
  const startedAt = performance.now();
  let sentCount = 0;
  const timer = setInterval(() => {
    const dueCount = Math.floor(((performance.now() - startedAt) * perSecond) / 1000);
    for (; sentCount < dueCount; sentCount++) send(sentCount, startedAt + ((sentCount + 1) * 1000) / perSecond);
  }, tickMs);
  return () => clearInterval(timer);
}

async function runPhase(phase: SoakJob['phases'][number]): Promise<PhaseResult> {
  const times: number[] = [];
  const directTimes: number[] = [];
  const attackResponses: PhaseResult['attackResponses'] = {};
  const lag = monitorEventLoopDelay({ resolution: 1 });
  let failures = 0;
  let pendingCalls = 0;
  let pendingAttacks = 0;
  const honest = (n: number, dueAt: number) => {
    const index = n % job.honest.length;
    pendingCalls++;
    void post(job.honest[index] as SoakCall, agents[index] as Agent).then(({ status, isToolError }) => {
      pendingCalls--;
      times.push(performance.now() - dueAt);
      if (status !== 200 || isToolError) failures++;
    });
  };
  const direct = (_n: number, dueAt: number) => {
    const { path, port } = job.direct;
    void post({ path, headers: {} }, directAgent, port).then(() => directTimes.push(performance.now() - dueAt));
  };
  const startAttack = ({ name, calls }: SoakJob['attacks'][number]) => {
    const counts: Record<string, number> = {};
    attackResponses[name] = counts;
    return (n: number) => {
      // Stops flooding a service that does not respond, because the soak measures the effect on others.
      if (pendingAttacks > maxPendingAttacks) return;
      pendingAttacks++;
      void post(calls[n % calls.length] as SoakCall, attackAgent).then(({ status, isToolError }) => {
        pendingAttacks--;
        const outcome = isToolError ? 'tool error' : status === 0 ? 'no response' : String(status);
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      });
    };
  };
  lag.enable();
  const stops = [sendAtRate(job.honestPerSecond, honest), sendAtRate(job.direct.perSecond, direct)];
  if (phase.isAttack) for (const load of job.attacks) stops.push(sendAtRate(load.perSecond, startAttack(load)));
  await sleep(phase.seconds * 1000);
  for (const stop of stops) stop();
  lag.disable();
  for (let waited = 0; pendingCalls + pendingAttacks > 0 && waited < drainTimeoutMs; waited += 100) await sleep(100);
  return {
    isAttack: phase.isAttack,
    honestCalls: times.length,
    failures: failures + pendingCalls,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    maxMs: percentile(times, 1),
    directP99Ms: percentile(directTimes, 0.99),
    generatorLagP99Ms: lag.percentile(99) / 1e6,
    attackResponses,
  };
}

function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

console.log('ready');
for (const phase of job.phases) console.log(`phase ${JSON.stringify(await runPhase(phase))}`);
process.exit();
