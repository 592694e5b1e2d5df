import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { setImmediate as eventsArrived } from 'node:timers/promises';
import { newWorkspaceId } from '@toolhost/credentials/ids';
import { ConcurrencyLimiter } from '@toolhost/limits/concurrency-limiter';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { MemoryBudget } from '@toolhost/limits/memory-budget';
import { createPreemptibleSlots } from '@toolhost/limits/preemptible-slots';
import { createLookups } from '@toolhost/safe-http/lookups';
import fc from 'fast-check';
import { assertAlways, assertAlwaysSync } from '../../../../../test/support/properties.ts';
import { runFairly } from '../../app/leader-jobs/run-fairly.ts';
import { createReturnLimit } from '../../edge/address-limit.ts';
import { ThreadPool } from '../../threads/thread-pool.ts';
import { Limits } from './limits.ts';

/** A limited resource: how many units exist, and how many of them one tenant may use. */
type Capacity = { total: number; perTenant: number };

/** A request for `amount` units by one of a tenant's callers, in one of the tenant's workspaces. */
type Claim = { tenant: number; workspace: number; caller: number; amount: number };

/** Returns the units to the limiter. */
type Release = () => Promise<unknown> | undefined;

/** Grants a claim, or returns undefined. */
type Grant = (claim: Claim) => Release | undefined;

/** A limiter, and the rule that decides what it grants to a claim while others are granted. */
type LimiterCase = {
  create(capacity: Capacity): { grant: Grant; close?: () => Promise<void> };
  allows(claim: Claim, granted: readonly Claim[], capacity: Capacity): boolean;
  /** Largest amount of a claim. Defaults to 1. */
  maxAmount?: number;
  /** True if a granted claim cannot be released, because it is queued. */
  isQueue?: boolean;
  /** Number of runs in the full set of tests. Defaults to 1000. */
  runs?: number;
};

const tenantCount = 5;
const workspaceIds = Array.from({ length: tenantCount }, (_, tenant) => {
  const creatorId = `usr_${String(tenant).repeat(22)}`;
  return [newWorkspaceId(randomBytes, creatorId), newWorkspaceId(randomBytes, creatorId)];
});
const getWorkspaceId = ({ tenant, workspace }: Claim) => (workspaceIds[tenant] as string[])[workspace] as string;
/** Callers of a tenant with an odd number are unverified. */
const isUnverified = ({ caller }: Claim) => caller % 2 === 1;

const sum = (claims: readonly Claim[]) => claims.reduce((total, { amount }) => total + amount, 0);
const ofTenant = (claims: readonly Claim[], { tenant }: Claim) => claims.filter((claim) => claim.tenant === tenant);
const ofCaller = (claims: readonly Claim[], { tenant, caller }: Claim) =>
  claims.filter((claim) => claim.tenant === tenant && claim.caller === caller);

/** Half of what the others leave, rounded up. */
const halfOfLeft = (total: number, usedByOthers: number) => Math.ceil((total - usedByOthers) / 2);

/** A tenant gets half of what the others leave, and one of its callers half of what its other callers leave of that. */
function allowsHalf(claim: Claim, granted: readonly Claim[], { total, perTenant }: Capacity): boolean {
  const own = sum(ofTenant(granted, claim));
  const ownCaller = sum(ofCaller(granted, claim));
  const limit = Math.min(perTenant, halfOfLeft(total, sum(granted) - own));
  return own < limit && ownCaller < halfOfLeft(limit, own - ownCaller);
}

/** A tenant that has at most half of the free units gets another one, so alone it gets a third of them. */
function allowsThird(claim: Claim, granted: readonly Claim[], { total, perTenant }: Capacity): boolean {
  const free = total - sum(granted);
  const own = sum(ofTenant(granted, claim));
  return free > 0 && own < perTenant && own * 2 <= free;
}

const messages = { noSlotMessage: 'no slot', evictedMessage: 'evicted' };

/** Grants a claim if `run` starts its work immediately. The work lasts until it is released. */
function grantIfStarted(run: (work: () => Promise<void>) => Promise<unknown>): Release | undefined {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStarted = false;
  const running = run(() => {
    isStarted = true;
    return promise;
  });
  if (!isStarted) void running.catch(() => undefined);
  const release = () => {
    resolve();
    return running;
  };
  return isStarted ? release : undefined;
}

/** Creates a concurrency limiter whose only slot is taken, so that everything else is queued or refused. */
function createFullLimiter(options: { maxQueued: number; maxQueuedBytes?: number }) {
  const limiter = new ConcurrencyLimiter({ rule: 'a rule', maxConcurrent: 1, ...options });
  const end = grantIfStarted((work) => limiter.run({ workspaceId: 'first', id: 'first' }, work));
  const grant: Grant = (claim) => {
    const { waiting } = limiter.getCounts();
    const actor = { workspaceId: getWorkspaceId(claim), id: `${claim.caller}` };
    void limiter.run(actor, async () => undefined, claim.amount).catch(() => undefined);
    return limiter.getCounts().waiting > waiting ? () => undefined : undefined;
  };
  return { grant, close: async () => void (await end?.()) };
}

