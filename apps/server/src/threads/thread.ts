/** Entry point of a thread of `thread-pool.ts`. Runs one job after the other. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { repairJsonParse } from '@toolhost/json/json-reader';
import { lowerThreadPriority } from '../thread-priority.ts';
import { type JobDone, type JobKind, jobs } from './jobs.ts';

export type JobMessage = { kind: JobKind; input: unknown };
export type JobResult = { output: unknown } | { failure: Error };

const port = parentPort as MessagePort;
lowerThreadPriority();
repairJsonParse();

async function run({ kind, input }: JobMessage): Promise<JobDone<unknown>> {
  const job = await jobs[kind]();
  return job(input as never);
}

port.on('message', (message: JobMessage) => {
  run(message).then(
    ({ output, transfer = [] }) => port.postMessage({ output } satisfies JobResult, [...transfer]),
    (failure: unknown) => port.postMessage({ failure: failure as Error } satisfies JobResult),
  );
});
