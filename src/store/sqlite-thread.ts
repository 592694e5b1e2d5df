/** Code of the thread that `threaded-sqlite.ts` starts: it has a connection of its own and runs one statement after the other. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { yieldToCalls } from '../thread-priority.ts';
import type { RecordValue } from './calls/call-writer.ts';
import { createSqliteCallWriter } from './calls/sqlite-call-writer.ts';
import { openSqlite } from './engine/sqlite-file.ts';
import type { Procedure, ThreadAnswer, ThreadData, ThreadQuestion } from './thread-messages.ts';

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