const limiterCases: Record<string, LimiterCase> = {
  'the slots of a concurrency limiter': {
    create({ total, perTenant }) {
      const limiter = new ConcurrencyLimiter({ rule: 'a rule', maxConcurrent: total, perTenant, maxQueued: 0 });
      return {
        grant: (claim) =>
          grantIfStarted((work) => limiter.run({ workspaceId: getWorkspaceId(claim), id: `${claim.caller}` }, work)),
      };
    },
    allows: allowsHalf,
  },
  'the queue of a concurrency limiter': {
    create: ({ total }) => createFullLimiter({ maxQueued: total }),
    allows: (claim, granted, { total }) => allowsHalf(claim, granted, { total, perTenant: total }),
    isQueue: true,
  },
  'the bytes in the queue of a concurrency limiter': {
    create: ({ total }) => createFullLimiter({ maxQueued: 1_000_000, maxQueuedBytes: total }),
    allows(claim, granted, { total }) {
      const own = sum(ofTenant(granted, claim));
      return own + claim.amount <= halfOfLeft(total, sum(granted) - own);
    },
    maxAmount: 4,
    isQueue: true,
  },
  'a memory budget': {
    create({ total }) {
      const budget = new MemoryBudget(2 * total);
      return {
        grant(claim) {
          const network = isUnverified(claim) ? `network ${claim.caller}` : undefined;
          const reservation = budget.reserve(getWorkspaceId(claim), network);
          return reservation.grow(2 * claim.amount) ? () => void reservation.release() : undefined;
        },
      };
    },
    // Unverified callers are charged to their network, whichever workspace they call, and use half together.
    allows(claim, granted, { total }) {
      const unverified = granted.filter(isUnverified);
      const own = isUnverified(claim)
        ? unverified.filter(({ caller }) => caller === claim.caller)
        : ofTenant(granted, claim).filter((other) => !isUnverified(other));
      const fits = (claims: readonly Claim[], left: number) => 2 * (sum(claims) + claim.amount) <= left;
      return fits(own, total - (sum(granted) - sum(own))) && (!isUnverified(claim) || fits(unverified, total));
    },
    maxAmount: 4,
  },
  'preemptible slots': {
    create(limits) {
      const runInSlot = createPreemptibleSlots({ limits, minHoldMs: 1, clock: () => 0, ...messages });
      return {
        grant(claim) {
          const callerKey = { name: `${claim.caller}`, isUnverified: isUnverified(claim) };
          return grantIfStarted((work) => runInSlot(getWorkspaceId(claim), work, callerKey));
        },
      };
    },
    allows(claim, granted, capacity) {
      const freeOfTenant = capacity.perTenant - ofTenant(granted, claim).length;
      const leavesHalf = ofCaller(granted, claim).length * 2 <= freeOfTenant;
      return allowsThird(claim, granted, capacity) && (!isUnverified(claim) || leavesHalf);
    },
  },
  'DNS lookups': {
    create(capacity) {
      const limits = { ...capacity, unverified: toHalf(capacity.total), perAddress: toHalf(capacity.perTenant) };
      const pending = new Map<string, () => void>();
      const expiries: (() => void)[] = [];
      const { getTenantResolver, getUnverifiedResolver } = createLookups(
        (hostname, settle) => void pending.set(hostname, () => settle(null, [])),
        limits,
        (_ms, expire) => {
          expiries.push(expire);
          return () => undefined;
        },
      );
      let count = 0;
      return {
        grant(claim) {
          const hostname = `host-${count++}`;
          const resolve = isUnverified(claim)
            ? getUnverifiedResolver(`address ${claim.caller}`)
            : getTenantResolver(`tenant ${claim.tenant}`);
          resolve(hostname, () => undefined);
          // A lookup that has to wait is withdrawn.
          for (const expire of expiries.splice(0)) expire();
          return pending.has(hostname) ? () => void pending.get(hostname)?.() : undefined;
        },
      };
    },
    allows(claim, granted, { total, perTenant }) {
      if (!isUnverified(claim)) {
        const own = ofTenant(granted, claim).filter((other) => !isUnverified(other)).length;
        const free = total - granted.length;
        return free > 0 && own < perTenant && own * 2 <= free;
      }
      const unverified = granted.filter(isUnverified);
      const own = unverified.filter(({ caller }) => caller === claim.caller).length;
      const free = Math.min(total - granted.length, toHalf(total) - unverified.length);
      return free > 0 && own < toHalf(perTenant) && own * 2 <= free;
    },
  },
  'the queue of the thread pool': {
    create(queue) {
      const ms = { longJobMs: 60_000, idleMs: 60_000, threadBytes: 64 * 1024 * 1024 };
      const pool = new ThreadPool({ threads: 1, queue, ...ms, after: () => () => undefined });
      const job = { kind: 'check-arguments', input: { schema: '{}', args: '{}' } } as const;
      const times = { limitMs: 60_000, queueTimeoutMs: 60_000 };
      const running = pool.run({ ...job, ownerId: 'first', times });
      return {
        grant(claim) {
          const { waiting } = pool.getCounts();
          let release: Release | undefined;
          const registerCancel = (cancel: () => void) => {
            release = () => void cancel();
          };
          pool.run({ ...job, ownerId: getWorkspaceId(claim), times, registerCancel }).catch(() => undefined);
          return pool.getCounts().waiting > waiting ? release : undefined;
        },
        async close() {
          await running;
          await pool.close();
        },
      };
    },
    allows: allowsThird,
    runs: 20,
  },
  'the returns from providers': {
    // All but `total` of the 2000 returns are in progress.
    create({ total }) {
      const options = { getNetwork: () => '198.51.100.1', signInProvider: 'sign-in', clock: () => 0 };
      const limitReturns = createReturnLimit(options);
      const request = { headers: {}, socket: {} };
      const grant = (provider: string) => grantIfStarted((work) => limitReturns(request, provider, work));
      const others = Array.from({ length: 2000 - total }, (_, n) => grant(`other ${n}`));
      return {
        grant: (claim) => grant(`provider ${claim.tenant}`),
        close: async () => void (await Promise.all(others.map((release) => release?.()))),
      };
    },
    allows: (claim, granted, { total }) => allowsThird(claim, granted, { total, perTenant: 20 }),
    runs: 50,
  },
  'the calls of a process': {
    create({ total }) {
      const limits = new Limits({ concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 10, capacity: total });
      const noLimits = { callsPerSecond: 0, concurrentCalls: 0 };
      const server = { limits: { server: noLimits, workspace: noLimits } };
      const caller = { id: undefined, keyId: undefined, network: '198.51.100.1', isVerified: false };
      return {
        grant(claim) {
          const workspaceId = getWorkspaceId(claim);
          try {
            const slots = limits.enter({ ...server, id: `server of ${workspaceId}`, workspaceId }, caller);
            assert.ok(!(slots instanceof Promise));
            return () => void limits.leave(slots, caller);
          } catch {
            return undefined;
          }
        },
      };
    },
    allows(claim, granted, { total }) {
      const own = sum(ofTenant(granted, claim));
      return own < halfOfLeft(total, sum(granted) - own);
    },
  },
};

