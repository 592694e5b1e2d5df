import { AppError } from '../../errors.ts';
import { tenantOf } from '../ids.ts';

/**
 * Whom work is done for within a tenant. Strangers may be one person under many names: credentials that nothing
 * proves, and logins.
 */
export type WorkParty = { readonly name: string; readonly isStranger: boolean };

/** How much work may be under way at once for one tenant, and for all together. */
type WorkLimits = { ofTenant: number; ofAll: number };

/**
 * Whether a tenant that does `own` pieces of work may begin another one when `free` more are possible in all. Work of
 * clients may take as long as they like, so it gets no more than half of what is left: a few tenants that keep all
 * they can get leave some to the others.
 */
function hasRoom({ ofTenant }: WorkLimits, own: number, free: number): boolean {
  return free > 0 && own < ofTenant && own * 2 <= free;
}

/**
 * Makes a function that runs work for a tenant where there is room, and otherwise refuses at once with this message.
 * @throws AppError tooMany, and what the work throws
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
  /** How long slow work keeps its place in any case, in ms. */
  firmMs: number;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** What is said to work for which there is no room, and to work that lost its place. */
  noRoom: string;
  lost: string;
};

/**
 * A place for work. It may be taken away while somebody outside decides how long the work takes, within `slowly`, and then
 * `gone` is aborted.
 */
export type Place = { gone: AbortSignal; slowly<Result>(work: () => Promise<Result>): Promise<Result> };

/** `party`: undefined for work of the tenant itself. */
type Owner = { tenant: string; party: WorkParty | undefined };
type Taken = Owner & { slowSince: number | undefined; gone: AbortController };

/**
 * Makes a function that gives work a place where there is room, and otherwise refuses at once. Hosts and clients may be as
 * slow as they like: when all places are taken, a tenant that has none gets the one that has been slow for longest,
 * first of a tenant with several. Within a tenant, so does a party that has none; a stranger gets no more than half
 * of the places that are left to the tenant, and never that of a caller who is known.
 * @throws AppError tooMany, and what the work throws
 */
export function createPlaces({ most, firmMs, clock, noRoom, lost }: PlacesOptions) {
  const taken = new Set<Taken>();
  const placesOf = (id: string) => [...taken].filter(({ tenant }) => tenant === id);
  const isSlow = ({ slowSince: since }: Taken) => since !== undefined && clock() - since >= firmMs;

  /** Ends slow work if that is what a tenant or a party without a place needs. Returns whether there is room now. */
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

  /** Ends the first of these whose owner has several, or the first of all. */
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
