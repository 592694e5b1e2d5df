import type { SqliteDatabase } from 'kysely';
import {
  addCountsText,
  type CallCount,
  type CountedCall,
  countColumns,
  countedColumns,
  countsOf,
} from './call-counts.ts';
import { batchRows, type RecordValue, recordColumns } from './call-writer.ts';

/** Records in sequence, each as the values of `recordColumns`. */
type Values = readonly RecordValue[];

/** A `CallWriter` for the thread that writes records, which arrive in the form of `recordValues`. Returns the number of stored calls. */
export type SqliteCallWriter = { write(records: Values): number };

export function createSqliteCallWriter(database: SqliteDatabase): SqliteCallWriter {
  const run = (sql: string, parameters: readonly unknown[] = []) =>
    Number(database.prepare(sql).run(parameters).changes);

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

  /** The records that were not stored before. */
  function insertEach(records: Values): Values {
    return recordsOf(records)
      .filter((record) => run(insertOne, record) === 1)
      .flat();
  }

  /** Many records in one statement; undefined, and nothing written, when some of them were there before. */
  function insertWhole(records: Values): Values | undefined {
    run('savepoint whole');
    const isWhole = run(insertBatch, records) === batchRows;
    if (!isWhole) run('rollback to whole');
    run('release whole');
    return isWhole ? records : undefined;
  }

  function addCounts(counts: readonly CallCount[]): void {
    for (const count of counts)
      run(
        addOne,
        countColumns.map((column) => count[column]),
      );
  }

  return {
    write(records) {
      return transaction(() => {
        const whole = records.length === batchRows * recordColumns.length ? insertWhole(records) : undefined;
        const written = whole ?? insertEach(records);
        addCounts(countsOf(countedOf(written)));
        return written.length / recordColumns.length;
      });
    },
  };
}

const addOne = addCountsText('sqlite', `values (${countColumns.map(() => '?').join(', ')})`);

function insertText(rows: number): string {
  const row = `(${recordColumns.map(() => '?').join(', ')})`;
  const values = Array.from({ length: rows }, () => row).join(', ');
  return `insert into calls (${recordColumns.join(', ')}) values ${values} on conflict (id) do nothing`;
}

const [workspace, slug, tool, startedAt, outcome, duration] = countedColumns.map((name) =>
  recordColumns.indexOf(name),
) as [number, number, number, number, number, number];

function recordsOf(values: Values): Values[] {
  const count = values.length / recordColumns.length;
  return Array.from({ length: count }, (_, row) =>
    values.slice(row * recordColumns.length, (row + 1) * recordColumns.length),
  );
}

function* countedOf(values: Values): Iterable<CountedCall> {
  for (let row = 0; row < values.length; row += recordColumns.length)
    yield {
      workspace_id: values[row + workspace],
      slug: values[row + slug],
      tool: values[row + tool],
      started_at: values[row + startedAt],
      outcome: values[row + outcome],
      duration_ms: values[row + duration],
    } as CountedCall;
}
