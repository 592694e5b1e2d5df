import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../thread-priority.ts';
import {
  batchRecords,
  buildAddCountsSql,
  type CountedCall,
  countColumns,
  countedColumns,
  formatAddUsage,
  type RecordValue,
  recordColumns,
  toCallCounts,
  toUsageCounts,
  usageColumns,
} from './calls/call-writer.ts';
import { openSqlite, type SqliteFile } from './engine/sqlite-file.ts';

/** Purpose of a thread's connection: read-only reports, call records, or transactions of operations. */
export type ThreadAccess = 'read' | 'records' | 'transactions';

export type ThreadData = { file: SqliteFile; access: ThreadAccess };

/**
 * Statement that the thread executes. `sql` may also be `WriteCalls`. As JSON text, many small parameters are copied in
 * half the time. As an array, long texts are copied without escaping.
 */
export type ThreadRequest = { sql: string; parameters: string | readonly unknown[] };

/** Replaces a statement: writes call records in one transaction. The parameters are texts of `toValuesText`. */
export type WriteCalls = 'call write_calls';

export type ThreadResponse =
  | { rows: unknown[]; changes?: bigint }
  | { failure: { message: string; code: string | undefined; errcode: number | undefined } };

/* Code of a thread that `engine/sqlite.ts` starts. It has its own connection and runs one statement after another. */

const port = parentPort as MessagePort;
const { file, access } = workerData as ThreadData;
/** Connection options. Waiting in this thread delays no call. A checkpoint follows every 16 MB. */
const options = { busyTimeoutMs: 5000, checkpointPages: 4000 };
// Call records are not acknowledged to any client, but an acknowledged change must survive a power failure.
const database = await openSqlite(file, { ...options, synchronous: access === 'transactions' ? 'FULL' : 'NORMAL' });
if (access === 'read') {
  database.prepare('pragma query_only = on').run([]);
  lowerThreadPriority();
}

function execute({ sql, parameters }: ThreadRequest): ThreadResponse {
  try {
    const values = (typeof parameters === 'string' ? JSON.parse(parameters) : parameters) as unknown[];
    if (sql === writeCalls) return { rows: [], changes: BigInt(writeRecords(values as string[])) };
    const statement = database.prepare(sql);
    if (statement.reader) return { rows: statement.all(values) };
    return { rows: [], changes: BigInt(statement.run(values).changes) };
  } catch (error) {
    const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
    return { failure: { message, code, errcode } };
  }
}

port.on('message', (request: ThreadRequest | 'close') => {
  if (request !== 'close') port.postMessage(execute(request));
  else {
    database.close();
    port.close();
  }
});

const writeCalls: WriteCalls = 'call write_calls';

/** Values of consecutive records, each in the order of `recordColumns`. */
type RecordValues = readonly RecordValue[];

/** Writes and counts call records. Returns the number of stored calls. */
function writeRecords(texts: readonly string[]): number {
  const values = texts.map((text) => JSON.parse(text) as RecordValues);
  run('begin');
  try {
    const written = insertBatches(values) ?? insertIndividually(values);
    const calls = written.flatMap(toCountedCalls);
    for (const count of toCallCounts(calls))
      run(
        addCountSql,
        countColumns.map((column) => count[column]),
      );
    for (const usage of toUsageCounts(calls))
      run(
        addUsageSql,
        usageColumns.map((column) => usage[column]),
      );
    run('commit');
    return calls.length;
  } catch (error) {
    run('rollback');
    throw error;
  }
}

function run(sql: string, parameters: readonly unknown[] = []): number {
  return Number(database.prepare(sql).run(parameters).changes);
}

/** Inserts batches. Returns undefined, with an empty transaction, if some records were stored before. */
function insertBatches(batches: readonly RecordValues[]): readonly RecordValues[] | undefined {
  const isComplete = batches.every((values) => {
    if (values.length === batchRecords * recordColumns.length) return run(insertBatchSql, values) === batchRecords;
    return splitRecords(values).every((record) => run(insertOneSql, record) === 1);
  });
  if (isComplete) return batches;
  run('rollback');
  run('begin');
  return undefined;
}

/** Inserts records one by one. Returns those that were not stored before. */
function insertIndividually(batches: readonly RecordValues[]): RecordValues[] {
  return batches.flatMap(splitRecords).filter((record) => run(insertOneSql, record) === 1);
}

const insertOneSql = formatInsert(1);
const insertBatchSql = formatInsert(batchRecords);
const addCountSql = buildAddCountsSql('sqlite', `values (${countColumns.map(() => '?').join(', ')})`);
const addUsageSql = formatAddUsage(`values (${usageColumns.map(() => '?').join(', ')})`);

function formatInsert(rows: number): string {
  const row = `(${recordColumns.map(() => '?').join(', ')})`;
  const values = Array.from({ length: rows }, () => row).join(', ');
  return `insert into calls (${recordColumns.join(', ')}) values ${values} on conflict (id) do nothing`;
}

/** Positions of the counted columns within a record. */
const [workspace, slug, tool, startedAt, outcome, duration, callerKind, keyId] = countedColumns.map((name) =>
  recordColumns.indexOf(name),
) as [number, number, number, number, number, number, number, number];

function splitRecords(values: RecordValues): RecordValues[] {
  const count = values.length / recordColumns.length;
  return Array.from({ length: count }, (_, row) =>
    values.slice(row * recordColumns.length, (row + 1) * recordColumns.length),
  );
}

function toCountedCalls(values: RecordValues): CountedCall[] {
  const calls: CountedCall[] = [];
  for (let row = 0; row < values.length; row += recordColumns.length)
    calls.push({
      workspace_id: values[row + workspace],
      slug: values[row + slug],
      tool: values[row + tool],
      started_at: values[row + startedAt],
      outcome: values[row + outcome],
      duration_ms: values[row + duration],
      caller_kind: values[row + callerKind],
      key_id: values[row + keyId],
    } as CountedCall);
  return calls;
}
