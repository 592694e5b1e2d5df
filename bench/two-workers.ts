import type { LoadGenerator, Target } from './load.ts';
import { childPids, cpuMs } from './processes.ts';
import { median, type Plan, warmUp } from './rounds.ts';
import { mcpTarget, type ServiceOptions, slugs, startService, toolName } from './toolhost-process.ts';

/**
 * Returns the CPU time per call with two workers, as a multiple of the CPU time with one worker. All workers share a core,
 * because the load and the upstream need the other one.
 */
export async function measureTwoWorkers(options: ServiceOptions, load: LoadGenerator, plan: Plan): Promise<number> {
  const one = await startWorkers(1, options);
  const two = await startWorkers(2, options);
  for (const workers of [one, two]) await warmUp(workers, load, plan);
  const ratios: number[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const [alone, shared] = [await cpuUsPerCall(one, load, plan), await cpuUsPerCall(two, load, plan)];
    ratios.push(shared / alone);
  }
  await Promise.all([one.stop(), two.stop()]);
  return median(ratios);
}

type Workers = { name: string; pid: number; target: Target; stop: () => Promise<void> };

async function startWorkers(workers: number, options: ServiceOptions): Promise<Workers> {
  const service = await startService({ ...options, dataDir: `${options.dataDir}-${workers}`, workers });
  const params = { name: toolName('1k'), arguments: { id: '7', limit: 20, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', params);
  return { name: `${workers} workers`, pid: service.child.pid, target, stop: service.child.stop };
}

async function cpuUsPerCall({ pid, target }: Workers, load: LoadGenerator, { seconds }: Plan): Promise<number> {
  const used = () => [pid, ...childPids(pid)].reduce((sum, each) => sum + cpuMs(each), 0);
  const before = used();
  const { calls } = await load.run(target, seconds);
  return ((used() - before) * 1000) / calls;
}
