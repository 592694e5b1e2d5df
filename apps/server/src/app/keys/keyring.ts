import { AppError } from '@toolhost/errors/errors';
import type { Settings } from '../../config.ts';
import { readOrCreateLocalMasterKeys } from '../../local/master-key.ts';
import type { Log } from '../../log.ts';
import { findProcessMasterKeys } from '../../store/changes/processes.ts';
import type { Db } from '../../store/db.ts';
import {
  countSealed,
  getSealingKey,
  isSameKey,
  type KeyUse,
  type KnownMasterKey,
  listKnownKeys,
  openRetiredMacKeys,
  registerKeys,
  retireKeys,
  withMasterKeyLock,
} from '../../store/sealing/master-keys.ts';
import { createKeyring, getKeyIdentity, type Keyring } from '../../store/sealing/sealing.ts';
import { programName } from '../../version.ts';
import type { Store } from '../open-store.ts';

/** Tables with sealed values that cannot be recreated. */
const irreplaceableTables: readonly string[] = ['secrets', 'grants'];

const rotationAdvice = 'Rotate in this order: old,new everywhere, then new,old everywhere, then reseal, then new';

/** Master keys of a process, and the name of their setting for messages. */
export type ConfiguredKeys = { masters: readonly Buffer[]; setting: string };

/**
 * Opens the keyring of a starting process. Closes the store if the keys are rejected.
 * @throws AppError conflict if the database is sealed with other keys, or if other processes could not open the
 * values that this process seals
 */
export async function openKeyring({ config, secrets }: Settings, store: Store, log: Log): Promise<Keyring> {
  const localKeys = secrets.masterKeys ? undefined : readOrCreateLocalMasterKeys(config.dataDir);
  const masters = secrets.masterKeys ?? localKeys?.keys ?? [];
  const configured = { masters, setting: localKeys ? `the file ${localKeys.file}` : 'MASTER_KEY' };
  try {
    for (const warning of await checkAndRegisterKeys(store, configured)) log.warn(warning);
  } catch (error) {
    localKeys?.removeIfCreated();
    await store.close();
    throw error;
  }
  const keyring = createKeyring(masters);
  const retired = openRetiredMacKeys(await listKnownKeys(store.db), keyring);
  return createKeyring(masters, { retiredMacKeys: retired, onMissingKey: createMissingKeyLog(log) });
}

/**
 * Maximum number of logged missing keys. No operator has had this many keys. A database that names more contains rows
 * from another source.
 */
const maxLoggedKeys = 100;

/** Creates a function that logs each missing key once. */
function createMissingKeyLog(log: Log): (id: string) => void {
  const logged = new Set<string>();
  return (id) => {
    if (logged.has(id) || logged.size === maxLoggedKeys) return;
    logged.add(id);
    log.error({ keyId: id }, 'a stored value is sealed with a master key that this process does not have');
  };
}

/**
 * Compares the keys with those that the database knows, and stores new keys. Returns sentences for the log.
 * @throws AppError conflict
 */
async function checkAndRegisterKeys(store: Store, configured: ConfiguredKeys): Promise<string[]> {
  const { db, time } = store;
  const keyring = createKeyring(configured.masters);
  await rejectIncompatibleKeys(store, keyring, configured);
  if (isUnchanged(await listKnownKeys(db), keyring, configured, time.now())) return [];
  return withMasterKeyLock(db, async (transaction) => {
    const knownKeys = await listKnownKeys(transaction);
    rejectMismatchedKeys(knownKeys, configured);
    const missing = await countMissingKeyUses(transaction, knownKeys, keyring, time.now());
    const irreplaceable = missing.filter(({ table }) => irreplaceableTables.includes(table));
    const missingIds = new Set([
      ...irreplaceable.map(({ keyId }) => keyId),
      ...findForeignDatabaseKeys(knownKeys, keyring),
    ]);
    if (missingIds.size > 0)
      throw new AppError('conflict', formatMissingKeys([...missingIds], irreplaceable, keyring, configured.setting));
    const used = new Set(missing.map(({ keyId }) => keyId));
    const unused = knownKeys.filter(({ id, retired_at }) => retired_at === null && !keyring.keyIds.includes(id));
    await retireKeys(
      transaction,
      unused.map(({ id }) => id).filter((id) => !used.has(id)),
      time.now(),
    );
    await registerKeys(transaction, configured.masters, keyring, time.now());
    return missing.map(formatLoss);
  });
}

/**
 * Returns true if nothing has changed since the last start: every configured key is known, the same key seals, and all
 * other keys of the database are retired.
 */
