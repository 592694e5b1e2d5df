import type { LookupAddress } from 'node:dns';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import type { Resolve } from './connector.ts';

/** Maximum concurrent lookups: in total, for one tenant, for all unverified callers, and for one of their addresses. */
export type LookupLimits = { total: number; perTenant: number; unverified: number; perAddress: number };

/** Returns a resolver for one tenant, or for one address of unverified callers. */
export type GetResolver = (id: string) => Resolve;

export type Lookups = { getTenantResolver: GetResolver; getUnverifiedResolver: GetResolver };

/** A tenant, or an address of unverified callers, and the number of its running lookups. */
type LookupOwner = { isUnverified: boolean; running: number };

type Callback = Parameters<Resolve>[1];
type Outcome = Parameters<Callback>;

/** Calls `expire` after `ms` in which the process was running. Returns a function that cancels the call. */
type After = (ms: number, expire: () => void) => () => void;

/** Time after which a queued lookup fails. Its connection would time out soon after (`connectTimeoutMs`). */
const queueTimeoutMs = 2500;
/** Number of libuv threads for lookups that are reserved for the database and the identity provider. */
const reservedThreads = 2;
const defaultThreads = 4;

/**
 * Returns the lookup limits for a libuv thread pool size. `dns.lookup` blocks a libuv thread, cannot be canceled, and
 * takes ten seconds or more if a name server does not respond. Libuv uses half of its threads for such work
 * (`UV_THREADPOOL_SIZE`, 4 by default).
 */
export function getLookupLimits(threadPoolSize: string | undefined): LookupLimits {
  const threads = Number(threadPoolSize) || defaultThreads;
  const total = Math.max(2, Math.ceil(threads / 2) - reservedThreads);
  const shareOfTotal = (share: number) => Math.max(1, Math.floor(total * share));
  return { total, perTenant: shareOfTotal(1 / 3), unverified: shareOfTotal(1 / 2), perAddress: shareOfTotal(1 / 6) };
}

/**
 * Shares name lookups fairly. A tenant, or an address of unverified callers, whose name servers do not respond uses up
 * only its own share. Unverified callers leave half of all lookups to tenants. Further lookups wait for a short time.
 * Concurrent requests for the same name share one lookup.
 */
export function createLookups(resolve: Resolve, limits: LookupLimits, after: After): Lookups {
  const running = new Map<string, Callback[]>();
  const ownersByKey = new Map<string, LookupOwner>();
  const waiting = new Set<QueuedLookup>();
  let unverifiedRunning = 0;

  function canStart({ isUnverified, running: ownRunning }: LookupOwner): boolean {
    const free = limits.total - running.size;
    if (!isUnverified) return ownRunning < Math.min(limits.perTenant, getFairShare(free, ownRunning, 3));
    const freeForUnverified = Math.min(free, limits.unverified - unverifiedRunning);
    return ownRunning < Math.min(limits.perAddress, getFairShare(freeForUnverified, ownRunning, 3));
  }

  function updateCount(key: string, owner: LookupOwner, change: 1 | -1): void {
    owner.running += change;
    if (owner.isUnverified) unverifiedRunning += change;
    if (owner.running > 0) ownersByKey.set(key, owner);
    else ownersByKey.delete(key);
  }

  function start({ key, owner, hostname, settle }: QueuedLookup): void {
    const callbacks = [settle];
    running.set(hostname, callbacks);
    updateCount(key, owner, 1);
    resolve(hostname, (...outcome) => {
      running.delete(hostname);
      updateCount(key, owner, -1);
      for (const callback of callbacks) callback(...outcome);
      startWaiting();
    });
  }

  function startWaiting(): void {
    for (const entry of waiting) {
      const sharedCallbacks = running.get(entry.hostname);
      if (!sharedCallbacks && running.size >= limits.total) return;
      const owner = ownersByKey.get(entry.key) ?? entry.owner;
      if (!sharedCallbacks && !canStart(owner)) continue;
      waiting.delete(entry);
      if (sharedCallbacks) sharedCallbacks.push(entry.settle);
      else start({ ...entry, owner });
    }
  }

  function enqueue(request: QueuedLookup): void {
    const settle: Callback = (...outcome) => {
      cancel();
      request.settle(...outcome);
    };
    const entry = { ...request, settle };
    const cancel = after(queueTimeoutMs, () => {
      if (waiting.delete(entry)) request.settle(...createTimeoutOutcome());
    });
    waiting.add(entry);
  }

  const createResolverFactory =
    (isUnverified: boolean): GetResolver =>
    (id) =>
    (hostname, settle) => {
      const key = `${isUnverified} ${id}`;
      const owner = ownersByKey.get(key) ?? { isUnverified, running: 0 };
      const sharedCallbacks = running.get(hostname);
      if (sharedCallbacks) sharedCallbacks.push(settle);
      else if (canStart(owner)) start({ key, owner, hostname, settle });
      else enqueue({ key, owner, hostname, settle });
    };
  return { getTenantResolver: createResolverFactory(false), getUnverifiedResolver: createResolverFactory(true) };
}

type QueuedLookup = { key: string; owner: LookupOwner; hostname: string; settle: Callback };

function createTimeoutOutcome(): Outcome {
  const noAddresses: LookupAddress[] = [];
  return [Object.assign(new Error('the lookup did not start in time'), { code: 'EAI_AGAIN' }), noAddresses];
}
