import type { Random } from '../domain/ids.ts';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { Caller } from './callers/caller.ts';

/** Dependencies of what stores parts of answers for some minutes: rests of long answers, and large files. */
export type KeptAnswersOptions = {
  db: Db;
  /** Writes without delaying calls. */
  records: Db;
  keyring: Keyring;
  random: Random;
  /** The database's time, epoch ms. */
  now: () => number;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/**
 * Identifies the address of a caller that no key and no login vouches for; undefined for every other caller. No address
 * can be read from it.
 */
export function strangerOf(caller: Caller, workspaceId: string, keyring: Keyring): string | undefined {
  if (caller.keyId !== undefined) return undefined;
  return keyring.mac(`${workspaceId} ${caller.network}`, 'address of files');
}
