import type { LoadGenerator, Target } from './load.ts';
import { getChildPids, getCpuMs } from './processes.ts';
import { median, type Plan, warmUp } from './rounds.ts';
import { mcpTarget, type ServiceOptions, slugs, startService, toolName } from './toolhost-process.ts';

/**
 * Returns the CPU time per call with two workers, as a multiple of the CPU time with one worker. All workers share a core,
 * because the load and the upstream need the other one.
 */
export async function measureTwoWorkers(options: ServiceOptions, load: LoadGenerator, plan: Plan): Promise<number> {
  const oneWorker = await startWorkers(1, options);
  const twoWorkers = await startWorkers(2, options);
  for (const workers of [oneWorker, twoWorkers]) await warmUp(workers, load, plan);
  const ratios: number[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const [alone, shared] = [
      await measureCpuUsPerCall(oneWorker, load, plan),
      await measureCpuUsPerCall(twoWorkers, load, plan),
    ];
    ratios.push(shared / alone);
  }
  await Promise.all([oneWorker.stop(), twoWorkers.stop()]);
  return median(ratios);
}

type Workers = { name: string; pid: number; target: Target; stop: () => Promise<void> };

async function startWorkers(workers: number, options: ServiceOptions): Promise<Workers> {
  const service = await startService({ ...options, dataDir: `${options.dataDir}-${workers}`, workers });
  const params = { name: toolName('1k'), arguments: { id: '7', limit: 20, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', params);
  return { name: `${workers} workers`, pid: service.child.pid, target, stop: service.child.stop };
}

async function measureCpuUsPerCall({ pid, target }: Workers, load: LoadGenerator, { seconds }: Plan): Promise<number> {
  const readCpuMs = () => [pid, ...getChildPids(pid)].reduce((sum, childPid) => sum + getCpuMs(childPid), 0);
  const before = readCpuMs();
  const { calls } = await load.run(target, seconds);
  return ((readCpuMs() - before) * 1000) / calls;
}
