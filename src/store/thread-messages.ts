/** What the connection of a thread is for. One that reads cannot write. */
export type ThreadAccess = 'read' | 'write';

export type ThreadData = { file: string; access: ThreadAccess };

/** `sql` may also be a procedure. `parameters` is the JSON text of an array, which crosses in half the time of as many values. */
export type ThreadQuestion = { sql: string; parameters: string };

/** What the thread does by itself, in one transaction: its parameters are call records, or how many calls. */
export type Procedure = 'call write_calls' | 'call count_older_calls';

export type ThreadAnswer =
  | { rows: unknown[]; changes?: bigint }
  | { failure: { message: string; code: string | undefined; errcode: number | undefined } };
