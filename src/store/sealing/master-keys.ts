import { type Kysely, type Selectable, sql } from 'kysely';
import { isPostgres } from '../changes/changes.ts';
import type { Db } from '../db.ts';
import type { Tables } from '../schema.ts';
import { transact } from '../transact.ts';
import { contexts } from './sealed-columns.ts';
import { createKeyring, identityOf, type Keyring } from './sealing.ts';

// No query here names a workspace: the whole service has one master key.

/** A master key that this database knows. */
export type KnownKey = Selectable<Tables['master_keys']>;

/** Any number; the same in every replica, so that one of them at a time is admitted with its keys. */
const advisoryLock = 7_236_492;
const canaryText = 'toolhost';

export async function listKnownKeys(db: Db): Promise<KnownKey[]> {
  return db.selectFrom('master_keys').selectAll().orderBy('created_at').orderBy('id').execute();
}

/** The sealing key of the process that was started last. */
export function sealingKeyOf(known: readonly KnownKey[]): KnownKey | undefined {
  return known.reduce<KnownKey | undefined>(
    (latest, key) => ((key.sealing_since ?? -1) > (latest?.sealing_since ?? -1) ? key : latest),
    undefined,
  );
}

/** Whether this key is the one that the database knows by its id. */
export function isSameKey(known: KnownKey, master: Buffer): boolean {
  try {
    return createKeyring([master]).open(known.canary, canaryContext(known.id)) === canaryText;
  } catch {
    // A canary that does not open shows another key.
    return false;
  }
}

/** Runs work on the known keys while no other process changes them. */
export function whileAlone<Result>(db: Kysely<Tables>, work: (db: Db) => Promise<Result>): Promise<Result> {
  return transact(db, async (transaction) => {
    if (isPostgres(transaction)) await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
    return work(transaction);
  });
}

/** Stores a canary of each new key, and records that the first key seals from now on. */
export async function rememberKeys(db: Db, masters: readonly Buffer[], keyring: Keyring, at: number): Promise<void> {
  for (const master of masters) {
    const { id, macKey } = identityOf(master);
    const values = {
      id,
      canary: createKeyring([master]).seal(canaryText, canaryContext(id)),
      sealed_mac_key: keyring.seal(macKey.toString('base64'), contexts.macKey(id)),
      created_at: at,
    };
    await db
      .insertInto('master_keys')
      .values(values)
      .onConflict((c) => c.column('id').doNothing())
      .execute();
  }
  const known = await listKnownKeys(db);
  // Never before the time of another key, even if the clock stepped back.
  const since = Math.max(at, (sealingKeyOf(known)?.sealing_since ?? 0) + 1);
  await db
    .updateTable('master_keys')
    .set({ sealing_since: since, retired_at: null })
    .where('id', '=', keyring.keyIds[0])
    .execute();
}

/** Records that no value is sealed with these keys any more. */
export async function retireKeys(db: Db, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return;
  await db.updateTable('master_keys').set({ retired_at: at }).where('id', 'in', ids).execute();
}

/** The authenticating parts of keys that left the ring, as far as the ring opens them. */
export function retiredMacKeys(known: readonly KnownKey[], keyring: Keyring): Buffer[] {
  const left = known.filter(({ id }) => !keyring.keyIds.includes(id));
  return left.flatMap(({ id, sealed_mac_key }) => {
    try {
      return [Buffer.from(keyring.open(sealed_mac_key, contexts.macKey(id)), 'base64')];
    } catch {
      // Sealed with a lost key; agents that it authenticated register again.
      return [];
    }
  });
}

function canaryContext(id: string): string {
  return `master_keys|canary|${id}`;
}
