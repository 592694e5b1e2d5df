/** Entry point of a thread of `thread-pool.ts`. Runs one job after the other. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { repairJsonParse } from '../domain/json/json-reader.ts';
import { yieldToCalls } from '../thread-priority.ts';
import { type Done, type JobKind, jobs } from './jobs.ts';

export type JobQuestion = { kind: JobKind; input: unknown };
export type JobAnswer = { output: unknown } | { failure: Error };

const port = parentPort as MessagePort;
yieldToCalls();
repairJsonParse();

async function run({ kind, input }: JobQuestion): Promise<Done<unknown>> {
  const job = await jobs[kind]();
  return job(input as never);
}

port.on('message', (question: JobQuestion) => {
  run(question).then(
    ({ output, transfer = [] }) => port.postMessage({ output } satisfies JobAnswer, [...transfer]),
    (failure: unknown) => port.postMessage({ failure: failure as Error } satisfies JobAnswer),
  );
});
