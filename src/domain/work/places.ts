import { AppError } from '../../errors.ts';
import { tenantOf } from '../ids.ts';

/**
 * Identifies who is charged for work within a tenant. Unverified callers may be one person under many names: with
 * credentials that nothing verifies, and with logins.
 */
export type WorkParty = { readonly name: string; readonly isStranger: boolean };

/** Maximum number of units of work that may run concurrently, for one tenant and in total. */
type WorkLimits = { ofTenant: number; ofAll: number };

/**
 * Returns true if a tenant that runs `own` units of work may start another one when `free` more are possible in total.
 * Clients decide how long their work takes, so a tenant gets at most half of the remaining capacity. Even if a few
 * tenants take all they can get, some is left for others.
 */
function hasRoom({ ofTenant }: WorkLimits, own: number, free: number): boolean {
  return free > 0 && own < ofTenant && own * 2 <= free;
}

/**
 * Returns a function that runs work for a tenant if there is capacity, and otherwise refuses it immediately with this
 * message.
 * @throws AppError tooMany, and any error of the work
 */
export function createBoundedWork(most: WorkLimits, refusal: string) {
  const running = new Map<string, number>();
  let all = 0;
  return async <Result>(tenant: string, work: () => Promise<Result>): Promise<Result> => {
    const own = running.get(tenant) ?? 0;
    if (!hasRoom(most, own, most.ofAll - all)) throw new AppError('tooMany', refusal, { retryAfterS: 5 });
    all++;
    running.set(tenant, own + 1);
    try {
      return await work();
    } finally {
      all--;
      const left = (running.get(tenant) ?? 1) - 1;
      if (left > 0) running.set(tenant, left);
      else running.delete(tenant);
    }
  };
}

export type PlacesOptions = {
  most: WorkLimits;
  /** Minimum time that slow work keeps its slot, in ms. */
  firmMs: number;
  /** Returns the monotonic ms during which this process ran. */
  clock: () => number;
  /** Error messages for work that gets no slot, and for work that lost its slot. */
  noRoom: string;
  lost: string;
};

/**
 * A preemptible slot. While an outside party decides how long the work takes, within `slowly`, the slot may be taken
 * away; `gone` is then aborted.
 */
export type Place = { gone: AbortSignal; slowly<Result>(work: () => Promise<Result>): Promise<Result> };

/** Owner of a slot; `party` is undefined for work of the tenant itself. */
type Owner = { tenant: string; party: WorkParty | undefined };
type Taken = Owner & { slowSince: number | undefined; gone: AbortController };

/**
 * Returns a function that gives work a slot if one is free, and otherwise refuses it immediately. Hosts and clients may
 * be arbitrarily slow. If all slots are taken, a tenant without one gets the slot that has been slow the longest,
 * preferably from a tenant with several. Callers within a tenant without a slot are treated the same way; an unverified
 * caller gets at most half of the tenant's remaining slots, and never that of a verified caller.
 * @throws AppError tooMany, and any error of the work
 */
export function createPlaces({ most, firmMs, clock, noRoom, lost }: PlacesOptions) {
  const taken = new Set<Taken>();
  const placesOf = (id: string) => [...taken].filter(({ tenant }) => tenant === id);
  const isSlow = ({ slowSince: since }: Taken) => since !== undefined && clock() - since >= firmMs;

  /** Evicts slow work if a tenant or caller without a slot needs it. Returns true if a slot is free now. */
  function makeRoom({ tenant, party }: Owner): boolean {
    const places = placesOf(tenant);
    const own = places.length;
    const free = most.ofAll - taken.size;
    if (hasRoom(most, own, free)) return !party?.isStranger || ofParty(places, party) * 2 <= most.ofTenant - own;
    if (own === 0) return end([...taken].filter(isSlow), (other) => placesOf(other.tenant).length > 1);
    if (!party || ofParty(places, party) > 0) return false;
    const slow = places.filter(isSlow);
    const ofStrangers = slow.filter((other) => other.party?.isStranger);
    const candidates = party.isStranger || ofStrangers.length > 0 ? ofStrangers : slow;
    return end(candidates, (other) => other.party !== undefined && ofParty(places, other.party) > 1);
  }

  /** Evicts the first of these whose owner has several slots, or the first one. */
  function end(slow: Taken[], hasSeveral: (one: Taken) => boolean): boolean {
    const one = slow.find(hasSeveral) ?? slow[0];
    if (!one) return false;
    taken.delete(one);
    one.gone.abort();
    return true;
  }

  return async <Result>(
    workspaceId: string,
    work: (place: Place) => Promise<Result>,
    party?: WorkParty,
  ): Promise<Result> => {
    const tenant = tenantOf(workspaceId);
    if (!makeRoom({ tenant, party })) throw tooMany(noRoom);
    const place: Taken = { tenant, party, slowSince: undefined, gone: new AbortController() };
    const { signal: gone } = place.gone;
    taken.add(place);
    try {
      return await work({
        gone,
        async slowly(slowWork) {
          place.slowSince = clock();
          const result = await slowWork();
          gone.throwIfAborted();
          place.slowSince = undefined;
          return result;
        },
      });
    } catch (error) {
      throw gone.aborted ? tooMany(lost, error) : error;
    } finally {
      taken.delete(place);
    }
  };
}

function ofParty(places: readonly Taken[], { name, isStranger }: WorkParty): number {
  return places.filter(({ party }) => party?.name === name && party.isStranger === isStranger).length;
}

function tooMany(message: string, cause?: unknown): AppError {
  return new AppError('tooMany', message, { retryAfterS: 5, cause });
}
