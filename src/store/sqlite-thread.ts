/** What runs in the thread of `threaded-sqlite.ts`: a connection of its own, and one statement after the other. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { yieldToCalls } from '../thread-priority.ts';
import type { RecordValue } from './call-writer.ts';
import { createSqliteCallWriter } from './sqlite-call-writer.ts';
import { openSqlite } from './sqlite-file.ts';
import type { ThreadAccess } from './threaded-sqlite.ts';

export type ThreadData = { file: string; access: ThreadAccess };

/** `sql` may also be a procedure. `parameters` is the JSON text of an array, which crosses in half the time of as many values. */
export type Question = { sql: string; parameters: string };

/** What the thread does by itself, in one transaction: its parameters are call records, or how many calls. */
export type Procedure = 'call write_calls' | 'call count_older_calls';

export type Answer =
  | { rows: unknown[]; changes?: bigint }
  | { failure: { message: string; code: string | undefined; errcode: number | undefined } };

/** Here waiting costs nobody anything. A checkpoint comes after 16 MB. */
const options = { synchronous: 'NORMAL', busyMs: 5000, checkpointPages: 4000 } as const;

const port = parentPort as MessagePort;
const { file, access } = workerData as ThreadData;
const database = await openSqlite(file, options);
if (access === 'read') {
  database.prepare('pragma query_only = on').run([]);
  yieldToCalls();
}

const calls = createSqliteCallWriter(database);
const procedures: { [name in Procedure]: (parameters: unknown[]) => number } = {
  'call write_calls': (rows) => calls.write(rows as RecordValue[][]),
  'call count_older_calls': ([most]) => calls.countOlder(most as number),
};

function answer({ sql, parameters }: Question): Answer {
  try {
    const values = JSON.parse(parameters) as unknown[];
    if (sql in procedures) return { rows: [], changes: BigInt(procedures[sql as Procedure](values)) };
    const statement = database.prepare(sql);
    if (statement.reader) return { rows: statement.all(values) };
    return { rows: [], changes: BigInt(statement.run(values).changes) };
  } catch (error) {
    const { message, code, errcode } = error as Error & { code?: string; errcode?: number };
    return { failure: { message, code, errcode } };
  }
}

port.on('message', (question: Question | 'close') => {
  if (question !== 'close') port.postMessage(answer(question));
  else {
    database.close();
    port.close();
  }
});
