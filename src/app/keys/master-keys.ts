import { readFileSync } from 'node:fs';
import { type Config, readStoreConfig } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { findLocalMasterKeys } from '../../local/master-key.ts';
import { createLog } from '../../log.ts';
import type { Db } from '../../store/db.ts';
import {
  countSealed,
  countUnreadable,
  isSameKey,
  listKnownKeys,
  secretsWithout,
} from '../../store/sealing/master-keys.ts';
import { createKeyring, identityOf, sealedColumns } from '../../store/sealing/sealing.ts';
import { openStore, type Store } from '../open-store.ts';
import { refuseMissingDatabase } from '../operator.ts';
import { processClocks } from '../surroundings.ts';

/** Database and master keys of an environment, for operator commands. */
export type KeyOperator = { config: Config; store: Store; masters: readonly Buffer[] };

/** Maximum number of unreadable secrets that are listed. */
const mostListed = 100;

/** @throws ConfigError; AppError notFound if there is no database */
export async function openKeyOperator(env: NodeJS.ProcessEnv): Promise<KeyOperator> {
  const settings = readStoreConfig(env, readText);
  const { config, secrets } = settings;
  refuseMissingDatabase(config);
  const store = await openStore(settings, false, createLog('warn'), processClocks);
  return { config, store, masters: secrets.masterKeys ?? findLocalMasterKeys(config.dataDir) ?? [] };
}

const readText = (path: string) => readFileSync(path, 'utf8');

export type KeyStatus = {
  id: string;
  /** `in_ring`: the environment has the key. `opens`: it also opens the key's check value in the database. */
  in_ring: boolean;
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

/**
 * Lists the keys and counts the values that each has sealed. Reads every sealed value in the database, and opens
 * none.
 */
export async function masterKeyStatus({ store: { db }, masters }: KeyOperator): Promise<MasterKeyStatus> {
  const ring = new Map(masters.map((master) => [identityOf(master).id, master]));
  const known = await listKnownKeys(db);
  const uses = await countSealed(db);
  const ids = new Set([...ring.keys(), ...known.map(({ id }) => id), ...uses.map(({ keyId }) => keyId)]);
  const [sealing] = ring.keys();
  const keys = [...ids].map((id) => {
    const master = ring.get(id);
    const canary = known.find((key) => key.id === id);
    const rowsOf = (table: string) => uses.find((use) => use.keyId === id && use.table === table)?.rows ?? 0;
    return {
      id,
      in_ring: master !== undefined,
      opens: master !== undefined && (canary === undefined || isSameKey(canary, master)),
      seals: id === sealing,
      rows: Object.fromEntries(sealedColumns.map(({ table }) => [table, rowsOf(table)])),
    };
  });
  return { keys, unreadable_secrets: await unreadableSecrets(db, [...ring.keys()]) };
}

async function unreadableSecrets(db: Db, own: readonly string[]): Promise<MasterKeyStatus['unreadable_secrets']> {
  const secrets = await secretsWithout(db, own, mostListed);
  return secrets.map(({ slug, name, keyId }) => ({ slug, name, key: keyId }));
}

/** @throws AppError invalid if the environment has no master key */
export function needKeys({ masters, config }: KeyOperator): readonly [Buffer, ...Buffer[]] {
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
  /** True if there is a key here to try the values with. */
  tried: boolean;
  /** Number of values that no key here can open, by table. Their key is missing, or they were changed. */
  unreadable: { [table: string]: number };
  /** Unreadable secrets of servers that need a missing key, at most 100. */
  unreadable_secrets: MasterKeyStatus['unreadable_secrets'];
};

/** Opens every sealed value. */
export async function sealedReport(db: Db, masters: readonly Buffer[]): Promise<SealedReport> {
  const own = masters.map((master) => identityOf(master).id);
  const uses = await countSealed(db);
  const known = (await listKnownKeys(db)).filter(({ retired_at }) => retired_at === null).map(({ id }) => id);
  const ids = [...new Set([...known, ...uses.map(({ keyId }) => keyId)])];
  const [first, ...others] = masters;
  return {
    tried: first !== undefined,
    keys: ids.map((id) => ({
      id,
      in_ring: own.includes(id),
      rows: Object.fromEntries(uses.filter(({ keyId }) => keyId === id).map(({ table, rows }) => [table, rows])),
    })),
    unreadable: first ? await countUnreadable(db, createKeyring([first, ...others])) : {},
    unreadable_secrets: first ? await unreadableSecrets(db, own) : [],
  };
}