/** Half of a limit, at least 1. */
function toHalf(limit: number): number {
  return Math.max(1, Math.floor(limit / 2));
}

const claims = fc.record({
  tenant: fc.nat({ max: tenantCount - 1 }),
  workspace: fc.nat({ max: 1 }),
  caller: fc.nat({ max: 3 }),
  amount: fc.integer({ min: 1, max: 4 }),
});
/** Claims in order. A step with an index of a granted claim releases it instead. */
const steps = fc.array(fc.record({ claim: claims, release: fc.option(fc.nat({ max: 40 }), { freq: 2 }) }), {
  minLength: 20,
  maxLength: 120,
});
const capacities = fc.record({ total: fc.integer({ min: 1, max: 24 }), perTenant: fc.integer({ min: 1, max: 10 }) });

/** Checks that a limiter grants exactly the claims that its rule allows. */
async function checkSteps(
  { create, allows, maxAmount = 1, isQueue = false }: LimiterCase,
  capacity: Capacity,
  order: readonly { claim: Claim; release: number | null }[],
): Promise<void> {
  const { grant, close } = create(capacity);
  const granted: { claim: Claim; release: Release }[] = [];
  for (const { claim: anyClaim, release: index } of order) {
    const claim = { ...anyClaim, amount: Math.min(anyClaim.amount, maxAmount) };
    const [released] = index === null || isQueue ? [] : granted.splice(index, 1);
    const releasing = released?.release();
    if (releasing) await releasing;
    if (released) continue;
    const release = grant(claim);
    const state = JSON.stringify({ capacity, claim, granted: granted.map((one) => one.claim) });
    const expected = allows(
      claim,
      granted.map((one) => one.claim),
      capacity,
    );
    assert.equal(release !== undefined, expected, state);
    if (release) granted.push({ claim, release });
  }
  for (const { release } of granted) await release();
  await close?.();
}

