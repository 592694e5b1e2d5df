import { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import type { Db } from '../db.ts';
import { openingFailure } from '../engine/opening-failure.ts';
import type { PostgresLocation } from '../engine/postgres-location.ts';
import { watchedDialect } from '../engine/watched-dialect.ts';
import type { Tables } from '../schema.ts';
import type { Row } from './backup-lines.ts';

/** One state of a database, which does not change while it is read, and which nobody waits for. */
export type TableSource = {
  /** Columns of a table in a fixed order; none when there is no such table. */
  columns(table: string): Promise<string[]>;
  rows(table: string, columns: readonly string[]): AsyncIterable<Row[]>;
  close(): Promise<void>;
};

/** Rows that are read together; one of them may have several megabytes. */
const rowsTogether = 100;
const busyMs = 5000;

/**
 * Reads a SQLite file on a connection of its own, within one transaction. In WAL mode writers go on meanwhile; the
 * write-ahead log grows until the transaction ends.
 */
export function openSqliteSource(file: string): TableSource {
  try {
    const database = new DatabaseSync(file, { readOnly: true });
    // The first read fixes the state that this transaction sees.
    database.exec(`pragma busy_timeout = ${busyMs}; begin; select count(*) from sqlite_schema`);
    return {
      async columns(table) {
        const rows = database.prepare('select name from pragma_table_info(?)').all(table) as { name: string }[];
        return rows.map(({ name }) => name);
      },
      async *rows(table, columns) {
        const list = columns.map(quoted).join(', ');
        const found = database.prepare(`select ${list} from ${quoted(table)}`).iterate();
        yield* batches(found as Iterable<{ [column: string]: unknown }>, columns);
      },
      close: async () => database.close(),
    };
  } catch (error) {
    throw openingFailure(error, file);
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function* batches(rows: Iterable<{ [column: string]: unknown }>, columns: readonly string[]): Generator<Row[]> {
  let batch: Row[] = [];
  for (const row of rows) {
    batch.push(toRow(row, columns));
    if (batch.length < rowsTogether) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** @throws Error for a kind of value that the format does not have; a migration that needs one extends the format */
function toRow(row: { [column: string]: unknown }, columns: readonly string[]): Row {
  return columns.map((column) => {
    const value = row[column];
    if (value === null || typeof value === 'string' || typeof value === 'number') return value;
    throw new Error(`the column ${column} has a value of the type ${typeof value}, which backups cannot hold`);
  });
}

/**
 * Reads PostgreSQL in one transaction that sees one state. A migration waits for its end, because it would change the
 * tables; nothing else does.
 */
export async function openPostgresSource(location: PostgresLocation, tables: readonly string[]): Promise<TableSource> {
  const { postgresDialect } = await import('../engine/postgres.ts');
  const ignore = () => undefined;
  const db = new Kysely<Tables>({
    dialect: watchedDialect(postgresDialect(location, ignore, 'migrations'), ignore),
  });
  try {
    const present: string[] = [];
    for (const table of tables) if ((await columnsOf(db, table)).length > 0) present.push(table);
    const transaction = await db.startTransaction().execute();
    await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
    if (present.length > 0) {
      const names = sql.join(present.map((table) => sql.table(table)));
      await sql`lock table ${names} in access share mode`.execute(transaction);
    }
    return {
      columns: (table) => columnsOf(transaction, table),
      async *rows(table, columns) {
        const list = sql.join(columns.map((column) => sql.ref(column)));
        await sql`declare backup_rows no scroll cursor for select ${list} from ${sql.table(table)}`.execute(
          transaction,
        );
        const fetch = sql<{ [column: string]: unknown }>`fetch ${sql.lit(rowsTogether)} from backup_rows`;
        for (;;) {
          const { rows } = await fetch.execute(transaction);
          if (rows.length === 0) break;
          yield rows.map((row) => toRow(row, columns));
        }
        await sql`close backup_rows`.execute(transaction);
      },
      async close() {
        await transaction.rollback().execute();
        await db.destroy();
      },
    };
  } catch (error) {
    await db.destroy();
    throw openingFailure(error, undefined);
  }
}

async function columnsOf(db: Db, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select attname as name from pg_attribute
    where attrelid = to_regclass(${table}) and attnum > 0 and not attisdropped order by attnum`.execute(db);
  return rows.map(({ name }) => name);
}
