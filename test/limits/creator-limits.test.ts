import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { newWorkspaceId } from '@toolhost/credentials/ids';
import { ConcurrencyLimiter } from '@toolhost/limits/concurrency-limiter';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { MemoryBudget } from '@toolhost/limits/memory-budget';
import { createPreemptibleSlots } from '@toolhost/limits/preemptible-slots';
import { Limits } from '../../apps/server/src/gateway/limits/limits.ts';
import { ThreadPool } from '../../apps/server/src/threads/thread-pool.ts';

/** Requests units of a share alternately for these workspaces. Resolves with the number of granted units. */
type ClaimShare = (workspaceIds: readonly string[]) => Promise<number> | number;

const indexes = Array.from({ length: 20 }, (_, n) => n);
const alternate = (ids: readonly string[]) => indexes.map((n) => ids[n % ids.length] as string);
const pendingForever = () => new Promise<never>(() => undefined);

/** Returns how many runs a concurrency limiter has started. */
function countRuns(
  ids: readonly string[],
  options: Partial<ConstructorParameters<typeof ConcurrencyLimiter>[0]>,
): number {
  const limiter = new ConcurrencyLimiter({ rule: 'a rule', maxConcurrent: 12, ...options });
  for (const [n, workspaceId] of alternate(ids).entries())
    limiter.run({ workspaceId, id: `usr_${n}` }, pendingForever).catch(() => undefined);
  return limiter.getCounts().running;
}

const processShares: Record<string, ClaimShare> = {
  'concurrency limiter slots': (ids) => countRuns(ids, { maxQueued: 0 }),
  'concurrency limiter CPU time': (ids) => countRuns(ids, { maxConcurrent: 30, perTenant: 1, cpuShare: () => 0.1 }),
  'memory budget'(ids) {
    const budget = new MemoryBudget(12);
    return alternate(ids).filter((id) => budget.reserve(id).grow(1)).length;
  },
  'preemptible slots'(ids) {
    let startedCount = 0;
    const messages = { noSlotMessage: 'no room', evictedMessage: 'lost' };
    const limits = { perTenant: 3, total: 12 };
    const runInSlot = createPreemptibleSlots({ limits, minHoldMs: 1000, clock: () => 0, ...messages });
    const work = () => {
      startedCount++;
      return pendingForever();
    };
    for (const id of alternate(ids)) runInSlot(id, work).catch(() => undefined);
    return startedCount;
  },
  async 'thread pool queue'(ids) {
    const { threads, queue } = { threads: 1, queue: { perTenant: 4, total: 12 } };
    const ms = { longJobMs: 60_000, idleMs: 60_000, threadBytes: 64 * 1024 * 1024 };
    const pool = new ThreadPool({ threads, queue, ...ms, after: () => () => undefined });
    const job = { kind: 'check-arguments', input: { schema: '{}', args: '{}' } } as const;
    for (const workspaceId of alternate(ids))
      pool
        .run({ ...job, ownerId: workspaceId, times: { limitMs: 60_000, queueTimeoutMs: 60_000 } })
        .catch(() => undefined);
    const { running, waiting } = pool.getCounts();
    await pool.close();
    return running + waiting;
  },
  'fair cache entries'(ids) {
    const cache = createFairCache<{ owner: string }>({ max: 12, getOwner: ({ owner }) => owner });
    for (const n of [1, 2, 3]) cache.set(`kept ${n}`, { owner: 'another' });
    for (const [n, owner] of alternate(ids).entries()) cache.set(`${n}`, { owner });
    return cache.size();
  },
  async 'concurrent calls'(ids) {
    const limits = new Limits({ concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 10, capacity: 12 });
    const noLimits = { callsPerSecond: 0, concurrentCalls: 0 };
    const server = { limits: { server: noLimits, workspace: noLimits } };
    const anonymousCaller = { id: undefined, keyId: undefined, network: '198.51.100.1', isVerified: false };
    const admitted = alternate(ids).map(async (workspaceId) =>
      limits.enter({ ...server, id: `server of ${workspaceId}`, workspaceId }, anonymousCaller),
    );
    return (await Promise.allSettled(admitted)).filter(({ status }) => status === 'fulfilled').length;
  },
};

describe('[find A8] a process-wide share', () => {
  const random = (bytes: number) => randomBytes(bytes);
  const createWorkspaceIds = (creator: string) =>
    indexes.map(() => newWorkspaceId(random, `usr_${creator.repeat(22)}`));

  for (const [name, claim] of Object.entries(processShares)) {
    it(`is no larger for many workspaces of one creator than for one workspace: ${name}`, async () => {
      const [ada, bea, cleo] = ['a', 'b', 'c'].map(createWorkspaceIds) as [string[], string[], string[]];
      const forOne = await claim(ada.slice(0, 1));
      assert.equal(await claim(ada), forOne);
      const forSeveral = await claim([ada, bea, cleo].flatMap((ids) => ids.slice(0, 1)));
      assert.ok(forSeveral > forOne, `${forSeveral} for three creators, ${forOne} for one`);
    });
  }
});
