import { hasRoom, type WorkLimits } from '../../domain/work/bounded-work.ts';
import { AppError } from '../../errors.ts';

export type ImportPlacesOptions = {
  most: WorkLimits;
  /** How long a fetch keeps its place in any case, in ms. */
  firmMs: number;
  /** Monotonic ms. */
  clock: () => number;
};

/** The place of an import. It may be taken away while a document is fetched, and then `gone` is aborted. */
export type ImportPlace = { gone: AbortSignal; fetch<Result>(work: () => Promise<Result>): Promise<Result> };

type Taken = { workspaceId: string; fetchingSince: number | undefined; gone: AbortController };

/**
 * Makes a function that gives an import a place where there is room, and otherwise refuses at once. A host may be as slow
 * as it likes: when all places are taken, a workspace that has none gets that of the fetch that has run longest, first of
 * a workspace with several.
 * @throws AppError tooMany, and what the work throws
 */
export function createImportPlaces({ most, firmMs, clock }: ImportPlacesOptions) {
  const taken = new Set<Taken>();
  const ofWorkspace = (id: string) => [...taken].filter(({ workspaceId }) => workspaceId === id).length;

  /** Ends a slow fetch if that is what a workspace without a place needs. Returns whether there is room now. */
  function makeRoom(workspaceId: string): boolean {
    const own = ofWorkspace(workspaceId);
    const free = most.ofAll - taken.size;
    if (free > 0 || own > 0) return hasRoom(most, own, free);
    const slow = [...taken].filter(({ fetchingSince: since }) => since !== undefined && clock() - since >= firmMs);
    const one = slow.find((other) => ofWorkspace(other.workspaceId) > 1) ?? slow[0];
    if (!one) return false;
    taken.delete(one);
    one.gone.abort();
    return true;
  }

  return async <Result>(workspaceId: string, work: (place: ImportPlace) => Promise<Result>): Promise<Result> => {
    if (!makeRoom(workspaceId)) throw tooMany('other imports are under way; try again in a few seconds');
    const place: Taken = { workspaceId, fetchingSince: undefined, gone: new AbortController() };
    const { signal: gone } = place.gone;
    taken.add(place);
    try {
      return await work({
        gone,
        async fetch(fetchIt) {
          place.fetchingSince = clock();
          const fetched = await fetchIt();
          gone.throwIfAborted();
          place.fetchingSince = undefined;
          return fetched;
        },
      });
    } catch (error) {
      throw gone.aborted
        ? tooMany('the document was not fetched: its host was slow while others waited; try again', error)
        : error;
    } finally {
      taken.delete(place);
    }
  };
}

function tooMany(message: string, cause?: unknown): AppError {
  return new AppError('tooMany', message, { retryAfterS: 5, cause });
}
