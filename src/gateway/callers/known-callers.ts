import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import type { KnownCallers } from './caller.ts';

/** When the upstream last answered a credential with success, in monotonic ms, and whose server and which address asked. */
type Known = { at: number; readonly workspaceId: string; readonly network: string | undefined };

/** One workspace can fill three fourths of it. */
const mostKnown = 27_000;
/** How long a caller counts as known, and how long after its last call half of a server or workspace stays free for such. */
export const knownMs = 10 * 60_000;

/**
 * Remembers digests of the credentials that callers bring and that an upstream has answered with success. All others are
 * strangers. `clock` is monotonic, in ms.
 */
export function createKnownCallers(clock: () => number): KnownCallers {
  const all = createOwnedMemory<Known>({
    max: mostKnown,
    ownerOf: ({ workspaceId }) => workspaceId,
    partyOf: ({ workspaceId, network }) => `${workspaceId} ${network}`,
  });
  return {
    has(id) {
      const known = all.get(id);
      return known !== undefined && clock() - known.at < knownMs;
    },
    noteAnswer(caller, workspaceId, status) {
      const { id, network } = caller;
      if (id === undefined || (status > 299 && status !== 401)) return;
      caller.isKnown = status !== 401;
      const known = all.get(id);
      if (!caller.isKnown) all.delete(id);
      else if (known) known.at = clock();
      else all.set(id, { at: clock(), workspaceId, network });
    },
  };
}
