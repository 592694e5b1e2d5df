import { LRUCache } from 'lru-cache';

/** Credentials that an upstream has accepted, of servers whose callers bring their own. */
export type KnownCallers = {
  has(id: string): boolean;
  add(id: string): void;
};

const mostKnown = 20_000;

/**
 * Remembered are digests, and only of what an upstream accepted: made-up credentials take no memory here, and cannot make
 * those of others be forgotten.
 */
export function createKnownCallers(): KnownCallers {
  const known = new LRUCache<string, true>({ max: mostKnown });
  return {
    has: (id) => known.get(id) === true,
    add: (id) => void known.set(id, true),
  };
}

/** Whether an upstream that answers so has taken the credential for a good one; a fault or a limit of its own says nothing. */
export function isAccepted(status: number | undefined): boolean {
  return status !== undefined && status < 500 && status !== 401 && status !== 403 && status !== 407 && status !== 429;
}
