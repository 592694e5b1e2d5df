import { AppError } from '../../errors.ts';
import { hasRoom, type WorkLimits } from './bounded-work.ts';

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

type Taken = { workspaceId: string; slowSince: number | undefined; gone: AbortController };

/**
 * Makes a function that gives work a place where there is room, and otherwise refuses at once. Hosts and clients may be as
 * slow as they like: when all places are taken, a workspace that has none gets the one that has been slow for longest,
 * first of a workspace with several.
 * @throws AppError tooMany, and what the work throws
 */
export function createPlaces({ most, firmMs, clock, noRoom, lost }: PlacesOptions) {
  const taken = new Set<Taken>();
  const ofWorkspace = (id: string) => [...taken].filter(({ workspaceId }) => workspaceId === id).length;

  /** Ends slow work if that is what a workspace without a place needs. Returns whether there is room now. */
  function makeRoom(workspaceId: string): boolean {
    const own = ofWorkspace(workspaceId);
    const free = most.ofAll - taken.size;
    if (free > 0 || own > 0) return hasRoom(most, own, free);
    const slow = [...taken].filter(({ slowSince: since }) => since !== undefined && clock() - since >= firmMs);
    const one = slow.find((other) => ofWorkspace(other.workspaceId) > 1) ?? slow[0];
    if (!one) return false;
    taken.delete(one);
    one.gone.abort();
    return true;
  }

  return async <Result>(workspaceId: string, work: (place: Place) => Promise<Result>): Promise<Result> => {
    if (!makeRoom(workspaceId)) throw tooMany(noRoom);
    const place: Taken = { workspaceId, slowSince: undefined, gone: new AbortController() };
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

function tooMany(message: string, cause?: unknown): AppError {
  return new AppError('tooMany', message, { retryAfterS: 5, cause });
}
