import { type Kysely, sql } from 'kysely';
import type { Db } from '../db.ts';
import { transact } from '../engine/watched-dialect.ts';
import type { Tables } from '../schema.ts';
import {
  buildAddCountsSql,
  type CallCount,
  type CallRecord,
  type CallWriter,
  countColumns,
  createCallWriter,
  formatAddUsage,
  readRecordBatch,
  recordColumns,
  toCallCounts,
  toUsageCounts,
  type UsageCount,
  usageColumns,
} from './call-writer.ts';

/** Creates a writer that sends rows as one JSON text, which takes half the time of sending as many parameters. */
export function createPostgresCallWriter(db: Kysely<Tables>): CallWriter {
  // Their text would have to be parsed again, because the records are counted in this thread.
  const toContent = (records: readonly CallRecord[]) => records;
  return createCallWriter(toContent, (batches) =>
    transact(db, async (transaction) => {
      const inserted = await insertCalls(transaction, batches.flatMap(readRecordBatch));
      await addCounts(transaction, toCallCounts(inserted));
      await addUsage(transaction, toUsageCounts(inserted));
    }),
  );
}

const columns = sql.raw(recordColumns.join(', '));
const numericColumns: readonly string[] = [
  'started_at',
  'upstream_status',
  'duration_ms',
  'upstream_ms',
  'bytes_in',
  'bytes_out',
  'estimated_tokens',
  'upstream_requests',
];
const typedColumns = sql.raw(
  recordColumns.map((column) => `${column} ${numericColumns.includes(column) ? 'bigint' : 'text'}`).join(', '),
);

/** Inserts calls. Returns the rows that were not stored before. */
async function insertCalls(db: Db, rows: readonly CallRecord[]): Promise<readonly CallRecord[]> {
  const inserted = await sql<{ id: string }>`
    insert into calls (${columns})
    select ${columns} from json_to_recordset(${JSON.stringify(rows)}) as given (${typedColumns})
    on conflict (id) do nothing
    returning id`.execute(db);
  if (inserted.rows.length === rows.length) return rows;
  const ids = new Set(inserted.rows.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id));
}

const typedCounts = countColumns.map(
  (column) => `${column} ${['workspace_id', 'slug', 'tool', 'durations'].includes(column) ? 'text' : 'bigint'}`,
);
// Split at the parameter, because `sql` inserts parameters between raw texts.
const [beforeCounts, afterCounts] = buildAddCountsSql(
  'postgres',
  `select ${countColumns.join(', ')} from json_to_recordset(?) as given (${typedCounts.join(', ')}) order by workspace_id, width, at, slug, tool`,
).split('?') as [string, string];

async function addCounts(db: Db, counts: readonly CallCount[]): Promise<void> {
  await sql`${sql.raw(beforeCounts)}${JSON.stringify(counts)}${sql.raw(afterCounts)}`.execute(db);
}

const typedUsage = usageColumns.map(
  (column) => `${column} ${['workspace_id', 'slug', 'caller'].includes(column) ? 'text' : 'bigint'}`,
);
const [beforeUsage, afterUsage] = formatAddUsage(
  `select ${usageColumns.join(', ')} from json_to_recordset(?) as given (${typedUsage.join(', ')}) order by workspace_id, at, slug, caller`,
).split('?') as [string, string];

async function addUsage(db: Db, usage: readonly UsageCount[]): Promise<void> {
  await sql`${sql.raw(beforeUsage)}${JSON.stringify(usage)}${sql.raw(afterUsage)}`.execute(db);
}
