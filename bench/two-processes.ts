import type { LoadGenerator, Target } from './load.ts';
import { childPids, cpuMs } from './processes.ts';
import { median } from './rounds.ts';
import { mcpTarget, type ServiceOptions, slugs, startService, toolName } from './toolhost-process.ts';

const rounds = 5;
const seconds = 2;

/**
 * How many calls two processes on two cores make for one of a process on one, from the processor time of a call: load
 * and upstream need a core too, so on two cores the calls themselves cannot be counted.
 */
export async function measureTwoProcesses(options: ServiceOptions, load: LoadGenerator): Promise<number> {
  const one = await contestant({ ...options, dataDir: `${options.dataDir}-1`, workers: 1 });
  const two = await contestant({ ...options, dataDir: `${options.dataDir}-2`, workers: 2 });
  const ratios: number[] = [];
  for (const { target } of [one, two]) await load.run(target, seconds * 2);
  for (let round = 0; round < rounds; round++) {
    ratios.push((2 * (await cpuUsPerCall(one, load))) / (await cpuUsPerCall(two, load)));
  }
  await Promise.all([one.stop(), two.stop()]);
  return median(ratios);
}

type Processes = { pid: number; target: Target; stop: () => Promise<void> };

async function contestant(options: ServiceOptions): Promise<Processes> {
  const service = await startService(options);
  const params = { name: toolName('1k'), arguments: { id: '7', limit: 20, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', params);
  return { pid: service.child.pid, target, stop: service.child.stop };
}

async function cpuUsPerCall({ pid, target }: Processes, load: LoadGenerator): Promise<number> {
  const used = () => [pid, ...childPids(pid)].reduce((sum, each) => sum + cpuMs(each), 0);
  const before = used();
  const { calls } = await load.run(target, seconds);
  return ((used() - before) * 1000) / calls;
}
