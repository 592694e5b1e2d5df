import { randomUUID } from 'node:crypto';
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { inTransaction } from './database.ts';
import { ApiError, fromSqlite } from './errors.ts';
import type { Query } from './filters.ts';
import type { Table } from './tables.ts';

type Row = Record<string, SQLOutputValue>;
type NewValues = ReadonlyMap<string, string | null>;

export function selectRows(database: DatabaseSync, table: Table, query: Query): Row[] {
  const where = query.where.sql === '' ? '' : `WHERE ${query.where.sql}`;
  return run(
    database,
    table,
    `SELECT ${query.columns} FROM ${table.name} ${where} ORDER BY ${query.order} LIMIT ? OFFSET ?`,
    [...query.where.values, query.limit, query.offset],
  );
}

/** Inserts all rows or none. */
export function insertRows(database: DatabaseSync, table: Table, query: Query, rows: NewValues[]): Row[] {
  if (query.where.sql !== '') throw new ApiError(400, 'PGRST100', 'A filter does not apply to POST');
  return inTransaction(database, () =>
    rows.flatMap((row) => {
      const values = new Map<string, string | null>([['id', randomUUID()], ...row]);
      const names = [...values.keys()].join(', ');
      const marks = [...values].map(() => '?').join(', ');
      const sql = `INSERT INTO ${table.name} (${names}) VALUES (${marks}) RETURNING ${query.columns}`;
      return run(database, table, sql, [...values.values()]);
    }),
  );
}

export function updateRows(database: DatabaseSync, table: Table, query: Query, values: NewValues): Row[] {
  requireFilter(query, 'UPDATE');
  // Allows an update without values, because an agent may call an update tool with only the ID.
  if (values.size === 0) return selectRows(database, table, query);
  const assignments = [...values.keys()].map((name) => `${name} = ?`).join(', ');
  const sql = `UPDATE ${table.name} SET ${assignments} WHERE ${query.where.sql} RETURNING ${query.columns}`;
  return run(database, table, sql, [...values.values(), ...query.where.values]);
}

export function deleteRows(database: DatabaseSync, table: Table, query: Query): Row[] {
  requireFilter(query, 'DELETE');
  const sql = `DELETE FROM ${table.name} WHERE ${query.where.sql} RETURNING ${query.columns}`;
  return run(database, table, sql, query.where.values);
}

function requireFilter(query: Query, statement: string): void {
  if (query.where.sql !== '') return;
  throw new ApiError(400, '21000', `${statement} requires a WHERE clause`, {
    hint: 'Name the rows with a filter, for example ?id=eq.<id>.',
  });
}

function run(database: DatabaseSync, table: Table, sql: string, values: SQLInputValue[]): Row[] {
  try {
    return database.prepare(sql).all(...values);
  } catch (error) {
    throw fromSqlite(error, table.name);
  }
}
