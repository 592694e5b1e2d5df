import type { Db } from './db.ts';
import { inPieces } from './delete-in-steps.ts';

/** The last use of API keys and logins: noted in memory by each request, and written with the records of calls. */
export type CredentialUses = {
  keyUsed(id: string): void;
  loginUsed(id: string): void;
  /** Number of credentials whose use is not written yet. */
  waiting(): number;
  /** @throws errors of the database; the uses that it did not take wait for the next write */
  write(): Promise<void>;
};

type Used = { table: 'api_keys' | 'grants'; ids: Set<string> };

/** Ids in one statement. */
const idsAtOnce = 100;

/** `now` is the database's time. */
export function createCredentialUses(db: Db, now: () => number): CredentialUses {
  const keys: Used = { table: 'api_keys', ids: new Set() };
  const logins: Used = { table: 'grants', ids: new Set() };

  async function writeOf({ table, ids }: Used): Promise<void> {
    for (const some of inPieces([...ids].sort(), idsAtOnce)) {
      // Removed first, so that a use during the statement is written by the next one.
      for (const id of some) ids.delete(id);
      await touch(db, table, some, now()).catch((error: unknown) => {
        for (const id of some) ids.add(id);
        throw error;
      });
    }
  }

  return {
    keyUsed: (id) => void keys.ids.add(id),
    loginUsed: (id) => void logins.ids.add(id),
    waiting: () => keys.ids.size + logins.ids.size,
    async write() {
      await writeOf(keys);
      await writeOf(logins);
    },
  };
}

/** No workspace: these credentials were just verified. */
async function touch(db: Db, table: Used['table'], ids: readonly string[], at: number): Promise<void> {
  await db.updateTable(table).set({ last_used_at: at }).where('id', 'in', ids).execute();
}