function isUnchanged(
  knownKeys: readonly KnownMasterKey[],
  { keyIds }: Keyring,
  { masters }: ConfiguredKeys,
  now: number,
): boolean {
  const keysById = new Map(knownKeys.map((key) => [key.id, key]));
  const areAllKnown = masters.every((master) => {
    const key = keysById.get(getKeyIdentity(master).id);
    return key !== undefined && isSameKey(key, master);
  });
  const otherKeys = knownKeys.filter(({ id }) => !keyIds.includes(id));
  const sealingKey = getSealingKey(knownKeys);
  return (
    areAllKnown &&
    sealingKey?.id === keyIds[0] &&
    sealingKey.retired_at === null &&
    otherKeys.every((key) => !canStillSeal(key, now))
  );
}

/** Rejects a key whose id belongs to another key, by chance or because a row was changed. */
function rejectMismatchedKeys(knownKeys: readonly KnownMasterKey[], { masters, setting }: ConfiguredKeys): void {
  const keysById = new Map(knownKeys.map((key) => [key.id, key]));
  const mismatch = masters
    .map((master) => ({ master, key: keysById.get(getKeyIdentity(master).id) }))
    .find(({ master, key }) => key && !isSameKey(key, master));
  if (!mismatch) return;
  throw new AppError(
    'conflict',
    `the key ${getKeyIdentity(mismatch.master).id} of ${setting} does not match its check value in the database; its row in the table master_keys was changed, so restore the database from a backup`,
  );
}

/** Rejects keys if this process and the others could not open the values that each other seals. */
async function rejectIncompatibleKeys(
  { db, time, engine }: Store,
  { keyIds }: Keyring,
  { setting }: ConfiguredKeys,
): Promise<void> {
  // Only one service can use a SQLite file, and all of its processes have the same keys.
  if (engine === 'sqlite') return;
  const otherProcesses = await findProcessMasterKeys(db, time.now());
  const unknownSealingKey = otherProcesses
    .map(({ masterKeys }) => masterKeys[0] ?? '')
    .find((id) => !keyIds.includes(id));
  if (unknownSealingKey !== undefined)
    throw new AppError(
      'conflict',
      `other processes of this service seal with the key ${unknownSealingKey}, but ${setting} has only ${keyIds.join(', ')} here; add that key. ${rotationAdvice}`,
    );
  const processesWithoutKey = otherProcesses.filter(({ masterKeys }) => !masterKeys.includes(keyIds[0]));
  if (processesWithoutKey.length === 0) return;
  const hosts = [...new Set(processesWithoutKey.map(({ host }) => host))].slice(0, 5).join(', ');
  throw new AppError(
    'conflict',
    `${setting} would seal with the key ${keyIds[0]}, which ${processesWithoutKey.length} of the serving processes do not have (on ${hosts}); place it after the old key until all have it. ${rotationAdvice}`,
  );
}

/** Returns the keys that the database is sealed with, unless the keyring has one of them. */
function findForeignDatabaseKeys(knownKeys: readonly KnownMasterKey[], { keyIds }: Keyring): string[] {
  const used = knownKeys.filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  return used.some((id) => keyIds.includes(id)) ? [] : used;
}

/**
 * Time in ms for which a start searches for values that are sealed with a retired key. A process that was paused
 * while the values were resealed may have sealed some with the old key after it was retired.
 */
const retiredKeySearchMs = 30 * 24 * 60 * 60_000;

function canStillSeal({ retired_at }: KnownMasterKey, now: number): boolean {
  return retired_at === null || now - retired_at < retiredKeySearchMs;
}

/** Counts the values that are sealed with keys outside the keyring. Skipped if all other keys were retired long ago. */
async function countMissingKeyUses(
  db: Db,
  knownKeys: readonly KnownMasterKey[],
  { keyIds }: Keyring,
  now: number,
): Promise<KeyUse[]> {
  const needsCount =
    knownKeys.length === 0 || knownKeys.some((key) => canStillSeal(key, now) && !keyIds.includes(key.id));
  if (!needsCount) return [];
  return (await countSealed(db)).filter(({ table, keyId }) => table !== 'master_keys' && !keyIds.includes(keyId));
}

/** Formats the message for a keyring that lacks keys of the database. `uses` are the values that it cannot open. */
function formatMissingKeys(
  ids: readonly string[],
  uses: readonly KeyUse[],
  { keyIds }: Keyring,
  setting: string,
): string {
  const counts = uses.map(({ table, keyId, rows }) => `, ${rows} rows of ${table} with ${keyId}`).join('');
  return `${setting} does not have all keys of this database: it has ${keyIds.join(', ')}, but the database is sealed with ${ids.join(', ')}${counts}. Add the missing key; to replace it, place it after the new one (new,old) and reseal. "${programName} master-key status" shows details. If a key is lost permanently, "${programName} master-key reseal --discard ${ids[0]}" discards the values that it sealed`;
}

function formatLoss({ table, keyId, rows }: KeyUse): string {
  return `${rows} rows of ${table} are sealed with the key ${keyId}, which this process does not have; they cannot be read`;
}
