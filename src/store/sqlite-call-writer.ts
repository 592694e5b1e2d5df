import type { SqliteDatabase } from 'kysely';
import {
  addCountsText,
  type CallCount,
  type CountedCall,
  countColumns,
  countedColumns,
  countsOf,
} from './call-counts.ts';
import { batchRows, recordColumns } from './call-writer.ts';
import type { CallRow } from './schema.ts';

/** A `CallWriter` for the thread that writes records; each gives how many calls were counted. */
export type SqliteCallWriter = { write(rows: readonly CallRow[]): number; countOlder(most: number): number };

export function createSqliteCallWriter(database: SqliteDatabase): SqliteCallWriter {
  const run = (sql: string, parameters: unknown[] = []) => Number(database.prepare(sql).run(parameters).changes);

  function transaction<Result>(work: () => Result): Result {
    run('begin');
    try {
      const result = work();
      run('commit');
      return result;
    } catch (error) {
      run('rollback');
      throw error;
    }
  }

  const insertOne = insertText(1);
  const insertBatch = insertText(batchRows);

  /** The rows that were not there before. */
  function insertEach(rows: readonly CallRow[]): readonly CallRow[] {
    return rows.filter((row) => run(insertOne, valuesOf(row)) === 1);
  }

  /** Many rows in one statement; undefined, and nothing written, when some of them were there before. */
  function insertWhole(rows: readonly CallRow[]): readonly CallRow[] | undefined {
    run('savepoint whole');
    const isWhole = run(insertBatch, rows.flatMap(valuesOf)) === rows.length;
    if (!isWhole) run('rollback to whole');
    run('release whole');
    return isWhole ? rows : undefined;
  }

  function addCounts(counts: readonly CallCount[]): void {
    for (const { workspace_id, slug, tool, width, at, calls, errors, durations } of counts)
      run(addOne, [workspace_id, slug, tool, width, at, calls, errors, ...durations]);
  }

  return {
    write(rows) {
      return transaction(() => {
        const whole = rows.length === batchRows ? insertWhole(rows) : undefined;
        const written = whole ?? insertEach(rows);
        addCounts(countsOf(written));
        return written.length;
      });
    },
    countOlder(most) {
      return transaction(() => {
        const calls = database.prepare(notCounted).all([most]) as (CountedCall & { id: string })[];
        for (const { id } of calls) run('update calls set counted = 1 where id = ?', [id]);
        addCounts(countsOf(calls));
        return calls.length;
      });
    },
  };
}

const addOne = addCountsText(`values (${countColumns.map(() => '?').join(', ')})`);
const notCounted = `select id, ${countedColumns.join(', ')} from calls where counted is null order by workspace_id, started_at limit ?`;

function insertText(rows: number): string {
  const row = `(${recordColumns.map(() => '?').join(', ')}, 1)`;
  const values = Array.from({ length: rows }, () => row).join(', ');
  return `insert into calls (${recordColumns.join(', ')}, counted) values ${values} on conflict (id) do nothing`;
}

function valuesOf(row: CallRow): unknown[] {
  return recordColumns.map((column) => row[column] ?? null);
}
