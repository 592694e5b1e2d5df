import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '@toolhost/errors/errors';
import { findProcessMasterKeys } from '../../store/changes/processes.ts';
import { discardSealed } from '../../store/discard-sealed.ts';
import { lockSqlite } from '../../store/engine/sqlite-guard.ts';
import { transact } from '../../store/engine/watched-dialect.ts';
import {
  countSealed,
  getSealingKey,
  type KeyUse,
  listKnownKeys,
  registerKeys,
  resealBatch,
  retireKeys,
  withMasterKeyLock,
} from '../../store/sealing/master-keys.ts';
import {
  createKeyring,
  getKeyIdentity,
  type Keyring,
  type SealedColumn,
  sealedColumns,
} from '../../store/sealing/sealing.ts';
import { programName } from '../../version.ts';
import { getDatabasePath } from '../open-store.ts';
import { type KeyOperator, requireKeys } from './master-keys.ts';

export type ResealResult = {
  sealing_key: string;
  /** Number of resealed values, by table. */
  resealed: { [table: string]: number };
  /** Values that are still sealed with other keys: the environment lacks the key, or a process still seals with it. */
  left: { key: string; table: string; rows: number; in_ring: boolean }[];
  /** Keys that no value is sealed with anymore. */
  unused_keys: string[];
};

const rowsPerBatch = 100;
/** Pause between two batches, so that other writers can proceed. */
const pauseMs = 20;

/**
 * Reseals all values with the first key of the environment, in small transactions. The service may be running. An
 * interrupted run preserves its progress.
 * @throws AppError conflict if a serving process does not seal with that key yet
 */
export async function reseal(operator: KeyOperator): Promise<ResealResult> {
  const { store, config } = operator;
  const masters = requireKeys(operator);
  const keyring = createKeyring(masters);
  const release = await rejectEarlyReseal(operator, keyring, getDatabasePath(config));
  try {
    await withMasterKeyLock(store.db, (db) => registerKeys(db, masters, keyring, store.time.now()));
    const resealed: ResealResult['resealed'] = {};
    for (const column of sealedColumns) resealed[column.table] = await resealColumn(operator, keyring, column);
    const remaining = (await countSealed(store.db)).filter(({ keyId }) => keyId !== keyring.keyIds[0]);
    return { sealing_key: keyring.keyIds[0], resealed, ...(await retireUnused(operator, keyring, remaining)) };
  } finally {
    release();
  }
}

async function resealColumn({ store }: KeyOperator, keyring: Keyring, column: SealedColumn): Promise<number> {
  let resealed = 0;
  let after: readonly string[] | undefined;
  for (;;) {
    const batch = await transact(store.db, (db) => resealBatch(db, keyring, column, { after, limit: rowsPerBatch }));
    resealed += batch.resealed;
    if (!batch.next) return resealed;
    after = batch.next;
    await delay(pauseMs);
  }
}

async function retireUnused({ store }: KeyOperator, keyring: Keyring, remaining: readonly KeyUse[]) {
  const used = new Set(remaining.map(({ keyId }) => keyId));
  const knownKeys = await listKnownKeys(store.db);
  const unused = knownKeys.map(({ id }) => id).filter((id) => id !== keyring.keyIds[0] && !used.has(id));
  await retireKeys(store.db, unused, store.time.now());
  return {
    left: remaining.map(({ keyId, table, rows }) => ({
      key: keyId,
      table,
      rows,
      in_ring: keyring.keyIds.includes(keyId),
    })),
    unused_keys: unused,
  };
}

/**
 * Rejects resealing while a serving process does not seal with the first key yet. Such a process could not read
 * resealed values, or would seal with the old key again. Returns a function that releases the lock of a SQLite file.
 */
async function rejectEarlyReseal({ store }: KeyOperator, keyring: Keyring, file: string): Promise<() => void> {
  const [first] = keyring.keyIds;
  const tooEarlyError = (subject: string) =>
    new AppError(
      'conflict',
      `${subject} does not seal with the key ${first} yet, which is the first key of MASTER_KEY here; start every process with this key first (new,old) before you reseal`,
    );
  if (store.engine === 'postgres') {
    const outdated = (await findProcessMasterKeys(store.db, store.time.now())).filter(
      ({ masterKeys }) => masterKeys[0] !== first,
    );
    if (outdated[0]) throw tooEarlyError(`a serving process on ${outdated[0].host}`);
    return () => undefined;
  }
  if (getSealingKey(await listKnownKeys(store.db))?.id === first) return () => undefined;
  try {
    return lockSqlite(file).release;
  } catch (error) {
    if (error instanceof AppError) throw tooEarlyError('the service on this database');
    throw error;
  }
}

/**
 * Discards the values that are sealed with a lost key.
 * @throws AppError conflict if the environment or a process has the key, notFound if nothing is sealed with it
 */
export async function discardKey(operator: KeyOperator, keyId: string): Promise<{ [table: string]: number }> {
  const { store, masters } = operator;
  if (masters.some((master) => getKeyIdentity(master).id === keyId))
    throw new AppError('conflict', `the key ${keyId} is in MASTER_KEY, so it is not lost; remove --discard`);
  const uses = (await countSealed(store.db)).filter((use) => use.keyId === keyId);
  const isKnown = (await listKnownKeys(store.db)).some(({ id }) => id === keyId);
  if (uses.length === 0 && !isKnown)
    throw new AppError(
      'notFound',
      `no value is sealed with the key ${keyId}; run "${programName} master-key status" to list the keys`,
    );
  const release = await rejectKeyInUse(operator, keyId);
  try {
    return await discardSealed(store.db, { keyId, now: store.time.now, random: randomBytes });
  } finally {
    release();
  }
}

/** Rejects a key that a process still has. A SQLite file must not be in use at all, because it lists no processes. */
async function rejectKeyInUse({ store, config }: KeyOperator, keyId: string): Promise<() => void> {
  if (store.engine === 'sqlite') return lockSqlite(getDatabasePath(config)).release;
  const processWithKey = (await findProcessMasterKeys(store.db, store.time.now())).find(({ masterKeys }) =>
    masterKeys.includes(keyId),
  );
  if (!processWithKey) return () => undefined;
  throw new AppError(
    'conflict',
    `a serving process on ${processWithKey.host} has the key ${keyId}, so it is not lost; copy the key from that process`,
  );
}
