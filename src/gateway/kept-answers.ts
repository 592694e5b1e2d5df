import type { Random } from '../domain/ids.ts';
import type { Db } from '../store/db.ts';
import type { Keyring } from '../store/sealing/sealing.ts';

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
