import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { yieldToCalls } from '../thread-priority.ts';
import type { RecordValue } from './calls/call-writer.ts';
import { createSqliteCallWriter } from './calls/sqlite-call-writer.ts';
import { openSqlite, type SqliteFile } from './engine/sqlite-file.ts';

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

/* The code of a thread that `engine/sqlite.ts` starts: it has a connection of its own and runs one statement after the other. */

const port = parentPort as MessagePort;
const { file, access } = workerData as ThreadData;
/** Waiting in this thread delays no call. A checkpoint follows every 16 MB. */
const options = { busyMs: 5000, checkpointPages: 4000 };
// Nobody waits for call records, but a change that was acknowledged must survive a power cut.
const database = await openSqlite(file, { ...options, synchronous: access === 'transactions' ? 'FULL' : 'NORMAL' });
if (access === 'read') {
  database.prepare('pragma query_only = on').run([]);
  yieldToCalls();
}

const calls = createSqliteCallWriter(database);
const procedures: { [name in Procedure]: (parameters: unknown[]) => number } = {
  'call write_calls': (rows) => calls.write(rows as RecordValue[]),
};

function answer({ sql, parameters }: ThreadQuestion): ThreadAnswer {
  try {
    const values = (typeof parameters === 'string' ? JSON.parse(parameters) : parameters) as unknown[];
    if (sql in procedures) return { rows: [], changes: BigInt(procedures[sql as Procedure](values)) };
    const statement = database.prepare(sql);
    if (statement.reader) return { rows: statement.all(values) };
    return { rows: [], changes: BigInt(statement.run(values).changes) };
  } catch (error) {
    const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
    return { failure: { message, code, errcode } };
  }
}

port.on('message', (question: ThreadQuestion | 'close') => {
  if (question !== 'close') port.postMessage(answer(question));
  else {
    database.close();
    port.close();
  }
});
