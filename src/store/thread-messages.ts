/** The purpose of a thread's connection. One that reads cannot write. */
export type ThreadAccess = 'read' | 'write';

export type ThreadData = { file: string; access: ThreadAccess };

/** `sql` may also name a procedure. `parameters` is the JSON text of an array, which is copied in half the time of the values. */
export type ThreadQuestion = { sql: string; parameters: string };

/** Procedures of the thread, each in one transaction; the parameters are call records, or a number of calls. */
export type Procedure = 'call write_calls' | 'call count_older_calls';

export type ThreadAnswer =
  | { rows: unknown[]; changes?: bigint }
  | { failure: { message: string; code: string | undefined; errcode: number | undefined } };
