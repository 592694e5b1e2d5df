import type { Settings } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { localMasterKeys } from '../../local/master-key.ts';
import type { Log } from '../../log.ts';
import { keysOfProcesses } from '../../store/changes/processes.ts';
import type { Db } from '../../store/db.ts';
import {
  countSealed,
  isSameKey,
  type KeyUse,
  type KnownKey,
  listKnownKeys,
  rememberKeys,
  retiredMacKeys,
  retireKeys,
  sealingKeyOf,
  whileAlone,
} from '../../store/sealing/master-keys.ts';
import { createKeyring, identityOf, type Keyring } from '../../store/sealing/sealing.ts';
import { programName } from '../../version.ts';
import type { Store } from '../open-store.ts';

/** Tables with sealed values that cannot be recreated. */
const preciousTables: readonly string[] = ['secrets', 'grants'];

const order = 'Rotate in this order: old,new everywhere, then new,old everywhere, then reseal, then new';

/** Keys of a process, and the name of their setting for messages. */
export type UsableKeys = { masters: readonly Buffer[]; setting: string };

/**
 * Opens the keyring of a starting process. Closes the store if the keys are rejected.
 * @throws AppError conflict if the database is sealed with other keys, or if other processes could not open the
 * values that this process seals
 */
export async function openKeyring({ config, secrets }: Settings, store: Store, log: Log): Promise<Keyring> {
  const local = secrets.masterKeys ? undefined : localMasterKeys(config.dataDir);
  const masters = secrets.masterKeys ?? local?.keys ?? [];
  const given = { masters, setting: local ? `the file ${local.file}` : 'MASTER_KEY' };
  try {
    for (const sentence of await admitKeys(store, given)) log.warn(sentence);
  } catch (error) {
    local?.removeNew();
    await store.close();
    throw error;
  }
  const keyring = createKeyring(masters);
  const retired = retiredMacKeys(await listKnownKeys(store.db), keyring);
  return createKeyring(masters, { retiredMacKeys: retired, onMissingKey: missingKeyLog(log) });
}

/**
 * Maximum number of logged missing keys. No operator has had this many keys. A database that names more contains rows
 * from another source.
 */
const mostLogged = 100;

/** Creates a function that logs each missing key once. */
function missingKeyLog(log: Log): (id: string) => void {
  const logged = new Set<string>();
  return (id) => {
    if (logged.has(id) || logged.size === mostLogged) return;
    logged.add(id);
    log.error({ keyId: id }, 'a stored value is sealed with a master key that this process does not have');
  };
}

/**
 * Compares the keys with those that the database knows, and stores new keys. Returns sentences for the log.
 * @throws AppError conflict
 */
async function admitKeys(store: Store, given: UsableKeys): Promise<string[]> {
  const { db, time } = store;
  const keyring = createKeyring(given.masters);
  await refuseUnlikeOthers(store, keyring, given);
  if (isSettled(await listKnownKeys(db), keyring, given, time.now())) return [];
  return whileAlone(db, async (transaction) => {
    const known = await listKnownKeys(transaction);
    refuseImpostors(known, given);
    const missing = await missingUses(transaction, known, keyring, time.now());
    const precious = missing.filter(({ table }) => preciousTables.includes(table));
    const unknown = new Set([...precious.map(({ keyId }) => keyId), ...databaseKeysOutside(known, keyring)]);
    if (unknown.size > 0)
      throw new AppError('conflict', missingSentence([...unknown], precious, keyring, given.setting));
    const used = new Set(missing.map(({ keyId }) => keyId));
    const done = known.filter(({ id, retired_at }) => retired_at === null && !keyring.keyIds.includes(id));
    await retireKeys(
      transaction,
      done.map(({ id }) => id).filter((id) => !used.has(id)),
      time.now(),
    );
    await rememberKeys(transaction, given.masters, keyring, time.now());
    return missing.map(lossSentence);
  });
}

/**
 * Returns true if nothing has changed since the last start: every key is known, the same key seals, and the others
 * are retired.
 */
