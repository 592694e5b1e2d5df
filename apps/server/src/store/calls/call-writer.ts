import type { Selectable } from 'kysely';
import { durationBuckets, getDurationBucket } from '../../duration-buckets.ts';
import type { Engine } from '../db.ts';
import { toChunks } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';

/** Record of a finished call. Times are in epoch ms, durations in ms, sizes in bytes. */
export type CallRecord = Selectable<Tables['calls']>;

/** Prefix of a record id. The request id follows it. */
export const callIdPrefix = 'call_';

/**
 * Appends the values of a record, in the order of the columns. V8 specializes reads of named properties, so they take a
 * quarter of the time of `record[column]`.
 */
function appendValues(values: RecordValue[], record: CallRecord): void {
  values.push(
    record.id,
    record.workspace_id,
    record.slug,
    record.tool,
    record.started_at,
    record.caller_kind,
    record.key_id,
    record.upstream_host,
    record.upstream_status,
    record.outcome,
    record.duration_ms,
    record.upstream_ms,
    record.bytes_in,
    record.bytes_out,
    record.reason,
    record.estimated_tokens,
    record.view,
    record.model,
    record.upstream_requests,
  );
}

/** Columns in the order of `appendValues`. */
export const recordColumns: readonly (keyof CallRecord)[] = listColumns();

function listColumns(): (keyof CallRecord)[] {
  const names: RecordValue[] = [];
  appendValues(names, new Proxy({} as CallRecord, { get: (_, name) => name }));
  return names as (keyof CallRecord)[];
}

export type RecordValue = string | number | null;

/** Consecutive records, which wait to be written together. */
export type RecordBatch = {
  /** The records, or their values as `toValuesText` formats them. */
  readonly content: string | readonly CallRecord[];
  readonly count: number;
  /** Number of records of each workspace. */
  readonly workspaces: ReadonlyMap<string, number>;
};

/** Maximum number of records in a batch. So few are converted while they are still in the young generation. */
export const batchRecords = 200;

/**
 * Returns the values of records, each in the order of the columns, as one JSON array. It is half as long as with column
 * names, and cheap for the garbage collector, to which a record of 19 values that waits to be written is not.
 */
export function toValuesText(records: readonly CallRecord[]): string {
  const values: RecordValue[] = [];
  for (const record of records) appendValues(values, record);
  return JSON.stringify(values);
}

/** Returns the records of a batch. */
export function readRecordBatch({ content }: RecordBatch): readonly CallRecord[] {
  if (typeof content !== 'string') return content;
  const values = JSON.parse(content) as RecordValue[];
  return Array.from({ length: values.length / recordColumns.length }, (_, row) => {
    const record: { [column in keyof CallRecord]?: RecordValue } = {};
    let index = row * recordColumns.length;
    for (const column of recordColumns) record[column] = values[index++] ?? null;
    return record as CallRecord;
  });
}

/**
 * Writes call records of any workspaces and counts them. Records that are already stored remain unchanged and are not
 * counted twice, because a batch is written again if the reply to its first write was lost.
 */
export type CallWriter = {
  /** Creates batches of at most `batchRecords` records. */
  toBatches(records: readonly CallRecord[]): RecordBatch[];
  /** Writes batches in one transaction. */
  writeBatches(batches: readonly RecordBatch[]): Promise<void>;
  /** Writes any number of records. */
  write(records: readonly CallRecord[]): Promise<void>;
};

/** @param toContent returns the form in which records wait */
export function createCallWriter(
  toContent: (records: readonly CallRecord[]) => RecordBatch['content'],
  writeBatches: CallWriter['writeBatches'],
): CallWriter {
  const toBatches = (records: readonly CallRecord[]) =>
    toChunks(records, batchRecords).map((chunk) => {
      const workspaces = new Map<string, number>();
      for (const { workspace_id } of chunk) workspaces.set(workspace_id, (workspaces.get(workspace_id) ?? 0) + 1);
      return { content: toContent(chunk), count: chunk.length, workspaces };
    });
  return {
    toBatches,
    writeBatches,
    async write(records) {
      for (const chunk of toChunks(records, transactionRecords)) await writeBatches(toBatches(chunk));
    },
  };
}

/**
 * Maximum number of records in a transaction under load. Fewer would take more time for each record: with calls of many
 * tools, most of a transaction is their counts and the pages of the log.
 */
export const transactionRecords = 1000;

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** Widths of the periods that are counted. */
export const countedWidths = [minuteMs, dayMs] as const;

const keyColumns = ['workspace_id', 'width', 'slug', 'tool', 'at'] as const;
export const countColumns = [...keyColumns, 'calls', 'errors', 'durations'] as const;

export type CallCount = Tables['call_counts'];
type CountKey = Pick<CallCount, (typeof keyColumns)[number]>;
/** `durations` has the number of calls in each class. */
type Sum = CountKey & { calls: number; errors: number; durations: number[] };

/** Columns of a call that determine the counts. */
export const countedColumns = [
  'workspace_id',
  'slug',
  'tool',
  'started_at',
  'outcome',
  'duration_ms',
  'caller_kind',
  'key_id',
] as const;
export type CountedCall = Pick<CallRecord, (typeof countedColumns)[number]>;

/**
 * Returns increments for the counts of tools, and of workspaces (with empty slug and tool), by minute and day (UTC).
 * They are sorted by key, so that two writers cannot deadlock.
 */
