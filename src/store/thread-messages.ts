import type { SqliteFile } from './engine/sqlite-file.ts';

/** The purpose of a thread's connection: reports, which cannot write, call records, or transactions of operations. */
export type ThreadAccess = 'read' | 'records' | 'transactions';

export type ThreadData = { file: SqliteFile; access: ThreadAccess };

/**
 * `sql` may also name a procedure. `parameters` as the JSON text of an array are copied in half the time when they are many
 * and small; as an array, long texts are copied and not escaped.
 */
export type ThreadQuestion = { sql: string; parameters: string | readonly unknown[] };

/** A procedure of the thread, in one transaction; the parameters are call records. */
export type Procedure = 'call write_calls';

export type ThreadAnswer =
  | { rows: unknown[]; changes?: bigint }
  | { failure: { message: string; code: string | undefined; errcode: number | undefined } };