function isSettled(known: readonly KnownKey[], { keyIds }: Keyring, { masters }: UsableKeys, now: number): boolean {
  const own = new Map(known.map((key) => [key.id, key]));
  const isKnown = masters.every((master) => {
    const key = own.get(identityOf(master).id);
    return key !== undefined && isSameKey(key, master);
  });
  const others = known.filter(({ id }) => !keyIds.includes(id));
  const sealing = sealingKeyOf(known);
  return (
    isKnown &&
    sealing?.id === keyIds[0] &&
    sealing.retired_at === null &&
    others.every((key) => !mayStillSeal(key, now))
  );
}

/** Rejects a key whose id belongs to another key, by chance or because a row was changed. */
function refuseImpostors(known: readonly KnownKey[], { masters, setting }: UsableKeys): void {
  const own = new Map(known.map((key) => [key.id, key]));
  const impostor = masters
    .map((master) => ({ master, key: own.get(identityOf(master).id) }))
    .find(({ master, key }) => key && !isSameKey(key, master));
  if (!impostor) return;
  throw new AppError(
    'conflict',
    `the key ${identityOf(impostor.master).id} of ${setting} does not match its check value in the database; its row in the table master_keys was changed, so restore the database from a backup`,
  );
}

/** Rejects keys if this process and the others could not open the values that each other seals. */
async function refuseUnlikeOthers(
  { db, time, engine }: Store,
  { keyIds }: Keyring,
  { setting }: UsableKeys,
): Promise<void> {
  // Only one service can use a SQLite file, and all of its processes have the same keys.
  if (engine === 'sqlite') return;
  const others = await keysOfProcesses(db, time.now());
  const sealing = others.map(({ masterKeys }) => masterKeys[0] ?? '').find((id) => !keyIds.includes(id));
  if (sealing !== undefined)
    throw new AppError(
      'conflict',
      `other processes of this service seal with the key ${sealing}, but ${setting} has only ${keyIds.join(', ')} here; add that key. ${order}`,
    );
  const without = others.filter(({ masterKeys }) => !masterKeys.includes(keyIds[0]));
  if (without.length === 0) return;
  const hosts = [...new Set(without.map(({ host }) => host))].slice(0, 5).join(', ');
  throw new AppError(
    'conflict',
    `${setting} would seal with the key ${keyIds[0]}, which ${without.length} of the serving processes do not have (on ${hosts}); place it after the old key until all have it. ${order}`,
  );
}

/** Returns the keys that the database is sealed with, unless the keyring has one of them. */
function databaseKeysOutside(known: readonly KnownKey[], { keyIds }: Keyring): string[] {
  const used = known.filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  return used.some((id) => keyIds.includes(id)) ? [] : used;
}

/**
 * Time in ms for which a start searches for values that are sealed with a retired key. A process that was paused
 * while the values were resealed may have sealed some with the old key after it was retired.
 */
const watchedMs = 30 * 24 * 60 * 60_000;

function mayStillSeal({ retired_at }: KnownKey, now: number): boolean {
  return retired_at === null || now - retired_at < watchedMs;
}

/** Counts the values that are sealed with keys outside the keyring. Skipped if all other keys were retired long ago. */
async function missingUses(db: Db, known: readonly KnownKey[], { keyIds }: Keyring, now: number): Promise<KeyUse[]> {
  const mayBe = known.length === 0 || known.some((key) => mayStillSeal(key, now) && !keyIds.includes(key.id));
  if (!mayBe) return [];
  return (await countSealed(db)).filter(({ table, keyId }) => table !== 'master_keys' && !keyIds.includes(keyId));
}

/**
 * Formats the message for keys that the database does not know, or that cannot open all values that cannot be
 * recreated.
 */
function missingSentence(
  ids: readonly string[],
  uses: readonly KeyUse[],
  { keyIds }: Keyring,
  setting: string,
): string {
  const counts = uses.map(({ table, keyId, rows }) => `, ${rows} rows of ${table} with ${keyId}`).join('');
  return `${setting} does not have all keys of this database: it has ${keyIds.join(', ')}, but the database is sealed with ${ids.join(', ')}${counts}. Add the missing key; to replace it, place it after the new one (new,old) and reseal. "${programName} master-key status" shows details. If a key is lost permanently, "${programName} master-key reseal --discard ${ids[0]}" discards the values that it sealed`;
}

function lossSentence({ table, keyId, rows }: KeyUse): string {
  return `${rows} rows of ${table} are sealed with the key ${keyId}, which this process does not have; they cannot be read`;
}
