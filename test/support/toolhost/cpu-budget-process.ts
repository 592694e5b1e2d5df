/**
 * Runs the real service in a separate process that watches its event loop. The parent process starts it and sends the
 * requests. Time is the CPU time of the thread, so other work on the machine affects neither the measured block nor the
 * unit.
 */
import { setServiceFlags } from '../../../apps/server/src/process/engine-flags.ts';
import { type Json, startToolhost } from './toolhost.ts';

export type ProcessRequest =
  | { ask: 'start'; egress: number[]; env: Record<string, string> }
  | { ask: 'watch' }
  | { ask: 'report'; maxUnits: number }
  | { ask: 'key'; options: Json };

/**
 * `blockMs` is the longest time that the event loop was blocked since `watch`. `unitMs` is the time of one unit of
 * work, measured now if that could change the verdict.
 */
export type ProcessReply = { url: string } | { key: string } | { blockMs: number; unitMs: number } | { watching: true };

const documentRows = Array.from({ length: 4000 }, (_, i) => ({
  id: i,
  name: `row ${i}`,
  tags: ['a', 'b'],
  price: i / 8,
}));
const unitDocument = JSON.stringify(documentRows);
/**
 * Number of times that the document is parsed and serialized in 25 ms on the idle machine for which the bound was set.
 */
const roundsPerUnit = 18;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function measureUnitMs(): number {
  const durations = Array.from({ length: 5 }, () => {
    const before = cpuMs();
    for (let i = 0; i < roundsPerUnit; i++) JSON.stringify(JSON.parse(unitDocument));
    return cpuMs() - before;
  });
  return durations.toSorted((a, b) => a - b)[2] as number;
}

let minUnitMs = 0;

/** Returns an earlier, minimal measurement of the unit if the block is far below `maxUnits` units. */
function getUnitMs(longestBlockMs: number, maxUnits: number): number {
  if (minUnitMs > 0 && longestBlockMs <= (maxUnits * minUnitMs) / 2) return minUnitMs;
  const measured = measureUnitMs();
  minUnitMs = minUnitMs > 0 ? Math.min(minUnitMs, measured) : measured;
  return measured;
}

/** Time between two checks of the clock, in ms: as often as a timer can run without using a whole core. */
const tickMs = 1;
let tickTimer: NodeJS.Timeout | undefined;
let lastCpuMs = 0;
let blockMs = 0;

function recordBlock(): void {
  const now = cpuMs();
  blockMs = Math.max(blockMs, now - lastCpuMs);
  lastCpuMs = now;
}

function tick(): void {
  recordBlock();
  tickTimer = setTimeout(tick, tickMs);
}

let toolhost: Awaited<ReturnType<typeof startToolhost>> | undefined;

async function handleRequest(request: ProcessRequest): Promise<ProcessReply> {
  switch (request.ask) {
    case 'start':
      toolhost = await startToolhost({ egressPorts: request.egress, env: request.env });
      setServiceFlags();
      return { url: toolhost.url };
    case 'key':
      if (!toolhost) throw new Error('start the service before creating a key');
      return { key: await toolhost.createKey(request.options) };
    case 'watch':
      blockMs = 0;
      lastCpuMs = cpuMs();
      tickTimer = setTimeout(tick, tickMs);
      return { watching: true };
    case 'report':
      clearTimeout(tickTimer);
      recordBlock();
      return { blockMs, unitMs: getUnitMs(blockMs, request.maxUnits) };
  }
}

process.on('message', (request: ProcessRequest) => {
  void handleRequest(request).then((reply) => process.send?.(reply));
});
process.on('disconnect', () => {
  void toolhost?.stop().then(() => process.exit(0));
});
