/** What runs in a thread of `thread-pool.ts`: one job after the other. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { yieldToCalls } from '../thread-priority.ts';
import { type Done, type JobKind, jobs } from './jobs.ts';

export type Question = { kind: JobKind; input: unknown };
export type Answer = { output: unknown } | { failure: Error };

const port = parentPort as MessagePort;
yieldToCalls();

async function run({ kind, input }: Question): Promise<Done<unknown>> {
  const job = await jobs[kind]();
  return job(input as never);
}

port.on('message', (question: Question) => {
  run(question).then(
    ({ output, transfer = [] }) => port.postMessage({ output } satisfies Answer, [...transfer]),
    (failure: unknown) => port.postMessage({ failure: failure as Error } satisfies Answer),
  );
});
