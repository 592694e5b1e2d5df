import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';
import { contextIn, type SealedColumn, sealedColumns } from './sealed-columns.ts';
import type { Keyring } from './sealing.ts';

// No query here names a workspace: the whole service has one master key.

/** Number of values of a table that are sealed with a key. */
export type KeyUse = { table: string; keyId: string; rows: number };

/** Reads every sealed value. */
export async function countSealed(db: Db): Promise<KeyUse[]> {
  const uses: KeyUse[] = [];
  for (const { table, column } of sealedColumns) {
    const keyId = sql<string>`substr(${sql.ref(column)}, 4, 8)`;
    const { rows } = await sql<{ key_id: string; rows: number }>`
      select ${keyId} as key_id, count(*) as rows from ${sql.table(table)} where ${sql.ref(column)} <> '' group by 1`.execute(
      db,
    );
    uses.push(...rows.map((row) => ({ table, keyId: row.key_id, rows: Number(row.rows) })));
  }
  return uses;
}

/** The first secrets that none of these keys opens. */
export async function secretsWithout(
  db: Db,
  keyIds: readonly string[],
  limit: number,
): Promise<{ slug: string; name: string; keyId: string; workspaceId: string; serverId: string }[]> {
  const keyId = sql<string>`substr(secrets.sealed_value, 4, 8)`;
  return db
    .selectFrom('secrets')
    .innerJoin('servers', 'servers.id', 'secrets.server_id')
    .select(['servers.slug as slug', 'secrets.name as name', 'secrets.workspace_id as workspaceId'])
    .select(['secrets.server_id as serverId', keyId.as('keyId')])
    .where(keyId, 'not in', [...keyIds, ''])
    .orderBy('secrets.server_id')
    .orderBy('secrets.name')
    .limit(limit)
    .execute();
}

/** The result of a batch: `next` is the start of the following one, undefined after the last. */
type Batch = { resealed: number; overtaken: number; unreadable: number; next: readonly string[] | undefined };

type SealedRow = { [column: string]: string };

/**
 * Seals the next values of a column with the first key of the ring. Each is replaced only if it has not changed since it
 * was read, so concurrent writes stay. Values that no key of the ring opens are left as they are.
 */
export async function resealBatch(
  db: Db,
  keyring: Keyring,
  sealed: SealedColumn,
  { after, limit }: { after: readonly string[] | undefined; limit: number },
): Promise<Batch> {
  const { table, column, key } = sealed;
  const isOld = sql`and ${sql.ref(column)} not like ${`v1.${keyring.keyIds[0]}.%`}`;
  const rows = await nextRows(db, sealed, { after, limit, which: isOld });
  const batch = { resealed: 0, overtaken: 0, unreadable: 0 };
  for (const row of rows) {
    const before = row[column] as string;
    const value = opened(keyring, before, contextIn(sealed, row));
    if (value === undefined) {
      batch.unreadable++;
      continue;
    }
    const after = keyring.seal(value, contextIn(sealed, row));
    const isRow = sql.join(
      key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    );
    const { numAffectedRows } = await sql`
      update ${sql.table(table)} set ${sql.ref(column)} = ${after} where ${isRow} and ${sql.ref(column)} = ${before}`.execute(
      db,
    );
    batch[numAffectedRows === 0n ? 'overtaken' : 'resealed']++;
  }
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return { ...batch, next: last && keyIn(last, key) };
}

const rowsTogether = 200;

/** Opens every sealed value, and counts by table those that do not open. */
export async function countUnreadable(db: Db, keyring: Keyring): Promise<{ [table: string]: number }> {
  const unreadable: { [table: string]: number } = {};
  for (const sealed of sealedColumns) {
    const { table, column, key } = sealed;
    let rows: SealedRow[] = [];
    do {
      const last = rows.at(-1);
      rows = await nextRows(db, sealed, { after: last && keyIn(last, key), limit: rowsTogether });
      const closed = rows.filter((row) => opened(keyring, row[column] as string, contextIn(sealed, row)) === undefined);
      if (closed.length > 0) unreadable[table] = (unreadable[table] ?? 0) + closed.length;
    } while (rows.length === rowsTogether);
  }
  return unreadable;
}

const keyIn = (row: SealedRow, key: readonly string[]) => key.map((name) => row[name] as string);

/** The rows with a sealed value that come after a key, in the order of the keys. */
async function nextRows(
  db: Db,
  { table, column, key, needs }: SealedColumn,
  { after, limit, which = sql`` }: { after: readonly string[] | undefined; limit: number; which?: RawBuilder<unknown> },
): Promise<SealedRow[]> {
  const keys = sql.join(key.map((name) => sql.ref(name)));
  const begin = after ? sql`and (${keys}) > (${sql.join(after)})` : sql``;
  const { rows } = await sql<SealedRow>`
    select ${sql.join([...key, ...needs, column].map((name) => sql.ref(name)))} from ${sql.table(table)}
    where ${sql.ref(column)} <> '' ${which} ${begin} order by ${keys} limit ${limit}`.execute(db);
  return rows;
}

/** Bytes, because not every value is text. Undefined when no key opens the value, or it was tampered with. */
function opened(keyring: Keyring, value: string, context: string): Buffer | undefined {
  try {
    return keyring.openBytes(value, context);
  } catch {
    // Counted, and reported with the missing key.
    return undefined;
  }
}
