import type { Random } from '@toolhost/credentials/ids';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { Caller } from './callers/caller.ts';

/**
 * Dependencies of the stores that retain parts of results for a few minutes: continuations of long results, and large
 * files.
 */
export type ResultStoreOptions = {
  db: Db;
  /** Database handle whose writes do not delay calls. */
  records: Db;
  keyring: Keyring;
  random: Random;
  /** Returns the database time, in epoch ms. */
  now: () => number;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/**
 * Identifies the network of a caller that has neither an API key nor a login, as a MAC that does not reveal the
 * address. Returns undefined for every other caller.
 */
export function getUnverifiedCallerId(caller: Caller, workspaceId: string, keyring: Keyring): string | undefined {
  if (caller.keyId !== undefined) return undefined;
  return keyring.mac(`${workspaceId} ${caller.network}`, 'address of files');
}
