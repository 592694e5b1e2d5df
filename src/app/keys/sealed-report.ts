import type { Db } from '../../store/db.ts';
import { listKnownKeys } from '../../store/sealing/master-keys.ts';
import { countSealed, countUnreadable, secretsWithout } from '../../store/sealing/sealed-rows.ts';
import { createKeyring, identityOf } from '../../store/sealing/sealing.ts';

/** What the master keys of an environment open of a database. */
export type SealedReport = {
  /** The keys that values are sealed with, and whether this environment has them. */
  keys: { id: string; in_ring: boolean; rows: { [table: string]: number } }[];
  /** Whether there is a key here to try the values with. */
  tried: boolean;
  /** Number of values that no key here opens, by table: their key is missing, or they were changed. */
  unreadable: { [table: string]: number };
  /** Which of them are secrets of servers that need a missing key, up to a hundred. */
  unreadable_secrets: { slug: string; name: string; key: string }[];
};

const mostListed = 100;

/** Opens every sealed value. */
export async function sealedReport(db: Db, masters: readonly Buffer[]): Promise<SealedReport> {
  const own = masters.map((master) => identityOf(master).id);
  const uses = await countSealed(db);
  const known = (await listKnownKeys(db)).filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  const ids = [...new Set([...known, ...uses.map(({ keyId }) => keyId)])];
  const [first, ...others] = masters;
  const secrets = first ? await secretsWithout(db, own, mostListed) : [];
  return {
    tried: first !== undefined,
    keys: ids.map((id) => ({
      id,
      in_ring: own.includes(id),
      rows: Object.fromEntries(uses.filter(({ keyId }) => keyId === id).map(({ table, rows }) => [table, rows])),
    })),
    unreadable: first ? await countUnreadable(db, createKeyring([first, ...others])) : {},
    unreadable_secrets: secrets.map(({ slug, name, keyId }) => ({ slug, name, key: keyId })),
  };
}
