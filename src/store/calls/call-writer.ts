import type { Selectable } from 'kysely';
import type { CallRow, Tables } from '../schema.ts';

/** The record of a finished call; times in epoch ms, spans in ms, sizes in bytes. */
export type CallRecord = Selectable<Tables['calls']>;

/** The id of a record is this and the id of the request. */
export const callIdPrefix = 'call_';

export const recordColumns = [
  'id',
  'workspace_id',
  'server_id',
  'slug',
  'tool',
  'started_at',
  'caller_kind',
  'key_id',
  'upstream_host',
  'upstream_status',
  'outcome',
  'duration_ms',
  'upstream_ms',
  'bytes_in',
  'bytes_out',
  'reason',
  'estimated_tokens',
  'view',
] as const satisfies readonly (keyof CallRecord)[];

export type RecordValue = string | number | null;

/** Records in sequence, each as the values of `recordColumns`: their text is half as long as with the names. */
export function recordValues(rows: readonly CallRow[]): RecordValue[] {
  // At its full length from the beginning: an array that grows is copied many times.
  const values = new Array<RecordValue>(rows.length * recordColumns.length);
  let at = 0;
  for (const row of rows) for (const column of recordColumns) values[at++] = row[column] ?? null;
  return values;
}

/** Writes call records and counts them, in one transaction. */
export type CallWriter = {
  /**
   * Writes rows of any workspaces at once: each names its own. Stored rows stay as they are and are not counted again,
   * because a batch is written again when the answer to its first writing was lost.
   */
  write(rows: readonly CallRow[]): Promise<void>;
};

/** Number of rows in a batch under load. */
export const batchRows = 1000;
