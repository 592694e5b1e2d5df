import { getTenantId } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { getFairShare } from './concurrency-limiter.ts';

/**
 * Identifies who is charged for work within a tenant. Unverified callers may be one person under many names: with
 * credentials that nothing verifies, and with logins.
 */
export type CallerKey = { readonly name: string; readonly isUnverified: boolean };

export type PreemptibleSlotOptions = {
  /** Maximum number of units of work that may run concurrently, for one tenant and in total. */
  limits: { perTenant: number; total: number };
  /** Minimum time that slow work keeps its slot, in ms. */
  minHoldMs: number;
  /** Returns the monotonic ms during which this process ran. */
  clock: () => number;
  /** Error messages for work that gets no slot, and for work that lost its slot. */
  noSlotMessage: string;
  evictedMessage: string;
};

/**
 * A preemptible slot. While an outside party decides how long the work takes, within `runPreemptible`, the slot may be
 * taken away; `evicted` is then aborted.
 */
export type PreemptibleSlot = {
  evicted: AbortSignal;
  runPreemptible<Result>(work: () => Promise<Result>): Promise<Result>;
};

/** Owner of a slot; `callerKey` is undefined for work of the tenant itself. */
type SlotOwner = { tenant: string; callerKey: CallerKey | undefined };
type TakenSlot = SlotOwner & { slowSince: number | undefined; evicted: AbortController };

/**
 * Returns a function that gives work a slot if one is free, and otherwise refuses it immediately. Hosts and clients may
 * be arbitrarily slow. If all slots are taken, a tenant without one gets the slot that has been slow the longest,
 * preferably from a tenant with several. Callers within a tenant without a slot are treated the same way; an unverified
 * caller gets a fair share of the tenant's slots, and never that of a verified caller.
 * @throws AppError tooMany, and any error of the work
 */
export function createPreemptibleSlots({
  limits,
  minHoldMs,
  clock,
  noSlotMessage,
  evictedMessage,
}: PreemptibleSlotOptions) {
  const takenSlots = new Set<TakenSlot>();
  const getTenantSlots = (id: string) => [...takenSlots].filter(({ tenant }) => tenant === id);
  const isSlow = ({ slowSince: since }: TakenSlot) => since !== undefined && clock() - since >= minHoldMs;

  /** Evicts slow work if a tenant or caller without a slot needs it. Returns true if a slot is free now. */
  function tryFreeSlot({ tenant, callerKey }: SlotOwner): boolean {
    const slots = getTenantSlots(tenant);
    const ownCount = slots.length;
    if (ownCount < Math.min(limits.perTenant, getFairShare(limits.total - takenSlots.size, ownCount, 3))) {
      const callerCount = callerKey?.isUnverified ? countCallerSlots(slots, callerKey) : 0;
      return callerCount < getFairShare(limits.perTenant - ownCount, callerCount, 3);
    }
    if (ownCount === 0) return evict([...takenSlots].filter(isSlow), (slot) => getTenantSlots(slot.tenant).length > 1);
    if (!callerKey || countCallerSlots(slots, callerKey) > 0) return false;
    const slow = slots.filter(isSlow);
    const unverifiedSlots = slow.filter((slot) => slot.callerKey?.isUnverified);
    const candidates = callerKey.isUnverified || unverifiedSlots.length > 0 ? unverifiedSlots : slow;
    return evict(candidates, (slot) => slot.callerKey !== undefined && countCallerSlots(slots, slot.callerKey) > 1);
  }

  /** Evicts the first of these whose owner has several slots, or the first one. */
  function evict(slow: TakenSlot[], ownerHasSeveral: (slot: TakenSlot) => boolean): boolean {
    const one = slow.find(ownerHasSeveral) ?? slow[0];
    if (!one) return false;
    takenSlots.delete(one);
    one.evicted.abort();
    return true;
  }

  return async <Result>(
    workspaceId: string,
    work: (slot: PreemptibleSlot) => Promise<Result>,
    callerKey?: CallerKey,
  ): Promise<Result> => {
    const tenant = getTenantId(workspaceId);
    if (!tryFreeSlot({ tenant, callerKey })) throw createTooManyError(noSlotMessage);
    const taken: TakenSlot = { tenant, callerKey, slowSince: undefined, evicted: new AbortController() };
    const { signal: evicted } = taken.evicted;
    takenSlots.add(taken);
    try {
      return await work({
        evicted,
        async runPreemptible(preemptibleWork) {
          taken.slowSince = clock();
          const result = await preemptibleWork();
          evicted.throwIfAborted();
          taken.slowSince = undefined;
          return result;
        },
      });
    } catch (error) {
      throw evicted.aborted ? createTooManyError(evictedMessage, error) : error;
    } finally {
      takenSlots.delete(taken);
    }
  };
}

function countCallerSlots(slots: readonly TakenSlot[], { name, isUnverified }: CallerKey): number {
  return slots.filter(({ callerKey }) => callerKey?.name === name && callerKey.isUnverified === isUnverified).length;
}

function createTooManyError(message: string, cause?: unknown): AppError {
  return new AppError('tooMany', message, { retryAfterS: 5, cause });
}
