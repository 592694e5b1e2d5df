/**
 * Profiles a tools/call: runs the service under load with the V8 profiler and lists functions by time.
 * Usage: node bench/profile.ts [1k|20k|20k-array] [seconds] [--smallest]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadGenerator } from './load.ts';
import { cores, node, pinSelf, root, startChild, stopAll } from './processes.ts';
import { warmUp } from './rounds.ts';
import { fullSize, smallestSize } from './sizes.ts';
import { mcpTarget, slugs, startService, toolName } from './toolhost-process.ts';

type Frame = { functionName: string; url: string; lineNumber: number };
type Node = { id: number; callFrame: Frame; children?: number[] };
type Profile = { nodes: Node[]; startTime: number; samples: number[]; timeDeltas: number[] };

const idleFrames = new Set(['(root)', '(idle)']);
const { values: options, positionals } = parseArgs({
  options: { smallest: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [bytes = '1k', seconds = '8'] = positionals;
const { warmUpCalls } = options.smallest ? smallestSize : fullSize;

/** Returns self times by node ID, from the samples between two times in µs of the monotonic clock. */
function selfTimes(profile: Profile, from: number, to: number): Map<number, number> {
  const times = new Map<number, number>();
  let at = profile.startTime;
  for (const [i, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    if (at >= from && at <= to) times.set(id, (times.get(id) ?? 0) + delta);
  }
  return times;
}

function sourceLocation({ url, lineNumber }: Frame): string {
  const shortPath = url.replace(`file://${root}/`, '').replace(/^.*node_modules\//, '');
  return shortPath ? `${shortPath}:${lineNumber + 1}` : '';
}

function add(sums: Map<string, number>, key: string, time: number): void {
  sums.set(key, (sums.get(key) ?? 0) + time);
}

/** Prints functions and files by self time, and the functions of this repository by total time. */
function printProfile(profile: Profile, from: number, to: number): void {
  const times = selfTimes(profile, from, to);
  const byId = new Map(profile.nodes.map((entry) => [entry.id, entry]));
  const self = new Map<string, number>();
  const files = new Map<string, number>();
  const inclusive = new Map<string, number>();
  let busy = 0;

  /** Walks the tree. `open` contains the calling functions, so that recursion counts once. */
  function walk(entry: Node, open: readonly string[]): number {
    const { callFrame } = entry;
    const selfTime = idleFrames.has(callFrame.functionName) ? 0 : (times.get(entry.id) ?? 0);
    const label = `${callFrame.functionName || '(anonymous)'} ${sourceLocation(callFrame)}`;
    busy += selfTime;
    add(self, label, selfTime);
    add(files, sourceLocation(callFrame).replace(/:\d+$/, '') || callFrame.functionName, selfTime);
    let sum = selfTime;
    for (const child of entry.children ?? []) sum += walk(byId.get(child) as Node, [...open, label]);
    if (!open.includes(label)) add(inclusive, label, sum);
    return sum;
  }

  walk(profile.nodes[0] as Node, []);
  const print = (title: string, sums: Map<string, number>, count: number) => {
    console.log(`\n${title}`);
    const sorted = [...sums].sort(([, a], [, b]) => b - a).slice(0, count);
    for (const [label, time] of sorted) console.log(`${((100 * time) / busy).toFixed(1).padStart(6)} %  ${label}`);
  };
  print('self time, by function', self, 45);
  print('self time, by file', files, 30);
  print(
    'total time, by function of this repository',
    new Map([...inclusive].filter(([label]) => / (?:apps|packages)\//.test(label))),
    40,
  );
}

/** Matches the profile of the main thread: `CPU.{date}.{time}.{pid}.{thread}.{number}.cpuprofile`. */
const mainThread = /\.0\.\d+\.cpuprofile$/;
const monotonicUs = () => Number(process.hrtime.bigint() / 1000n);
const folder = mkdtempSync(join(tmpdir(), 'toolhost-profile-'));
try {
  pinSelf();
  const upstream = await startChild([node, join(import.meta.dirname, 'upstream.ts')], {
    core: cores.load,
    ready: /^ready (\S+)$/m,
  });
  // bin/toolhost adds its own Node flags.
  const profiledCommand = [
    'env',
    `NODE_OPTIONS=--cpu-prof --cpu-prof-dir=${folder}`,
    join(root, 'bin', 'toolhost'),
    'serve',
  ];
  const service = await startService({ dataDir: join(folder, 'data'), upstream: upstream.ready }, profiledCommand);
  const params = { name: toolName(bytes), arguments: { id: '7', limit: 20, status: 'active' } };
  const target = mcpTarget(service, slugs.keyed, service.key, 'tools/call', params);
  const load = loadGenerator(Number(seconds));
  await warmUp({ name: toolName(bytes), target }, load, { warmUpCalls, seconds: 1 });
  const from = monotonicUs();
  const { calls, seconds: elapsedSeconds } = await load.run(target, Number(seconds));
  const to = monotonicUs();
  await service.child.stop();
  const file = readdirSync(folder).find((name) => mainThread.test(name)) ?? '';
  console.log(`${Math.round(calls / elapsedSeconds)} calls/s under the profiler`);
  printProfile(JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile, from, to);
} finally {
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