/** Runs items of these tenants, and returns how many of each are running after each completion. */
async function runTenantItems(maxConcurrent: number, tenants: readonly number[], order: readonly number[]) {
  type Item = { workspaceId: string; tenant: number };
  let due: Item[] = tenants.map((tenant, n) => ({
    workspaceId: (workspaceIds[tenant] as string[])[n % 2] as string,
    tenant,
  }));
  const running: { item: Item; complete: () => void }[] = [];
  const countRunning = (tenant: number) => running.filter(({ item }) => item.tenant === tenant).length;
  const canRun = (tenant: number) => {
    const left = maxConcurrent - (running.length - countRunning(tenant));
    return running.length < maxConcurrent && countRunning(tenant) < Math.ceil(left / 2);
  };
  const round = runFairly<Item>({
    maxConcurrent,
    find: async () => [...new Map(due.toReversed().map((item) => [item.tenant, item])).values()],
    run(item) {
      assert.ok(canRun(item.tenant), `tenant ${item.tenant}: ${JSON.stringify(running)}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      running.push({ item, complete: resolve });
      due = due.filter((other) => other !== item);
      return promise;
    },
  });
  for (const index of order) {
    await eventsArrived();
    const waiting = due.filter(({ tenant }) => canRun(tenant));
    assert.deepEqual(waiting, [], JSON.stringify(running));
    running.splice(index % Math.max(1, running.length), 1)[0]?.complete();
  }
  await eventsArrived();
  while (running.length > 0) {
    for (const { complete } of running.splice(0)) complete();
    await eventsArrived();
  }
  await round;
  assert.deepEqual(due, []);
}

describe('[find A8] fair shares between creators of workspaces', () => {
  for (const [name, limiterCase] of Object.entries(limiterCases)) {
    const { runs = 1000 } = limiterCase;
    it(`are the maximum of each owner in ${name} (property)`, () =>
      assertAlways(runs, [capacities, steps], (capacity, order) => checkSteps(limiterCase, capacity, order)));
  }

  it('are the maximum of each owner in a round of notifications or checks (property)', () => {
    const tenants = fc.array(fc.nat({ max: tenantCount - 1 }), { maxLength: 40 });
    const completions = fc.array(fc.nat({ max: 20 }), { maxLength: 40 });
    return assertAlways(300, [fc.integer({ min: 1, max: 10 }), tenants, completions], runTenantItems);
  });

  it('decide which entries a nearly full cache evicts (property)', () => {
    const entries = fc.array(fc.record({ tenant: claims, size: fc.integer({ min: 0, max: 3 }) }), { maxLength: 80 });
    const read = fc.array(fc.nat({ max: 80 }), { maxLength: 80 });
    assertAlwaysSync(1000, [fc.integer({ min: 1, max: 24 }), entries, read], (max, added, order) => {
      type Entry = { tenant: number; workspaceId: string; size: number };
      const maxSize = 2 * max;
      const cache = createFairCache<Entry>({
        max,
        maxSize,
        getSize: ({ size }) => size,
        getOwner: ({ workspaceId }) => workspaceId,
      });
      /** Least recently used first. */
      let expected: [string, Entry][] = [];
      const getSize = (all: typeof expected) => all.reduce((total, [, { size }]) => total + size + 1, 0);
      for (const [n, { tenant: claim, size }] of added.entries()) {
        const entry = { tenant: claim.tenant, workspaceId: getWorkspaceId(claim), size };
        cache.set(`${n}`, entry);
        if (size + 1 <= maxSize) expected = [...evictFor(expected, entry), [`${n}`, entry]];
        const used = `${order[n] ?? n}`;
        const usedEntry = expected.find(([key]) => key === used);
        assert.equal(cache.get(used) !== undefined, usedEntry !== undefined);
        if (usedEntry) expected = [...expected.filter((one) => one !== usedEntry), usedEntry];
        assert.deepEqual(
          [...cache.keys()],
          expected.map(([key]) => key),
        );
      }

      function evictFor(all: typeof expected, { size }: Entry): typeof expected {
        let kept = all;
        const isNearlyFull = () => kept.length + 1 > 0.75 * max || getSize(kept) + size + 1 > 0.75 * maxSize;
        for (;;) {
          const owner = [...Map.groupBy(kept, ([, { tenant }]) => tenant).values()].find(
            (own) => own.length > max / 2 || getSize(own) > maxSize / 2,
          );
          if (!owner || !isNearlyFull()) break;
          // Its oldest entry, whichever was read last.
          const oldest = owner.toSorted(([a], [b]) => Number(a) - Number(b))[0];
          kept = kept.filter((one) => one !== oldest);
        }
        while (kept.length >= max || getSize(kept) + size + 1 > maxSize) kept = kept.slice(1);
        return kept;
      }
    });
  });
});