export function toCallCounts(calls: Iterable<CountedCall>): CallCount[] {
  const minutes = new Map<string, Sum>();
  let lastSum: Sum | undefined;
  for (const call of calls) {
    const sum = lastSum && isInMinute(lastSum, call) ? lastSum : getOrAddSum(minutes, toMinuteKey(call));
    lastSum = sum;
    const durationClass = getDurationBucket(call.duration_ms);
    sum.calls += 1;
    if (call.outcome !== 'ok') sum.errors += 1;
    sum.durations[durationClass] = (sum.durations[durationClass] ?? 0) + 1;
  }
  const sumsByKey = new Map<string, Sum>();
  for (const minute of minutes.values()) {
    for (const width of countedWidths) {
      const at = startOfPeriod(minute.at, width);
      addToSum(getOrAddSum(sumsByKey, { ...minute, width, at }), minute);
      addToSum(getOrAddSum(sumsByKey, { ...minute, slug: '', tool: '', width, at }), minute);
    }
  }
  const sums = [...sumsByKey].sort(([a], [b]) => (a < b ? -1 : 1));
  return sums.map(([, sum]) => ({ ...sum, durations: formatDurationClasses(sum.durations) }));
}

const usageKeyColumns = ['workspace_id', 'at', 'slug', 'caller'] as const;
export const usageColumns = [...usageKeyColumns, 'calls', 'errors'] as const;
export type UsageCount = Tables['usage_counts'];

/** Returns increments for the usage of callers, sorted like the counts. */
export function toUsageCounts(calls: Iterable<CountedCall>): UsageCount[] {
  const sumsByKey = new Map<string, UsageCount>();
  for (const { workspace_id, slug, started_at, outcome, caller_kind, key_id } of calls) {
    const at = startOfPeriod(started_at, dayMs);
    const caller = caller_kind === 'api_key' && key_id ? key_id : caller_kind;
    const key = `${workspace_id}\n${at}\n${slug}\n${caller}`;
    const sum = sumsByKey.get(key) ?? { workspace_id, at, slug, caller, calls: 0, errors: 0 };
    sum.calls += 1;
    if (outcome !== 'ok') sum.errors += 1;
    sumsByKey.set(key, sum);
  }
  return [...sumsByKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

/** Returns the statement that adds to the usage counts. `source` supplies rows of `usageColumns`. */
export function formatAddUsage(source: string): string {
  return `insert into usage_counts (${usageColumns.join(', ')}) ${source}
    on conflict (${usageKeyColumns.join(', ')}) do update set calls = usage_counts.calls + excluded.calls,
    errors = usage_counts.errors + excluded.errors`;
}

function toMinuteKey({ workspace_id, slug, tool, started_at }: CountedCall): CountKey {
  return { workspace_id, slug, tool, width: minuteMs, at: startOfPeriod(started_at, minuteMs) };
}

/** Returns true if a call belongs to a minute's sum. Under load, one call often follows another of the same tool. */
function isInMinute({ workspace_id, slug, tool, at }: CountKey, call: CountedCall): boolean {
  const { started_at } = call;
  return (
    at <= started_at &&
    started_at < at + minuteMs &&
    slug === call.slug &&
    tool === call.tool &&
    workspace_id === call.workspace_id
  );
}

export function startOfPeriod(at: number, width: number): number {
  return Math.floor(at / width) * width;
}

function getOrAddSum(sums: Map<string, Sum>, { workspace_id, slug, tool, width, at }: CountKey): Sum {
  const key = `${workspace_id}\n${width}\n${at}\n${slug}\n${tool}`;
  const existing = sums.get(key);
  if (existing) return existing;
  const durations = new Array<number>(durationBuckets.length).fill(0);
  const sum = { workspace_id, slug, tool, width, at, calls: 0, errors: 0, durations };
  sums.set(key, sum);
  return sum;
}

function addToSum(sum: Sum, increment: Sum): void {
  sum.calls += increment.calls;
  sum.errors += increment.errors;
  for (let index = 0; index < sum.durations.length; index++)
    sum.durations[index] = (sum.durations[index] ?? 0) + (increment.durations[index] ?? 0);
}

/** Formats the classes that have calls as a JSON object. A loop takes a tenth of the time of `Object.fromEntries`. */
function formatDurationClasses(durations: readonly number[]): string {
  let members = '';
  for (let index = 0; index < durations.length; index++) {
    const calls = durations[index] ?? 0;
    if (calls > 0) members += `${members === '' ? '' : ','}"${index}":${calls}`;
  }
  return `{${members}}`;
}

/**
 * Differences between the engines: reading the `key` and `value` rows of a JSON object, and building one from the rows
 * of a query.
 */
const jsonFunctions = {
  sqlite: { each: (text: string) => `json_each(${text})`, object: 'json_group_object(key, calls)' },
  postgres: { each: (text: string) => `json_each_text(${text}::json)`, object: 'json_object_agg(key, calls)::text' },
};

/** Returns the statement that adds to the counts. `source` supplies rows of `countColumns`. */
export function buildAddCountsSql(engine: Engine, source: string): string {
  const { each, object } = jsonFunctions[engine];
  const durationQueries = ['call_counts', 'excluded'].map(
    (row) => `select key, value from ${each(`${row}.durations`)}`,
  );
  const sums = `select key, sum(cast(value as bigint)) as calls from (${durationQueries.join(' union all ')}) as added group by key`;
  return `insert into call_counts (${countColumns.join(', ')}) ${source}
    on conflict (${keyColumns.join(', ')}) do update set calls = call_counts.calls + excluded.calls,
    errors = call_counts.errors + excluded.errors, durations = (select ${object} from (${sums}) as sums)`;
}
