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

/** A record, or what it becomes as a parameter of a statement: values in the order of `recordColumns`. */
type Values = readonly RecordValue[];

/** A `CallWriter` for the thread that writes records, which come as `recordValues`; each gives how many calls were counted. */
export type SqliteCallWriter = { write(records: readonly Values[]): number; countOlder(most: number): number };

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

  /** The rows that were not there before. */
  function insertEach(records: readonly Values[]): readonly Values[] {
    return records.filter((record) => run(insertOne, record) === 1);
  }

  /** Many rows in one statement; undefined, and nothing written, when some of them were there before. */
  function insertWhole(records: readonly Values[]): readonly Values[] | undefined {
    run('savepoint whole');
    const isWhole = run(insertBatch, records.flat()) === records.length;
    if (!isWhole) run('rollback to whole');
    run('release whole');
    return isWhole ? records : undefined;
  }

  function addCounts(counts: readonly CallCount[]): void {
    for (const { workspace_id, slug, tool, width, at, calls, errors, durations } of counts)
      run(addOne, [workspace_id, slug, tool, width, at, calls, errors, ...durations]);
  }

  return {
    write(records) {
      return transaction(() => {
        const whole = records.length === batchRows ? insertWhole(records) : undefined;
        const written = whole ?? insertEach(records);
        addCounts(countsOf(written.map(countedOf)));
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

const [workspace, slug, tool, startedAt, outcome, duration] = countedColumns.map((name) =>
  recordColumns.indexOf(name),
) as [number, number, number, number, number, number];

function countedOf(record: Values): CountedCall {
  return {
    workspace_id: record[workspace],
    slug: record[slug],
    tool: record[tool],
    started_at: record[startedAt],
    outcome: record[outcome],
    duration_ms: record[duration],
  } as CountedCall;
}
