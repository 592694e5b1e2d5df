/** Measures how calls of a workspace slow down while ten clients repeat the slowest reports of a full workspace. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../src/store/db.ts';
import { loadGenerator } from './load.ts';
import { cores, cpuMs, node, startChild } from './processes.ts';
import type { FullStore } from './reports-store.ts';
import { type Asker, ask, type Slow } from './reports-walk.ts';
import { median, type Plan, warmUp } from './rounds.ts';
import { mcpTarget, slugs, startService, toolName } from './toolhost-process.ts';

export type BesideCalls = {
  engine: Engine;
  callsPerSecond: number;
  /** Median share of calls per second that is lost during reports, and median share of additional CPU time per call. */
  lostCalls: number;
  moreCpu: number;
  /** Numbers of reports that succeeded and of reports that the service rejected temporarily. */
  answered: number;
  refused: number;
};

export type LoadPlan = Omit<Plan, 'patientMs'>;

const clients = 10;

/** Alternates rounds with and without reports, so that a slow minute of the machine affects both. */
export async function measureBesideCalls(
  store: FullStore,
  asker: Asker,
  slowest: readonly Slow[],
  plan: LoadPlan,
): Promise<BesideCalls> {
  const upstream = await startChild([node, join(import.meta.dirname, 'upstream.ts')], {
    core: cores.load,
    ready: /^ready (\S+)$/m,
  });
  const { DATA_DIR: dataDir = '', DATABASE_URL: databaseUrl } = store.env;
  const service = await startService({ dataDir, databaseUrl, upstream: upstream.ready });
  const load = loadGenerator(plan.seconds);
  const call = { name: toolName('1k'), arguments: { id: '42', limit: 50, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', call);
  const count = { answered: 0, refused: 0 };
  const round = async (isBeside: boolean) => {
    const reporting = new AbortController();
    const repeated = isBeside
      ? Array.from({ length: clients }, (_, i) => repeat(service.url, asker, slowest.slice(i), reporting.signal))
      : [];
    const before = cpuMs(service.child.pid);
    const { calls, failures, ...sample } = await load.run(target, plan.seconds);
    const spent = cpuMs(service.child.pid) - before;
    reporting.abort();
    for (const { answered, refused } of await Promise.all(repeated)) {
      count.answered += answered;
      count.refused += refused;
    }
    if (failures > calls * plan.maxFailures)
      throw new Error(`${failures} of ${calls} calls failed ${isBeside ? 'during' : 'without'} reports`);
    return { callsPerSecond: calls / sample.seconds, cpuOfCall: spent / calls };
  };
  try {
    await warmUp({ name: 'calls during reports', target }, load, plan);
    const pairs: { without: Awaited<ReturnType<typeof round>>; beside: Awaited<ReturnType<typeof round>> }[] = [];
    for (let i = 0; i < plan.rounds; i++) {
      const first = await round(i % 2 === 0);
      const second = await round(i % 2 !== 0);
      pairs.push(i % 2 === 0 ? { beside: first, without: second } : { without: first, beside: second });
    }
    return {
      engine: store.engine,
      callsPerSecond: median(pairs.map(({ without }) => without.callsPerSecond)),
      lostCalls: 1 - median(pairs.map(({ without, beside }) => beside.callsPerSecond / without.callsPerSecond)),
      moreCpu: median(pairs.map(({ without, beside }) => beside.cpuOfCall / without.cpuOfCall)) - 1,
      ...count,
    };
  } finally {
    await service.child.stop();
    await upstream.stop();
  }
}

/** Runs one client that requests reports sequentially and pauses after a 429 as Retry-After says. */
async function repeat(url: string, asker: Asker, reports: readonly Slow[], signal: AbortSignal) {
  const count = { answered: 0, refused: 0 };
  for (let i = 0; !signal.aborted; i++) {
    const response = await ask(url, asker, (reports[i % reports.length] as Slow).request);
    await response.arrayBuffer();
    if (response.ok) count.answered++;
    else if (response.status === 429) {
      count.refused++;
      const pauseMs = Number(response.headers.get('retry-after') ?? 1) * 1000;
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    } else if (response.status !== 404) throw new Error(`A report failed with status ${response.status}.`);
  }
  return count;
}
