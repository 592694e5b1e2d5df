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

/** Tables whose sealed values cannot be recreated. */
const preciousTables: readonly string[] = ['secrets', 'grants'];

const order = 'The order of a rotation: old,new everywhere, then new,old everywhere, then reseal, then new';

/** The keys of a process, and the name of the setting for people. */
export type UsableKeys = { masters: readonly Buffer[]; setting: string };

/**
 * Opens the keyring of a process that begins to serve. The store is closed when the keys are refused.
 * @throws AppError conflict when the database is sealed with other keys, or when other processes could not open what
 * this one seals
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

/** More keys than any operator has had; a database that names more was filled by something else. */
const mostLogged = 100;

/** Logs each missing key once. */
function missingKeyLog(log: Log): (id: string) => void {
  const logged = new Set<string>();
  return (id) => {
    if (logged.has(id) || logged.size === mostLogged) return;
    logged.add(id);
    log.error({ keyId: id }, 'a stored value is sealed with a master key that this process was not given');
  };
}

/**
 * Compares the keys with those that the database knows, and stores new ones. Returns sentences for the log.
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

/** Whether nothing has changed since the last start: every key is known, the same key seals, and the others are retired. */
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

/** Refuses a key whose id belongs to another key, by chance or by a changed row. */
function refuseImpostors(known: readonly KnownKey[], { masters, setting }: UsableKeys): void {
  const own = new Map(known.map((key) => [key.id, key]));
  const impostor = masters
    .map((master) => ({ master, key: own.get(identityOf(master).id) }))
    .find(({ master, key }) => key && !isSameKey(key, master));
  if (!impostor) return;
  throw new AppError(
    'conflict',
    `the key ${identityOf(impostor.master).id} of ${setting} does not open what the database keeps to know it by; its row in the table master_keys was changed, so restore the database from a backup`,
  );
}

/** Refuses keys with which this process and the others could not open what each other seals. */
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
      `other processes of this service seal with the key ${sealing}, and ${setting} has only ${keyIds.join(', ')} here; give it that key too. ${order}`,
    );
  const without = others.filter(({ masterKeys }) => !masterKeys.includes(keyIds[0]));
  if (without.length === 0) return;
  const hosts = [...new Set(without.map(({ host }) => host))].slice(0, 5).join(', ');
  throw new AppError(
    'conflict',
    `${setting} would seal with the key ${keyIds[0]}, which ${without.length} of the processes that serve do not have (on ${hosts}); put it behind the old one until all have it. ${order}`,
  );
}

/** The keys that the database is sealed with, unless the ring has one of them. */
function databaseKeysOutside(known: readonly KnownKey[], { keyIds }: Keyring): string[] {
  const used = known.filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  return used.some((id) => keyIds.includes(id)) ? [] : used;
}

/**
 * A process that was paused while the values were resealed may have sealed some with the old key after it was retired. So
 * for this long a start looks for them, in ms.
 */
const watchedMs = 30 * 24 * 60 * 60_000;

function mayStillSeal({ retired_at }: KnownKey, now: number): boolean {
  return retired_at === null || now - retired_at < watchedMs;
}

/** Counts the values sealed with keys outside the ring. Skipped when all other keys were retired long ago. */
async function missingUses(db: Db, known: readonly KnownKey[], { keyIds }: Keyring, now: number): Promise<KeyUse[]> {
  const mayBe = known.length === 0 || known.some((key) => mayStillSeal(key, now) && !keyIds.includes(key.id));
  if (!mayBe) return [];
  return (await countSealed(db)).filter(({ table, keyId }) => table !== 'master_keys' && !keyIds.includes(keyId));
}

/** Message for keys that the database does not know, or that do not open all values that cannot be recreated. */
function missingSentence(
  ids: readonly string[],
  uses: readonly KeyUse[],
  { keyIds }: Keyring,
  setting: string,
): string {
  const counts = uses.map(({ table, keyId, rows }) => `, ${rows} rows of ${table} with ${keyId}`).join('');
  return `${setting} is not the key of this database, or not all of it: it has ${keyIds.join(', ')}, and the database is sealed with ${ids.join(', ')}${counts}. Give that key; to replace it, put it behind the new one (new,old) and reseal. "${programName} master-key status" says more. Where a key is lost for good, "${programName} master-key reseal --discard ${ids[0]}" gives up what it sealed`;
}

function lossSentence({ table, keyId, rows }: KeyUse): string {
  return `${rows} rows of ${table} are sealed with the key ${keyId}, which this process was not given; they cannot be read`;
}
