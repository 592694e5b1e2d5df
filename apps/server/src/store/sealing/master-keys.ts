import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
import { isPostgres } from '../changes/follow-changes.ts';
import type { Db } from '../db.ts';
import { transact } from '../engine/watched-dialect.ts';
import { toSqlList } from '../page.ts';
import type { Tables } from '../schema.ts';
import {
  contexts,
  createKeyring,
  getContext,
  getKeyIdentity,
  type Keyring,
  type SealedColumn,
  sealedColumns,
} from './sealing.ts';

// No query here takes a workspace, because the whole service has one master key.

/** Master key that this database knows. */
export type KnownMasterKey = Selectable<Tables['master_keys']>;

/** Arbitrary number, identical in every process, so that only one at a time checks its keys against the database. */
const advisoryLock = 7_236_492;
/** Text that each known key has sealed, so that the database recognizes the key later. */
const canaryText = 'toolhost';

export async function listKnownKeys(db: Db): Promise<KnownMasterKey[]> {
  return db.selectFrom('master_keys').selectAll().orderBy('created_at').orderBy('id').execute();
}

/** Returns the sealing key of the process that started last. */
export function getSealingKey(knownKeys: readonly KnownMasterKey[]): KnownMasterKey | undefined {
  return knownKeys.reduce<KnownMasterKey | undefined>(
    (latest, key) => ((key.sealing_since ?? -1) > (latest?.sealing_since ?? -1) ? key : latest),
    undefined,
  );
}

/** Returns true if this key is the one that the database knows under its id. */
export function isSameKey(known: KnownMasterKey, master: Buffer): boolean {
  try {
    return createKeyring([master]).open(known.canary, canaryContext(known.id)) === canaryText;
  } catch {
    // A canary that does not open indicates another key.
    return false;
  }
}

/** Runs work on the known keys while no other process changes them. */
export function withMasterKeyLock<Result>(db: Kysely<Tables>, work: (db: Db) => Promise<Result>): Promise<Result> {
  return transact(db, async (transaction) => {
    if (isPostgres(transaction)) await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
    return work(transaction);
  });
}

