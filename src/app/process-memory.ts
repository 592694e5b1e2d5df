import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/** How the memory of a process is divided, in bytes. */
export type ProcessMemory = {
  /** For bodies, answers, arguments of calls, inputs of jobs, configurations in use. */
  work: number;
  /** For inputs of operations that wait for their turn. */
  waitingInputs: number;
  /** For the values of one thread for jobs. */
  thread: number;
};

const megabyte = 1024 * 1024;

/** One party gets half. The largest API description has 32 MiB, and takes twice as much while its pieces are joined. */
export const leastWork = 128 * megabyte;
const leastThread = 128 * megabyte;
/** Enough for the values of 10 MB of JSON made of small objects; beyond it the thread ends, not the process. */
const mostThread = 512 * megabyte;

/**
 * Divides the memory that this process may use: what its container allows, or the machine has, divided by the number of
 * its workers. V8 takes half of that for the values of JavaScript, or what it was told; a process that was given a small
 * heap is meant to be small.
 */
export function processMemory(workers: number): ProcessMemory {
  const constrained = process.constrainedMemory();
  const machine = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  const all = Math.min(machine / workers, 2 * getHeapStatistics().heap_size_limit);
  return {
    work: Math.max(leastWork, all / 4),
    waitingInputs: all / 8,
    thread: Math.min(mostThread, Math.max(leastThread, all / 4)),
  };
}
