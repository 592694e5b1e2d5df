/** Measures how calls of a workspace slow down while ten clients repeat the slowest reports of a full workspace. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../apps/server/src/store/db.ts';
import { loadGenerator } from './load.ts';
import { cores, getCpuMs, node, startChild } from './processes.ts';
import type { FilledStore } from './reports-store.ts';
import { type Sender, type SlowRequest, sendRequest } from './reports-walk.ts';
import { median, type Plan, warmUp } from './rounds.ts';
import { mcpTarget, slugs, startService, toolName } from './toolhost-process.ts';

export type CallImpact = {
  engine: Engine;
  callsPerSecond: number;
  /** Median share of calls per second that is lost during reports, and median share of additional CPU time per call. */
  lostCallShare: number;
  addedCpuShare: number;
  /** Numbers of reports that succeeded and of reports that the service rejected temporarily. */
  succeeded: number;
  rejected: number;
};

export type LoadPlan = Omit<Plan, 'quietWaitMs'>;

const clients = 10;

/** Alternates rounds with and without reports, so that a slow minute of the machine affects both. */
export async function measureCallImpact(
  store: FilledStore,
  sender: Sender,
  slowest: readonly SlowRequest[],
  plan: LoadPlan,
): Promise<CallImpact> {
  const upstream = await startChild([node, join(import.meta.dirname, 'upstream.ts')], {
    core: cores.load,
    ready: /^ready (\S+)$/m,
  });
  const { DATA_DIR: dataDir = '', DATABASE_URL: databaseUrl } = store.env;
  const service = await startService({ dataDir, databaseUrl, upstream: upstream.ready });
  const load = loadGenerator(plan.seconds);
  const call = { name: toolName('1k'), arguments: { id: '42', limit: 50, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', call);
  const count = { succeeded: 0, rejected: 0 };
  const round = async (hasReports: boolean) => {
    const abortReports = new AbortController();
    const repeated = hasReports
      ? Array.from({ length: clients }, (_, i) =>
          repeatReports(service.url, sender, slowest.slice(i), abortReports.signal),
        )
      : [];
    const before = getCpuMs(service.child.pid);
    const { calls, failures, ...sample } = await load.run(target, plan.seconds);
    const usedCpuMs = getCpuMs(service.child.pid) - before;
    abortReports.abort();
    for (const { answered: succeeded, refused: rejected } of await Promise.all(repeated)) {
      count.succeeded += succeeded;
      count.rejected += rejected;
    }
    if (failures > calls * plan.maxFailures)
      throw new Error(`${failures} of ${calls} calls failed ${hasReports ? 'during' : 'without'} reports`);
    return { callsPerSecond: calls / sample.seconds, cpuMsPerCall: usedCpuMs / calls };
  };
  try {
    await warmUp({ name: 'calls during reports', target }, load, plan);
    const pairs: {
      withoutReports: Awaited<ReturnType<typeof round>>;
      withReports: Awaited<ReturnType<typeof round>>;
    }[] = [];
    for (let i = 0; i < plan.rounds; i++) {
      const first = await round(i % 2 === 0);
      const second = await round(i % 2 !== 0);
      pairs.push(
        i % 2 === 0 ? { withReports: first, withoutReports: second } : { withoutReports: first, withReports: second },
      );
    }
    return {
      engine: store.engine,
      callsPerSecond: median(pairs.map(({ withoutReports }) => withoutReports.callsPerSecond)),
      lostCallShare:
        1 -
        median(
          pairs.map(({ withoutReports, withReports }) => withReports.callsPerSecond / withoutReports.callsPerSecond),
        ),
      addedCpuShare:
        median(pairs.map(({ withoutReports, withReports }) => withReports.cpuMsPerCall / withoutReports.cpuMsPerCall)) -
        1,
      ...count,
    };
  } finally {
    await service.child.stop();
    await upstream.stop();
  }
}

/** Runs one client that requests reports sequentially and pauses after a 429 as Retry-After says. */
async function repeatReports(url: string, sender: Sender, reports: readonly SlowRequest[], signal: AbortSignal) {
  const count = { answered: 0, refused: 0 };
  for (let i = 0; !signal.aborted; i++) {
    const response = await sendRequest(url, sender, (reports[i % reports.length] as SlowRequest).request);
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
