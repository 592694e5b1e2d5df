/**
 * The real service in a process of its own, which watches its event loop: `priced-toolhost.ts` starts it and asks.
 * Time is that of the thread's processor, so what else the machine does counts neither for a block nor for the unit.
 */
import { type Json, startToolhost } from './toolhost.ts';

export type Question =
  | { ask: 'start'; egress: number[]; env: Record<string, string> }
  | { ask: 'watch' }
  | { ask: 'report'; most: number }
  | { ask: 'key'; options: Json };

/**
 * `blockMs` is the longest that the loop was held since `watch`; `unitMs` is what the unit of work took, just now where
 * that could decide.
 */
export type Reply = { url: string } | { key: string } | { blockMs: number; unitMs: number } | { watching: true };

const rows = Array.from({ length: 4000 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ['a', 'b'], price: i / 8 }));
const document = JSON.stringify(rows);
/** So often the document is read and written in 25 ms on the idle machine for which the bound was set. */
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

/** The least unit that was measured earlier is enough where a block is far below `most` of it. */
function unitFor(block: number, most: number): number {
  if (leastUnitMs > 0 && block <= (most * leastUnitMs) / 2) return leastUnitMs;
  const measured = unitMs();
  leastUnitMs = leastUnitMs > 0 ? Math.min(leastUnitMs, measured) : measured;
  return measured;
}

/** Between two looks at the time, in ms: as often as a timer can, without using a whole core. */
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
      if (!toolhost) throw new Error('the service was not started');
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
