/**
 * Runs the real service in a separate process that watches its event loop. The parent process starts it and sends the
 * requests. Time is the CPU time of the thread, so other work on the machine affects neither the measured block nor the
 * unit.
 */
import { type Json, startToolhost } from './toolhost.ts';

export type Question =
  | { ask: 'start'; egress: number[]; env: Record<string, string> }
  | { ask: 'watch' }
  | { ask: 'report'; most: number }
  | { ask: 'key'; options: Json };

/**
 * `blockMs` is the longest time that the event loop was blocked since `watch`. `unitMs` is the time of one unit of
 * work, measured now if that could change the verdict.
 */
export type Reply = { url: string } | { key: string } | { blockMs: number; unitMs: number } | { watching: true };

const rows = Array.from({ length: 4000 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ['a', 'b'], price: i / 8 }));
const document = JSON.stringify(rows);
/**
 * Number of times that the document is parsed and serialized in 25 ms on the idle machine for which the bound was set.
 */
const rounds = 18;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function unitMs(): number {
  const took = Array.from({ length: 5 }, () => {
    const before = cpuMs();
    for (let i = 0; i < rounds; i++) JSON.stringify(JSON.parse(document));
    return cpuMs() - before;
  });
  return took.toSorted((a, b) => a - b)[2] as number;
}

let leastUnitMs = 0;

/** Returns an earlier, minimal measurement of the unit if the block is far below `maxUnits` units. */
function unitFor(block: number, most: number): number {
  if (leastUnitMs > 0 && block <= (most * leastUnitMs) / 2) return leastUnitMs;
  const measured = unitMs();
  leastUnitMs = leastUnitMs > 0 ? Math.min(leastUnitMs, measured) : measured;
  return measured;
}

/** Time between two checks of the clock, in ms: as often as a timer can run without using a whole core. */
const tickMs = 1;
let ticking: NodeJS.Timeout | undefined;
let last = 0;
let blockMs = 0;

function look(): void {
  const now = cpuMs();
  blockMs = Math.max(blockMs, now - last);
  last = now;
}

function tick(): void {
  look();
  ticking = setTimeout(tick, tickMs);
}

let toolhost: Awaited<ReturnType<typeof startToolhost>> | undefined;

async function answer(question: Question): Promise<Reply> {
  switch (question.ask) {
    case 'start':
      toolhost = await startToolhost({ egress: question.egress, env: question.env });
      return { url: toolhost.url };
    case 'key':
      if (!toolhost) throw new Error('start the service before creating a key');
      return { key: await toolhost.key(question.options) };
    case 'watch':
      blockMs = 0;
      last = cpuMs();
      ticking = setTimeout(tick, tickMs);
      return { watching: true };
    case 'report':
      clearTimeout(ticking);
      look();
      return { blockMs, unitMs: unitFor(blockMs, question.most) };
  }
}

process.on('message', (question: Question) => {
  void answer(question).then((reply) => process.send?.(reply));
});
process.on('disconnect', () => {
  void toolhost?.stop().then(() => process.exit(0));
});