/** Stores a canary for each new key, and records that the first key seals from now on. */
export async function registerKeys(db: Db, masters: readonly Buffer[], keyring: Keyring, at: number): Promise<void> {
  for (const master of masters) {
    const { id, macKey } = getKeyIdentity(master);
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
  const knownKeys = await listKnownKeys(db);
  // Always later than the time of another key, even if the clock stepped back.
  const sealingSince = Math.max(at, (getSealingKey(knownKeys)?.sealing_since ?? 0) + 1);
  await db
    .updateTable('master_keys')
    .set({ sealing_since: sealingSince, retired_at: null })
    .where('id', '=', keyring.keyIds[0])
    .execute();
}

/** Records that no value is sealed with these keys anymore. */
export async function retireKeys(db: Db, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return;
  await db.updateTable('master_keys').set({ retired_at: at }).where('id', 'in', ids).execute();
}

/** Returns the MAC keys of master keys that left the keyring, if the keyring can open them. */
export function openRetiredMacKeys(knownKeys: readonly KnownMasterKey[], keyring: Keyring): Buffer[] {
  const retired = knownKeys.filter(({ id }) => !keyring.keyIds.includes(id));
  return retired.flatMap(({ id, sealed_mac_key }) => {
    try {
      return [Buffer.from(keyring.open(sealed_mac_key, contexts.macKey(id)), 'base64')];
    } catch {
      // Sealed with a lost key. Agents that it authenticated register again.
      return [];
    }
  });
}

function canaryContext(id: string): string {
  return `master_keys|canary|${id}`;
}

/** Returns the SQL for the key ID in a sealed value, which follows `v1.`. */
export const getKeyIdColumn = (column: string) => sql<string>`substr(${sql.ref(column)}, 4, 8)`;

/** Number of values in a table that are sealed with a key. */
export type KeyUse = { table: string; keyId: string; rows: number };

/** Counts every sealed value by table and key. */
export async function countSealed(db: Db): Promise<KeyUse[]> {
  const uses: KeyUse[] = [];
  for (const { table, column } of sealedColumns) {
    const keyId = getKeyIdColumn(column);
    const { rows } = await sql<{ key_id: string; rows: number }>`
      select ${keyId} as key_id, count(*) as rows from ${sql.table(table)} where ${sql.ref(column)} <> '' group by 1`.execute(
      db,
    );
    uses.push(...rows.map((row) => ({ table, keyId: row.key_id, rows: Number(row.rows) })));
  }
  return uses;
}

/** Returns the first secrets that none of these keys can open. */
export async function findUnreadableSecrets(
  db: Db,
  keyIds: readonly string[],
  limit: number,
): Promise<{ slug: string; name: string; keyId: string; workspaceId: string; serverId: string }[]> {
  const keyId = getKeyIdColumn('secrets.sealed_value');
  return db
    .selectFrom('secrets')
    .innerJoin('servers', 'servers.id', 'secrets.server_id')
    .select(['servers.slug as slug', 'secrets.name as name', 'secrets.workspace_id as workspaceId'])
    .select(['secrets.server_id as serverId', keyId.as('keyId')])
    .where(keyId, 'not in', toSqlList(keyIds))
    .orderBy('secrets.server_id')
    .orderBy('secrets.name')
    .limit(limit)
    .execute();
}

/** Result of a batch. `next` is the start of the following batch, undefined after the last one. */
type Batch = { resealed: number; changedConcurrently: number; unreadable: number; next: readonly string[] | undefined };

type SealedRow = { [column: string]: string };

/**
 * Reseals the next values of a column with the first key of the keyring. Each value is replaced only if it has not
 * changed since it was read, so concurrent writes are preserved. Values that no key of the keyring can open remain
 * unchanged.
 */
export async function resealBatch(
  db: Db,
  keyring: Keyring,
  sealed: SealedColumn,
  { after, limit }: { after: readonly string[] | undefined; limit: number },
): Promise<Batch> {
  const { table, column, key } = sealed;
  const hasOldKey = sql`and ${sql.ref(column)} not like ${`v1.${keyring.keyIds[0]}.%`}`;
  const rows = await findNextRows(db, sealed, { after, limit, condition: hasOldKey });
  const batch = { resealed: 0, changedConcurrently: 0, unreadable: 0 };
  for (const row of rows) {
    const oldSealed = row[column] as string;
    const value = tryOpen(keyring, oldSealed, getContext(sealed, row));
    if (value === undefined) {
      batch.unreadable++;
      continue;
    }
    const newSealed = keyring.seal(value, getContext(sealed, row));
    const rowCondition = sql.join(
      key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    );
    const { numAffectedRows } = await sql`
      update ${sql.table(table)} set ${sql.ref(column)} = ${newSealed} where ${rowCondition} and ${sql.ref(column)} = ${oldSealed}`.execute(
      db,
    );
    batch[numAffectedRows === 0n ? 'changedConcurrently' : 'resealed']++;
  }
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return { ...batch, next: last && toKeyValues(last, key) };
}

const rowsPerBatch = 200;

/** Opens every sealed value, and counts by table those that cannot be opened. */
export async function countUnreadable(db: Db, keyring: Keyring): Promise<{ [table: string]: number }> {
  const unreadable: { [table: string]: number } = {};
  for (const sealed of sealedColumns) {
    const { table, column, key } = sealed;
    let rows: SealedRow[] = [];
    do {
      const last = rows.at(-1);
      rows = await findNextRows(db, sealed, { after: last && toKeyValues(last, key), limit: rowsPerBatch });
      const unopened = rows.filter(
        (row) => tryOpen(keyring, row[column] as string, getContext(sealed, row)) === undefined,
      );
      if (unopened.length > 0) unreadable[table] = (unreadable[table] ?? 0) + unopened.length;
    } while (rows.length === rowsPerBatch);
  }
  return unreadable;
}

const toKeyValues = (row: SealedRow, key: readonly string[]) => key.map((name) => row[name] as string);

/** Returns the next rows with a sealed value after a key, in key order. */
async function findNextRows(
  db: Db,
  { table, column, key, contextColumns }: SealedColumn,
  {
    after,
    limit,
    condition = sql``,
  }: { after: readonly string[] | undefined; limit: number; condition?: RawBuilder<unknown> },
): Promise<SealedRow[]> {
  const keys = sql.join(key.map((name) => sql.ref(name)));
  const afterKey = after ? sql`and (${keys}) > (${sql.join(after)})` : sql``;
  const { rows } = await sql<SealedRow>`
    select ${sql.join([...key, ...contextColumns, column].map((name) => sql.ref(name)))} from ${sql.table(table)}
    where ${sql.ref(column)} <> '' ${condition} ${afterKey} order by ${keys} limit ${limit}`.execute(db);
  return rows;
}

/**
 * Opens a value as bytes, because not every value is text. Returns undefined if no key opens the value, or if it was
 * tampered with.
 */
function tryOpen(keyring: Keyring, value: string, context: string): Buffer | undefined {
  try {
    return keyring.openBytes(value, context);
  } catch {
    // Counted, and reported with the missing key.
    return undefined;
  }
}
