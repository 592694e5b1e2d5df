import { readFileSync } from 'node:fs';
import { AppError } from '@toolhost/errors/errors';
import { type Config, readStoreConfig, type Settings } from '../../config.ts';
import { readLocalMasterKeys } from '../../local/master-key.ts';
import { createLog } from '../../log.ts';
import type { Db } from '../../store/db.ts';
import {
  countSealed,
  countUnreadable,
  findUnreadableSecrets,
  isSameKey,
  listKnownKeys,
} from '../../store/sealing/master-keys.ts';
import { createKeyring, getKeyIdentity, sealedColumns } from '../../store/sealing/sealing.ts';
import { openStore, type Store } from '../open-store.ts';
import { rejectMissingDatabase } from '../operator.ts';
import { processClocks } from '../runtime-options.ts';

/** Database and master keys of an environment, for operator commands. */
export type KeyOperator = { config: Config; store: Store; masters: readonly Buffer[] };

/** Maximum number of unreadable secrets that are listed. */
const maxListedSecrets = 100;

/** @throws ConfigError; AppError notFound if there is no database */
export async function openKeyOperator(env: NodeJS.ProcessEnv): Promise<KeyOperator> {
  const settings = readStoreConfig(env, readText);
  const { config } = settings;
  rejectMissingDatabase(config);
  const store = await openStore(settings, false, createLog('warn'), processClocks);
  return { config, store, masters: getMasterKeys(settings) };
}

/** Returns the master keys of an environment; empty if it has none. */
export function getMasterKeys({ config, secrets }: Settings): readonly Buffer[] {
  return secrets.masterKeys ?? readLocalMasterKeys(config.dataDir) ?? [];
}

const readText = (path: string) => readFileSync(path, 'utf8');

export type KeyStatus = {
  id: string;
  /** True if the environment has the key. */
  in_ring: boolean;
  /** True if the environment's key also opens the check value in the database. */
  opens: boolean;
  /** True for the first key of the environment, which seals new values. */
  seals: boolean;
  /** Number of values sealed with the key, by table. */
  rows: { [table: string]: number };
};

export type MasterKeyStatus = {
  keys: KeyStatus[];
  /** Secrets that no key of the environment can open, at most 100. */
  unreadable_secrets: { slug: string; name: string; key: string }[];
};

/** Lists the keys and counts the values that each has sealed. Reads every sealed value, and opens none. */
export async function getMasterKeyStatus({ store: { db }, masters }: KeyOperator): Promise<MasterKeyStatus> {
  const keysById = new Map(masters.map((master) => [getKeyIdentity(master).id, master]));
  const knownKeys = await listKnownKeys(db);
  const uses = await countSealed(db);
  const ids = new Set([...keysById.keys(), ...knownKeys.map(({ id }) => id), ...uses.map(({ keyId }) => keyId)]);
  const [sealingId] = keysById.keys();
  const keys = [...ids].map((id) => {
    const master = keysById.get(id);
    const knownKey = knownKeys.find((key) => key.id === id);
    const countRows = (table: string) => uses.find((use) => use.keyId === id && use.table === table)?.rows ?? 0;
    return {
      id,
      in_ring: master !== undefined,
      opens: master !== undefined && (knownKey === undefined || isSameKey(knownKey, master)),
      seals: id === sealingId,
      rows: Object.fromEntries(sealedColumns.map(({ table }) => [table, countRows(table)])),
    };
  });
  return { keys, unreadable_secrets: await findSecretsToReport(db, [...keysById.keys()]) };
}

async function findSecretsToReport(db: Db, keyIds: readonly string[]): Promise<MasterKeyStatus['unreadable_secrets']> {
  const secrets = await findUnreadableSecrets(db, keyIds, maxListedSecrets);
  return secrets.map(({ slug, name, keyId }) => ({ slug, name, key: keyId }));
}

/** @throws AppError invalid if the environment has no master key */
export function requireKeys({ masters, config }: KeyOperator): readonly [Buffer, ...Buffer[]] {
  const [first, ...others] = masters;
  if (first) return [first, ...others];
  throw new AppError(
    'invalid',
    `there is no master key: set MASTER_KEY or MASTER_KEY_FILE as for the service, or set DATA_DIR to the folder with master.key (currently ${config.dataDir})`,
  );
}

/** Values of a database that the master keys of an environment can open. */
export type SealedReport = {
  /** Keys that values are sealed with, and whether this environment has them. */
  keys: { id: string; in_ring: boolean; rows: { [table: string]: number } }[];
  /** True if the environment has a key, so that the values were tried. */
  tried: boolean;
  /** Number of values that no key here can open, by table. Their key is missing, or they were changed. */
  unreadable: { [table: string]: number };
  /** Unreadable secrets of servers that need a missing key, at most 100. */
  unreadable_secrets: MasterKeyStatus['unreadable_secrets'];
};

/** Opens every sealed value, and reports those that cannot be opened. */
export async function createSealedReport(db: Db, masters: readonly Buffer[]): Promise<SealedReport> {
  const keyIds = masters.map((master) => getKeyIdentity(master).id);
  const uses = await countSealed(db);
  const knownIds = (await listKnownKeys(db)).filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  const ids = [...new Set([...knownIds, ...uses.map(({ keyId }) => keyId)])];
  const [first, ...others] = masters;
  return {
    tried: first !== undefined,
    keys: ids.map((id) => ({
      id,
      in_ring: keyIds.includes(id),
      rows: Object.fromEntries(uses.filter(({ keyId }) => keyId === id).map(({ table, rows }) => [table, rows])),
    })),
    unreadable: first ? await countUnreadable(db, createKeyring([first, ...others])) : {},
    unreadable_secrets: first ? await findSecretsToReport(db, keyIds) : [],
  };
}
